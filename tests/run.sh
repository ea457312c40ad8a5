#!/usr/bin/env bash
# Installs what the tests need (Debian packages, and Python packages into .venv-test) and runs them.
# Arguments go to pytest: tests/run.sh -k schedule
set -euo pipefail
cd "$(dirname "$0")/.."
me=tests/run.sh
. examples/debian.sh

install_packages arm-none-eabi-gcc:gcc-arm-none-eabi qemu-system-arm:qemu-system-arm gcc:gcc g++:g++ \
  clang:clang cmake:cmake make:make ninja:ninja-build
make_venv .venv-test verify,test
echo "running the tests: all of them take about 20 minutes on two cores; a file's name or -k WORD runs a part"
SECONDS=0
status=0
.venv-test/bin/python -m pytest -n 2 "$@" || status=$?
echo "the tests took $((SECONDS / 60)) min $((SECONDS % 60)) s"
exit $status
