# One process, one data folder, no root. Any base with Python 3.11 or newer and venv does:
#   docker build -t icekeel .
#   docker build -t icekeel --build-arg BASE_IMAGE=my-registry/python:3.12 .
ARG BASE_IMAGE=python:3.12-slim

FROM ${BASE_IMAGE} AS build
WORKDIR /src
RUN python3 -m venv /opt/icekeel && python3 -m venv /opt/build
COPY requirements/runtime.lock requirements/build.lock requirements/
RUN /opt/icekeel/bin/pip install --no-cache-dir --require-hashes -r requirements/runtime.lock \
    && /opt/build/bin/pip install --no-cache-dir --require-hashes -r requirements/build.lock
COPY pyproject.toml README.md CHANGELOG.md LICENSE ./
COPY app app
COPY migrations migrations
RUN /opt/build/bin/pip wheel --no-deps --no-build-isolation --wheel-dir /dist . \
    && /opt/icekeel/bin/pip install --no-cache-dir --no-deps --no-index /dist/*.whl \
    && /opt/icekeel/bin/pip uninstall --yes pip \
    && /opt/icekeel/bin/python -m compileall -q /opt/icekeel/lib

FROM ${BASE_IMAGE}
RUN groupadd --system --gid 10001 icekeel \
    && useradd --system --uid 10001 --gid 10001 --home-dir /data --shell /usr/sbin/nologin icekeel \
    && install -d -o icekeel -g icekeel -m 0750 /data
COPY --from=build /opt/icekeel /opt/icekeel
ENV PATH=/opt/icekeel/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    ICEKEEL_HOME=/data \
    ICEKEEL_HOST=0.0.0.0 \
    ICEKEEL_PORT=8181
# By number: what refuses root (runAsNonRoot) cannot tell a name from root's.
USER 10001:10001
WORKDIR /data
VOLUME ["/data"]
EXPOSE 8181
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s --retries=3 CMD ["python", "-c", \
    "import os, urllib.request; urllib.request.urlopen('http://127.0.0.1:' + os.environ['ICEKEEL_PORT'] + '/health/ready', timeout=4)"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["icekeel"]
CMD ["serve"]
