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
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(1, str(HERE.parent))

from firmware import Failed, built, emulated, ended, need_tools, reported  # noqa: E402


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
    return ended(lambda: run(arguments.build_dir.resolve(), arguments.options))


def run(folder: Path, options: list[str]) -> int:
    need_tools()
    expected = json.loads((HERE / "expected.json").read_text())
    if hashlib.sha256((HERE / "digits.tflite").read_bytes()).hexdigest() != expected["model_sha256"]:
        raise Failed("expected.json belongs to another digits.tflite: run expected.py", 1)

    variables = {"DIGITS_GEN_OPTIONS": ";".join(options), "DIGITS_PRINT_SCORES": "ON"}
    output = emulated(built(HERE, folder, "digits", variables))
    print(re.sub(r"^scores .*\n", "", output, flags=re.MULTILINE), end="")

    wrong = differences(output, expected)
    count = len(expected["classes"])
    if wrong:
        print(*wrong[:10], sep="\n")
        print(f"{len(wrong)} of {count} images differ from TensorFlow Lite Micro's interpreter")
        return 1
    print(f"all {count} images: class and int8 scores equal TensorFlow Lite Micro's interpreter\n", flush=True)

    return reported(HERE / "digits.tflite", *options)


if __name__ == "__main__":
    sys.exit(main())
