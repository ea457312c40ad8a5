# For quickstart.sh and tests/run.sh, which source it: installs Debian packages and makes virtual
# environments on Debian 12 or Ubuntu, as root or with sudo. The sourcing script sets `me`, its name.

fail() { echo "$me: $*" >&2; exit 3; }
have() { command -v "$1" >/dev/null 2>&1; }
log=$(mktemp)
# a subshell that is killed before it has dropped the trap must not remove the file
trap '[ "$BASHPID" != "$$" ] || rm -f "$log"' EXIT
# quietly COMMAND...: runs it, and shows its output where it fails. A line every 15 seconds says that it goes on.
quietly() {
  (
    SECONDS=0
    while sleep "${TINYFUSE_TELL_AFTER:-15}" >/dev/null 2>&1 && kill -0 $$ 2>/dev/null; do
      echo "  $SECONDS s, and not done: ${*##*/}"
    done
  ) &
  local teller=$! status=0
  "$@" >"$log" 2>&1 || status=$?
  kill "$teller" 2>/dev/null
  wait "$teller" 2>/dev/null || true
  [ $status -eq 0 ] || { cat "$log" >&2; fail "failed: $*"; }
}

# The first Python that is new enough and can make virtual environments. Debian's can't without
# python3-venv; a pyenv shim may stand for a version that is not there. Debian's comes first: it is built with
# profile-guided optimization, one that pyenv built usually isn't, and takes a sixth more instructions.
find_python() {
  for candidate in /usr/bin/python3 python3 python3.11 python3.12 python3.13; do
    if "$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      echo "$candidate"
      return
    fi
  done
}

# install_packages COMMAND:PACKAGE...: installs the packages whose command (or file) is missing, and Python's and
# the cross compiler's parts that are no commands.
install_packages() {
  local packages=() pair
  [ -n "$(find_python)" ] || packages+=(python3-venv)
  for pair in "$@"; do
    have "${pair%%:*}" || [ -e "${pair%%:*}" ] || packages+=("${pair##*:}")
  done
  have ninja || have make || packages+=(ninja-build)
  # gcc prints a path where it finds the C library's file, else only the name
  case "$(arm-none-eabi-gcc -print-file-name=nano.specs 2>/dev/null)" in
    */*) ;;
    *) packages+=(libnewlib-arm-none-eabi) ;;
  esac
  if [ ${#packages[@]} -eq 0 ]; then
    echo "Debian packages: all installed"
    return
  fi
  echo "installing Debian packages (about 90 seconds): ${packages[*]}"
  have apt-get || fail "there is no apt-get; install what these packages hold by other means"
  local as_root=()
  if [ "$(id -u)" != 0 ]; then
    have sudo || fail "run this as root, or install sudo"
    as_root=(sudo)
  fi
  quietly "${as_root[@]}" apt-get update
  quietly "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y --no-install-recommends "${packages[@]}"
}

# make_venv FOLDER EXTRAS: a virtual environment with this checkout and its extras.
make_venv() {
  if ! "$1/bin/python" -m pip --version >/dev/null 2>&1; then
    local python
    python=$(find_python)
    [ -n "$python" ] || fail "no Python 3.11 or later that can make a virtual environment"
    quietly "$python" -m venv --clear "$1"
  fi
  echo "installing tinyfuse[$2] into $1 (a minute the first time, up to six where the network is slow)"
  quietly "$1/bin/python" -m pip install --disable-pip-version-check -e ".[$2]"
}
