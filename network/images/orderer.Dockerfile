FROM scratch
COPY orderer /usr/local/bin/orderer
COPY orderer.yaml /etc/hyperledger/fabric/orderer.yaml
ENV PATH=/usr/local/bin FABRIC_CFG_PATH=/etc/hyperledger/fabric
CMD ["orderer", "start"]
