FROM scratch
COPY registry /bin/registry
ENV PATH=/bin
CMD ["registry", "serve", "/etc/attestree/registry.yml"]
