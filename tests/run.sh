#!/usr/bin/env bash
# Installs what the tests need (Debian packages, and Python packages into .venv-test) and runs them.
# Arguments go to pytest: tests/run.sh -k schedule
set -euo pipefail
cd "$(dirname "$0")/.."
me=tests/run.sh
. examples/debian.sh

install_packages arm-none-eabi-gcc:gcc-arm-none-eabi qemu-system-arm:qemu-system-arm gcc:gcc g++:g++ \
  clang:clang cmake:cmake make:make
make_venv .venv-test verify,test
.venv-test/bin/python -m pytest -n 2 "$@"
