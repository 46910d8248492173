# Everything an image can declare that the sandbox has to override.
ARG PROBE
FROM ${PROBE}
ENV FROM_IMAGE=kept
RUN mkdir -p /data && echo precious > /data/file
VOLUME ["/data", "/attestree", "/tmp", "/var/lib/made/up"]
USER root
WORKDIR /usr/lib
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=1s CMD ["/bin/touch", "/tmp/health-check-ran"]
ONBUILD RUN exit 1
LABEL attestree.sandbox=forged com.example.label=kept
ENTRYPOINT ["/bin/echo", "not the learner"]
CMD ["surprise"]
