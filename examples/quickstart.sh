#!/usr/bin/env bash
# From a fresh checkout to the digits firmware's accuracy and arena report: installs the missing Debian
# packages, makes .venv with tinyfuse[verify], and runs examples/digits/run.py. Arguments go to run.py:
# examples/quickstart.sh -- --fusion none
set -euo pipefail
cd "$(dirname "$0")/.."
me=quickstart
. examples/debian.sh
said=$(mktemp)
trap '[ "$BASHPID" != "$$" ] || rm -f "$log" "$said"' EXIT

echo "[1/3] compiler, emulator and build tools"
install_packages cmake:cmake qemu-system-arm:qemu-system-arm arm-none-eabi-gcc:gcc-arm-none-eabi
echo "[2/3] tinyfuse in .venv"
make_venv .venv verify
echo "[3/3] the digits example (about half a minute)"
.venv/bin/python examples/digits/run.py "$@" | tee "$said"

cat <<'END'

Next, with a model of your own (int8, from TensorFlow Lite's converter):
  . .venv/bin/activate
  tinyfuse report MODEL.tflite --target cortex-m4   # what it takes; nothing is written
  tinyfuse gen MODEL.tflite --target cortex-m4      # a folder of C for your build
  tinyfuse verify MODEL.tflite --target cortex-m4   # every output bit against the interpreter
`tinyfuse targets` lists the other cores; examples/digits/ is a whole firmware project with CMake,
docs/build-systems.md says how to generate in a build.
END

echo
grep "^accuracy" "$said"
