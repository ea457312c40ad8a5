#!/usr/bin/env bash
# From a fresh checkout to the digits firmware's accuracy and arena report, on Debian 12 or Ubuntu:
# installs the missing Debian packages (as root or with sudo), makes .venv with tinyfuse[verify], and
# runs examples/digits/run.py. Arguments go to run.py: examples/quickstart.sh -- --fusion none
set -euo pipefail
cd "$(dirname "$0")/.."

fail() { echo "quickstart: $*" >&2; exit 3; }
have() { command -v "$1" >/dev/null 2>&1; }
log=$(mktemp)
trap 'rm -f "$log"' EXIT
quietly() { "$@" >"$log" 2>&1 || { cat "$log" >&2; fail "failed: $*"; }; }

# The first Python that is new enough and can make virtual environments. Debian's can't without
# python3-venv; a pyenv shim may stand for a version that is not there.
find_python() {
  for candidate in python3 python3.11 python3.12 python3.13 /usr/bin/python3; do
    if "$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      echo "$candidate"
      return
    fi
  done
}

packages=()
[ -n "$(find_python)" ] || packages+=(python3-venv)
have cmake || packages+=(cmake)
have ninja || have make || packages+=(ninja-build)
have qemu-system-arm || packages+=(qemu-system-arm)
have arm-none-eabi-gcc || packages+=(gcc-arm-none-eabi)
# gcc prints a path where it finds the C library's file, else only the name
case "$(arm-none-eabi-gcc -print-file-name=nano.specs 2>/dev/null)" in
  */*) ;;
  *) packages+=(libnewlib-arm-none-eabi) ;;
esac

if [ ${#packages[@]} -gt 0 ]; then
  echo "[1/3] installing Debian packages: ${packages[*]}"
  have apt-get || fail "there is no apt-get; install what these packages hold by other means"
  as_root=()
  if [ "$(id -u)" != 0 ]; then
    have sudo || fail "run this as root, or install sudo"
    as_root=(sudo)
  fi
  quietly "${as_root[@]}" apt-get update
  quietly "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y --no-install-recommends "${packages[@]}"
else
  echo "[1/3] compiler, emulator and build tools are installed"
fi

echo "[2/3] tinyfuse in .venv"
if ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
  python=$(find_python)
  [ -n "$python" ] || fail "no Python 3.11 or later that can make a virtual environment"
  quietly "$python" -m venv --clear .venv
fi
quietly .venv/bin/python -m pip install --disable-pip-version-check -e '.[verify]'

echo "[3/3] the digits example"
.venv/bin/python examples/digits/run.py "$@"
