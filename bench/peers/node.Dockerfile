# The host's Node on the image that the Python chaincode has too; the context brings the locked packages.
ARG BASE
FROM ${BASE}
COPY node /usr/local/bin/node
COPY chaincode.js /app/
COPY node_modules /app/node_modules
ENV NODE_ENV=production CORE_CHAINCODE_LOGGING_LEVEL=warn
WORKDIR /app
ENTRYPOINT ["/usr/local/bin/node", "/app/chaincode.js"]
