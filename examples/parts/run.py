"""Builds the parts firmware, runs it on an emulated Cortex-M4, compares it with the interpreter, draws what it saw.

    python examples/parts/run.py [--film FILE] [--build-dir DIR] [-- OPTION...]    (options of `tinyfuse gen`)

Needs tinyfuse in this Python, cmake, arm-none-eabi-gcc and qemu-system-arm. Pictures of your own, grey, 160 by 120
pixels each, one below the other in a PGM file, are compared where TensorFlow Lite Micro is there (pip install
'.[verify]'). Exit status: 0 when every score is the interpreter's, 1 when one differs, 2 for a file that can't be shown
or a time that can't be kept, 3 without a tool, 4 when a build or the emulated run fails, as it does where the camera is
too fast.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path

from drawing import svg
from expected import EXPECTED, interpret, sha256
from scenes import FILM, HERE, read_pgm

sys.path.insert(1, str(HERE.parent))

from firmware import Failed, built, emulated, ended, need_tools, reported

#: an instruction takes 2 ** 4 = 16 ns: 62.5 million a second, about what a Cortex-M4 at 80 MHz gets done
SHIFT = 4
LINE_US = range(20, 600_001)  # what the timer can do, and the interrupt


def scores_of(output: str) -> list[list[int]]:
    """What the firmware printed of its pictures."""
    return [[int(s) for s in row.split()] for row in re.findall(r"^scores \d+((?: \d+)+)$", output, re.MULTILINE)]


def differences(found: list[list[int]], wanted: list[list[int]]) -> list[str]:
    """One line for each picture whose scores are not the interpreter's, or for those that are missing."""
    if len(found) != len(wanted):
        return [f"{len(found)} pictures have a result; {len(wanted)} should"]
    pairs = enumerate(zip(found, wanted, strict=True))
    return [
        f"picture {n}: the firmware has {ours}, the interpreter {theirs}"
        for n, (ours, theirs) in pairs
        if ours != theirs
    ]


def wanted_scores(film: Path) -> list[list[int]] | None:
    """The interpreter's: of this example's film out of expected.json, of another one if it is installed."""
    if film == FILM:
        expected = json.loads(EXPECTED.read_text())
        if expected["sha256"] != sha256():
            raise Failed("expected.json belongs to other files: run expected.py", 1)
        return expected["scores"]
    try:
        return interpret(read_pgm(film))
    except ImportError:
        return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--film", type=Path, default=FILM, metavar="FILE", help="what the camera shows")
    parser.add_argument("--line-us", type=int, default=555, metavar="N", help="from line to line, microseconds")
    parser.add_argument("--build-dir", type=Path, default=HERE / "build", metavar="DIR")
    parser.add_argument("options", nargs="*", metavar="OPTION", help="of `tinyfuse gen`, after --")
    return ended(lambda: run(parser.parse_args()))


def run(arguments: argparse.Namespace) -> int:
    need_tools()
    if arguments.line_us not in LINE_US:
        raise Failed(f"--line-us: {LINE_US[0]} to {LINE_US[-1]}", 2)
    film, folder = arguments.film.resolve(), arguments.build_dir.resolve()
    try:
        pictures = read_pgm(film)
    except (OSError, ValueError) as error:
        raise Failed(f"{film.name} can't be shown: {error}", 2) from None
    wanted = wanted_scores(film)

    variables = {
        "PARTS_FILM": str(film),
        "PARTS_LINE_MICROSECONDS": str(arguments.line_us),
        "PARTS_GEN_OPTIONS": ";".join(arguments.options),
    }
    output = emulated(built(HERE, folder, "parts", variables), SHIFT)
    print(re.sub(r"^scores .*\n", "", output, flags=re.MULTILINE), end="")

    found = scores_of(output)
    wrong = differences(found, wanted) if wanted else []
    if wrong:
        print(*wrong[:10], sep="\n")
        print(f"{len(wrong)} pictures differ from TensorFlow Lite Micro's interpreter")
        return 1
    if wanted:
        print(f"all {len(wanted)} pictures: int8 scores equal TensorFlow Lite Micro's interpreter")
    drawn = folder / "seen.svg"
    drawn.write_text(svg(pictures, found))
    print(f"{drawn}: the pictures and their scores\n", flush=True)
    return reported(HERE / "parts.tflite", "--feed-rows", *arguments.options)


if __name__ == "__main__":
    sys.exit(main())
