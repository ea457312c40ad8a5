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
import sys
import wave
from pathlib import Path

import numpy as np
from drawing import svg
from expected import EXPECTED, interpret, sha256
from sounds import HERE, RECORDING, read_wav

sys.path.insert(1, str(HERE.parent))

from firmware import Failed, built, emulated, ended, need_tools, reported

#: (the first step with a result, the scores from it on)
Scores = tuple[int, list[list[int]]]


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
    return ended(lambda: run(arguments.build_dir.resolve(), arguments.wav.resolve(), arguments.options))


def run(folder: Path, wav: Path, options: list[str]) -> int:
    need_tools()
    try:
        samples = read_wav(wav)
    except (OSError, ValueError, EOFError, wave.Error) as error:
        raise Failed(f"{wav.name} can't be heard: {error}", 2) from None
    wanted = wanted_scores(wav)

    variables = {"DOORBELL_RECORDING": str(wav), "DOORBELL_GEN_OPTIONS": ";".join(options)}
    output = emulated(built(HERE, folder, "doorbell", variables))
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

    slides = ("--front-end", str(HERE / "mel.tflite"), "--slide", "1")
    return reported(HERE / "doorbell.tflite", *slides, *options)


if __name__ == "__main__":
    sys.exit(main())
