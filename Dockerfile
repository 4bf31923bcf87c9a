# The image of `labelspace serve`. Build it with `make image`; docs/container.md says how to run it.

# What kernels are compiled for, as LLVM names it: x86-64 with AVX2, since 2013. numba's own choice is the CPU of the
# machine that builds, and an image on any other CPU would compile all of them again. `make image` says generic on ARM.
ARG CPU=x86-64-v3

FROM python:3.11-slim AS build
ARG CPU
ENV PATH=/opt/venv/bin:$PATH \
    NUMBA_CPU_NAME=$CPU \
    NUMBA_CPU_FEATURES="" \
    NUMBA_CACHE_DIR=/var/cache/labelspace
WORKDIR /build
RUN python -m venv --without-pip /opt/venv

# Dependencies have a layer of their own, which a change of the sources does not touch.
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src/labelspace/version.py src/labelspace/
RUN pip --python /opt/venv/bin/python install --no-cache-dir --no-compile -c constraints.txt '.[serve,postgres]'
COPY src src
RUN pip --python /opt/venv/bin/python install --no-cache-dir --no-compile --no-deps .

# numba compares the times of sources, and layers keep whole seconds only: with fractions, no kernel would be found.
# The imports leave bytecode, which the user of the image could not write.
RUN find /opt/venv -name '*.py' -exec touch --date="@$(date +%s)" {} + \
    && labelspace warmup \
    && python -c 'import labelspace.server.worker, labelspace.server.supervisor, labelspace.server.job, psycopg'


FROM python:3.11-slim
ARG CPU
LABEL org.opencontainers.image.title="labelspace" \
      org.opencontainers.image.description="Suggests the few right labels for a text, out of thousands to millions, over HTTP" \
      org.opencontainers.image.licenses="Apache-2.0"
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    NUMBA_CPU_NAME=$CPU \
    NUMBA_CPU_FEATURES="" \
    NUMBA_CACHE_DIR=/var/cache/labelspace
RUN groupadd --gid 10001 labelspace \
    && useradd --uid 10001 --gid 10001 --no-log-init --no-create-home --shell /usr/sbin/nologin labelspace \
    && install --directory --mode=700 --owner=10001 --group=10001 /state /var/cache/labelspace \
    && install --directory /models
COPY --from=build /opt/venv /opt/venv
COPY --from=build --chown=10001:10001 /var/cache/labelspace /var/cache/labelspace
# A number, so that Kubernetes can see that it is not root.
USER 10001:10001
VOLUME ["/models", "/state"]
EXPOSE 8000
# Without the proxy that the environment may name: it cannot reach this address.
HEALTHCHECK --interval=10s --timeout=5s --start-period=120s --retries=3 \
    CMD ["python", "-c", "from urllib.request import ProxyHandler, build_opener; build_opener(ProxyHandler({})).open('http://127.0.0.1:8000/readyz', timeout=4)"]
# Of an option that is given twice the last one counts, so a command may name another database.
ENTRYPOINT ["labelspace", "serve", "--host", "0.0.0.0", "--port", "8000", "--database", "sqlite:////state/feedback.db"]
# Without the file of keys the server does not start: whoever wants no keys has to say so.
CMD ["--api-key-file", "/run/secrets/api_keys", "/models/demo"]
