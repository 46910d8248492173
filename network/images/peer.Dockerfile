FROM scratch
COPY peer /usr/local/bin/peer
COPY detect build release /opt/hyperledger/ccaas_builder/bin/
COPY core.yaml /etc/hyperledger/fabric/core.yaml
ENV PATH=/usr/local/bin FABRIC_CFG_PATH=/etc/hyperledger/fabric
CMD ["peer", "node", "start"]
