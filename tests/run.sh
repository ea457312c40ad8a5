#!/usr/bin/env bash
# Installs what the tests need (Debian packages, and Python packages into .venv-test) and runs them.
#   tests/run.sh                 all of them, as CI does
#   tests/run.sh fast            what tells most in a minute: tests/unit but its slow ones, references, layout
#   tests/run.sh campaign ...    with what takes longer than CI allows; the rest of the arguments go to pytest
#   tests/run.sh ...             any other arguments go to pytest: tests/run.sh -k schedule
set -euo pipefail
cd "$(dirname "$0")/.."
me=tests/run.sh
. examples/debian.sh

# The file of clang's address sanitizer, or a name of it that no file has.
asan() { clang -print-file-name="libclang_rt.asan-$(uname -m).a" 2>/dev/null || echo libclang_rt.asan; }


install_packages arm-none-eabi-gcc:gcc-arm-none-eabi qemu-system-arm:qemu-system-arm gcc:gcc g++:g++ \
  clang:clang cmake:cmake "$(asan)":libclang-rt-dev make:make ninja:ninja-build chromium:chromium
make_venv .venv-test verify,test
case "${1:-}" in
  fast)
    shift
    set -- -m "not slow" tests/unit tests/exact/test_conv_ops.py tests/exact/test_ops.py::test_reference_equals_tflm \
      tests/product/test_layout.py tests/product/test_operators.py "$@"
    echo "running the fast tests: less than a minute on two cores"
    ;;
  campaign)
    shift
    set -- --campaign "$@"
    echo "running the tests with the campaigns among them: hours, if no file is named"
    ;;
  *)
    echo "running the tests: all of them take about ten minutes on two cores; a file's name or -k WORD runs a part," \
      "and $me fast what tells most in a minute"
    ;;
esac
# each of the hundreds of commands that tests start would compile all of tinyfuse again
unset PYTHONDONTWRITEBYTECODE
# numpy's threads wait for one another where every core has a test
export OPENBLAS_NUM_THREADS=1
echo "collecting the tests first: 20 seconds on two cores, up to three minutes on slow ones"
SECONDS=0
status=0
# A worker takes its share in order and then from the others': what a file's tests share is made once. One more than there
# are cores, as tests wait for files and processes a quarter of their time.
.venv-test/bin/python -m pytest -n $(($(nproc) + 1)) --dist worksteal "$@" || status=$?
echo "the tests took $((SECONDS / 60)) min $((SECONDS % 60)) s"
exit $status
