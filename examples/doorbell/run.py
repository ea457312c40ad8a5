"""Builds the doorbell firmware, runs it on an emulated Cortex-M4, compares it with the interpreter, draws its scores.

    python examples/doorbell/run.py [--wav FILE] [--build-dir DIR] [-- OPTION...]    (options of `tinyfuse gen`)

Needs tinyfuse in this Python, cmake, arm-none-eabi-gcc and qemu-system-arm. The scores of a recording of your own, 8
kHz, mono, 16 bits, are drawn, and compared where TensorFlow Lite Micro is there (pip install '.[verify]').
Exit status: 0 when every score is the interpreter's, 1 when one differs, 2 for a file that can't be heard, 3 without a
tool, 4 when a build or the emulated run fails.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import wave
from pathlib import Path

import numpy as np
from drawing import svg
from expected import EXPECTED, interpret, sha256
from sounds import HERE, RECORDING, read_wav

TARGET = "cortex-m4"
TOOLS = {
    "cmake": "cmake",
    "arm-none-eabi-gcc": "gcc-arm-none-eabi libnewlib-arm-none-eabi",
    "qemu-system-arm": "qemu-system-arm",
}
RUN_SECONDS = 300  # the emulated run takes a few

#: (the first step with a result, the scores from it on)
Scores = tuple[int, list[list[int]]]


class Failed(Exception):
    """A message for the user, and the exit status."""

    def __init__(self, message: str, status: int):
        super().__init__(message)
        self.status = status


def build(folder: Path, wav: Path, options: list[str]) -> Path:
    """Configures and builds in `folder`; the firmware's ELF file."""
    configured = (folder / "CMakeCache.txt").exists()  # it keeps its generator
    generator = ["-G", "Ninja"] if shutil.which("ninja") and not configured else []
    for command in (
        [
            *("cmake", "-S", str(HERE), "-B", str(folder), *generator),
            f"-DPython3_EXECUTABLE={sys.executable}",
            f"-DDOORBELL_RECORDING={wav}",
            f"-DDOORBELL_GEN_OPTIONS={';'.join(options)}",
        ],
        ["cmake", "--build", str(folder)],
    ):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise Failed(f"{' '.join(command)}\n{done.stdout}{done.stderr}", 4)
    return folder / "doorbell_firmware.elf"


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
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            timeout=RUN_SECONDS,
        )  # fmt: skip
    except subprocess.TimeoutExpired as late:
        raise Failed(f"the firmware did not end within {RUN_SECONDS} s", 4) from late
    if done.returncode:
        raise Failed(f"{done.stdout}the firmware ended with status {done.returncode}", 4)
    return done.stdout


def scores_of(output: str) -> Scores:
    """What the firmware printed of its steps."""
    steps = re.findall(r"^step (\d+)((?: \d+)+)$", output, re.MULTILINE)
    return (int(steps[0][0]) if steps else 0), [[int(s) for s in scores.split()] for _, scores in steps]


def differences(found: Scores, wanted: Scores) -> list[str]:
    """One line for each step whose scores are not the interpreter's, or that has none."""
    if found[0] != wanted[0] or len(found[1]) != len(wanted[1]):
        return [
            f"{len(found[1])} steps from step {found[0]} on have a result; {len(wanted[1])} from {wanted[0]} on should"
        ]
    pairs = enumerate(zip(found[1], wanted[1], strict=True), found[0])
    return [
        f"step {n}: the firmware has {ours}, the interpreter {theirs}" for n, (ours, theirs) in pairs if ours != theirs
    ]


def wanted_scores(wav: Path) -> Scores | None:
    """The interpreter's: of this example's recording out of expected.json, of another one if it is installed."""
    if wav == RECORDING:
        expected = json.loads(EXPECTED.read_text())
        if expected["sha256"] != sha256():
            raise Failed("expected.json belongs to other files: run expected.py", 1)
        return expected["first_step"], expected["scores"]
    try:
        first, scores = interpret(read_wav(wav))
    except ImportError:
        return None
    return first, scores.tolist()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--wav", type=Path, default=RECORDING, metavar="FILE", help="what it hears")
    parser.add_argument("--build-dir", type=Path, default=HERE / "build", metavar="DIR")
    parser.add_argument("options", nargs="*", metavar="OPTION", help="of `tinyfuse gen`, after --")
    arguments = parser.parse_args()
    try:
        return run(arguments.build_dir.resolve(), arguments.wav.resolve(), arguments.options)
    except Failed as failure:
        print(failure, file=sys.stderr)
        return failure.status


def run(folder: Path, wav: Path, options: list[str]) -> int:
    for tool, packages in TOOLS.items():
        if shutil.which(tool) is None:
            raise Failed(f"{tool} was not found: apt-get install {packages}", 3)
    try:
        samples = read_wav(wav)
    except (OSError, ValueError, EOFError, wave.Error) as error:
        raise Failed(f"{wav.name} can't be heard: {error}", 2) from None
    wanted = wanted_scores(wav)

    print(f"building the firmware in {folder}", flush=True)
    firmware = build(folder, wav, options)
    print("running it on an emulated Cortex-M4 (QEMU, mps2-an386)", flush=True)
    output = emulate(firmware)
    print(re.sub(r"^step .*\n", "", output, flags=re.MULTILINE), end="")

    found = scores_of(output)
    wrong = differences(found, wanted) if wanted else []
    if wrong:
        print(*wrong[:10], sep="\n")
        print(f"{len(wrong)} steps differ from TensorFlow Lite Micro's interpreter")
        return 1
    if wanted:
        print(f"all {len(wanted[1])} steps: int8 scores equal TensorFlow Lite Micro's interpreter")
    picture = folder / "scores.svg"
    picture.write_text(svg(samples, found[0], np.array(found[1])))
    print(f"{picture}: the scores over time\n", flush=True)

    planning = [option for option in options if option != "--bundle"]  # which only `gen` knows
    slides = ["--front-end", str(HERE / "mel.tflite"), "--slide", "1"]
    report = ["report", str(HERE / "doorbell.tflite"), "--target", TARGET, *slides, *planning]
    return subprocess.run([sys.executable, "-P", "-m", "tinyfuse", *report]).returncode


if __name__ == "__main__":
    sys.exit(main())
