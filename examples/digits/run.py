"""Builds the digits firmware, runs it on an emulated Cortex-M4 and compares it with the interpreter.

    python examples/digits/run.py [--build-dir DIR] [-- OPTION...]    (options of `tinyfuse gen`)

Needs tinyfuse in this Python, cmake, arm-none-eabi-gcc and qemu-system-arm. Exit status: 0 when every
score of every image is the interpreter's, 1 when one differs, 3 without a tool, 4 when a build or the
emulated run fails.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
TARGET = "cortex-m4"
TOOLS = {
    "cmake": "cmake",
    "arm-none-eabi-gcc": "gcc-arm-none-eabi libnewlib-arm-none-eabi",
    "qemu-system-arm": "qemu-system-arm",
}
RUN_SECONDS = 300  # the emulated run takes a few


class Failed(Exception):
    """A message for the user, and the exit status."""

    def __init__(self, message: str, status: int):
        super().__init__(message)
        self.status = status


def build(folder: Path, options: list[str]) -> Path:
    """Configures and builds in `folder`; the firmware's ELF file."""
    configured = (folder / "CMakeCache.txt").exists()  # it keeps its generator
    generator = ["-G", "Ninja"] if shutil.which("ninja") and not configured else []
    for command in (
        [
            *("cmake", "-S", str(HERE), "-B", str(folder), *generator),
            f"-DPython3_EXECUTABLE={sys.executable}",
            f"-DDIGITS_GEN_OPTIONS={';'.join(options)}",
            "-DDIGITS_PRINT_SCORES=ON",
        ],
        ["cmake", "--build", str(folder)],
    ):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise Failed(f"{' '.join(command)}\n{done.stdout}{done.stderr}", 4)
    return folder / "digits_firmware.elf"


def emulate(firmware: Path) -> str:
    """What the firmware prints on QEMU's MPS2 board with the AN386 image, a Cortex-M4."""
    command = [
        *("qemu-system-arm", "-machine", "mps2-an386", "-kernel", str(firmware)),
        *("-display", "none", "-monitor", "none", "-serial", "none"),
        *("-semihosting-config", "enable=on,target=native"),
        *("-icount", "shift=0,align=off,sleep=off"),  # repeatable: an instruction takes 1 ns
    ]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=RUN_SECONDS,
        )
    except subprocess.TimeoutExpired as late:
        raise Failed(f"the firmware did not end within {RUN_SECONDS} s", 4) from late
    if done.returncode:
        raise Failed(f"{done.stdout}the firmware ended with status {done.returncode}", 4)
    return done.stdout


def differences(output: str, expected: dict) -> list[str]:
    """One line for each image whose class or scores are not the interpreter's."""
    read = {
        int(index): [int(read), *map(int, scores.split())]
        for index, read, scores in re.findall(r"^scores (\d+) (\d+)((?: -?\d+)+)$", output, re.MULTILINE)
    }
    wanted = [[c, *scores] for c, scores in zip(expected["classes"], expected["scores"], strict=True)]
    return [
        f"image {index}: the firmware reads {read.get(index)}, the interpreter {want}"
        for index, want in enumerate(wanted)
        if read.get(index) != want
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--build-dir", type=Path, default=HERE / "build", metavar="DIR")
    parser.add_argument("options", nargs="*", metavar="OPTION", help="of `tinyfuse gen`, after --")
    arguments = parser.parse_args()
    try:
        return run(arguments.build_dir.resolve(), arguments.options)
    except Failed as failure:
        print(failure, file=sys.stderr)
        return failure.status


def run(folder: Path, options: list[str]) -> int:
    for tool, packages in TOOLS.items():
        if shutil.which(tool) is None:
            raise Failed(f"{tool} was not found: apt-get install {packages}", 3)
    expected = json.loads((HERE / "expected.json").read_text())
    if hashlib.sha256((HERE / "digits.tflite").read_bytes()).hexdigest() != expected["model_sha256"]:
        raise Failed("expected.json belongs to another digits.tflite: run expected.py", 1)

    print(f"building the firmware in {folder}", flush=True)
    firmware = build(folder, options)
    print("running it on an emulated Cortex-M4 (QEMU, mps2-an386)", flush=True)
    output = emulate(firmware)
    print(re.sub(r"^scores .*\n", "", output, flags=re.MULTILINE), end="")

    wrong = differences(output, expected)
    count = len(expected["classes"])
    if wrong:
        print(*wrong[:10], sep="\n")
        print(f"{len(wrong)} of {count} images differ from TensorFlow Lite Micro's interpreter")
        return 1
    print(f"all {count} images: class and int8 scores equal TensorFlow Lite Micro's interpreter\n", flush=True)

    planning = [option for option in options if option != "--bundle"]  # which only `gen` knows
    report = ["report", str(HERE / "digits.tflite"), "--target", TARGET, *planning]
    return subprocess.run([sys.executable, "-P", "-m", "tinyfuse", *report]).returncode


if __name__ == "__main__":
    sys.exit(main())
