# tinyfuse with all that gen, report and verify need for a Cortex-M:
#   docker build -t tinyfuse .
#   docker run --rm -u "$(id -u)" -v "$PWD:/models" tinyfuse verify model.tflite --target cortex-m4
FROM debian:12-slim

# versions are those of the Debian release
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends \
        gcc-arm-none-eabi libnewlib-arm-none-eabi python3 python3-venv qemu-system-arm \
    && rm -rf /var/lib/apt/lists/*

COPY LICENSE README.md pyproject.toml /src/
COPY runtime_c /src/runtime_c
COPY targets /src/targets
COPY templates /src/templates
COPY tinyfuse /src/tinyfuse
RUN python3 -m venv /opt/tinyfuse \
    && /opt/tinyfuse/bin/pip install --no-cache-dir '/src[verify]' \
    && rm -rf /src

# any user may run it, with -u: what gen writes is then theirs
ENV PATH="/opt/tinyfuse/bin:$PATH" HOME=/tmp
USER 1000
WORKDIR /models
ENTRYPOINT ["tinyfuse"]
CMD ["--help"]
