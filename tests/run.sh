#!/usr/bin/env bash
# Installs what the tests need (Debian packages, and Python packages into .venv-test) and runs them.
# Arguments go to pytest: tests/run.sh -k schedule
set -euo pipefail
cd "$(dirname "$0")/.."

need=()
for pair in arm-none-eabi-gcc:gcc-arm-none-eabi qemu-system-arm:qemu-system-arm gcc:gcc g++:g++ \
            clang:clang cmake:cmake ninja:ninja-build make:make; do
  command -v "${pair%%:*}" >/dev/null || need+=("${pair##*:}")
done
[ -d /usr/lib/arm-none-eabi/include ] || [ -d /usr/include/newlib ] || need+=(libnewlib-arm-none-eabi)
python3 -c 'import ensurepip, venv' 2>/dev/null || need+=(python3-venv)
if [ ${#need[@]} -gt 0 ]; then
  sudo=$([ "$(id -u)" = 0 ] || echo sudo)
  echo "installing ${need[*]}"
  $sudo apt-get update -qq
  $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${need[@]}" >/dev/null
fi

[ -x .venv-test/bin/python ] || python3 -m venv .venv-test
.venv-test/bin/python -m pip install -q --disable-pip-version-check -e '.[verify,test]'
exec .venv-test/bin/python -m pytest -n 2 "$@"
