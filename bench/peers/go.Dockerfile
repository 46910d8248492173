# One static program and nothing else.
FROM scratch
COPY chaincode /chaincode
ENTRYPOINT ["/chaincode"]
