FROM scratch
COPY fabric-ca-server fabric-ca-client /usr/local/bin/
ENV PATH=/usr/local/bin
CMD ["fabric-ca-server", "start"]
