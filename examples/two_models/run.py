"""Builds the two-model firmware in four forms, runs them on an emulated Cortex-M4, compares them with the interpreter.

    python examples/two_models/run.py [--build-dir DIR]

Needs tinyfuse in this Python, cmake, arm-none-eabi-gcc and qemu-system-arm. The scores are those of TensorFlow
Lite Micro's interpreter in the expected.json of the two examples whose models these are. Exit status: 0 when every
form shows what it should: the interpreter's scores and no sample lost, or just that these are lost or wrong; 1
otherwise; 3 without a tool; 4 when a build or an emulated run fails.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parent
sys.path.insert(1, str(EXAMPLES))

from firmware import Failed, built, emulated, ended, need_tools  # noqa: E402

Rows = list[list[int]]


@dataclass(frozen=True)
class Form:
    """How the models share time and memory. `shift`: an instruction takes 2 ** shift ns."""

    name: str
    title: str
    shift: int
    loses: bool = False  # samples, because its turns are too long
    differs: bool = False  # from the interpreter, because the models take each other's bytes


#: 2 ** 6 = 64 ns: 15.6 million instructions a second, about what a Cortex-M4 at 20 MHz gets done
SLOW = 6
FORMS = (
    Form("steps", "NAME_step, arenas side by side", SLOW),
    Form("whole", "NAME_run, one arena for both", SLOW, loses=True),
    Form("wrong", "NAME_step, one arena for both", SLOW, differs=True),
    Form("checked", "NAME_step, moved, amid junk", 4),  # faster: moving takes more than computing
)


@dataclass(frozen=True)
class Found:
    """What a firmware printed: the first step with a result; scores of 0 to 255 from it on; scores of each image;
    bytes; microseconds; pieces of sound; bytes that changed though nobody had them."""

    first_step: int
    steps: Rows
    images: Rows
    arenas: int
    state: int
    wait: int
    lost: int
    faults: int
    turns: dict[str, int]


def found_in(output: str) -> Found:
    """Failed where the firmware printed something else."""

    def rows(name: str) -> list[tuple[int, list[int]]]:
        lines = re.findall(rf"^{name} (\d+)((?: -?\d+)+)$", output, re.MULTILINE)
        return [(int(number), [int(value) for value in values.split()]) for number, values in lines]

    facts = dict(re.findall(r"\b(arenas|state|wait|lost|faults) (\d+)", output))
    turns = {name: int(time) for name, time in re.findall(r"^turn (\w+) (\d+)$", output, re.MULTILINE)}
    if len(facts) != 5 or len(turns) != 2:
        raise Failed(f"{output}the firmware did not say all that it should", 4)
    steps = rows("step")
    heard = [[value + 128 for value in values] for _, values in steps]
    return Found(
        steps[0][0] if steps else 0, heard, [values for _, values in rows("image")],
        **{name: int(value) for name, value in facts.items()}, turns=turns,
    )  # fmt: skip


@dataclass(frozen=True)
class Wanted:
    """The interpreter's, of the whole recording and of all images."""

    first_step: int
    steps: Rows
    images: Rows


def wanted() -> Wanted:
    """Out of the expected.json of both examples; Failed where one belongs to other files."""
    doorbell, digits = (json.loads((EXAMPLES / name / "expected.json").read_text()) for name in ("doorbell", "digits"))
    hashes = {EXAMPLES / "doorbell" / name: value for name, value in doorbell["sha256"].items()}
    hashes[EXAMPLES / "digits" / "digits.tflite"] = digits["model_sha256"]
    for path, value in hashes.items():
        if hashlib.sha256(path.read_bytes()).hexdigest() != value:
            raise Failed(f"{path.parent.name}/expected.json belongs to another {path.name}: run expected.py", 1)
    return Wanted(doorbell["first_step"], doorbell["scores"], digits["scores"])


def differences(found: Found, want: Wanted) -> tuple[int, int]:
    """(steps, images) whose scores are not the interpreter's. The firmware reads as many images as it has time for, but
    must have heard every step of the recording, unless samples were lost: then steps aren't compared."""
    images = sum(ours != theirs for ours, theirs in zip(found.images, want.images, strict=False))
    if found.lost:
        return 0, images
    missing = abs(len(want.steps) - len(found.steps)) + (found.first_step != want.first_step)
    return missing + sum(a != b for a, b in zip(found.steps, want.steps, strict=False)), images


def line(form: Form, found: Found, wrong: tuple[int, int]) -> str:
    """What `main` prints of a form."""
    longest = found.turns["digits"] / 1000
    told = f"{form.name:8}{form.title:31} {found.arenas:6,}  {longest:9.1f} ms {found.lost:5} {len(found.images):7}"
    steps, images = wrong
    return f"{told}  {'exact' if not steps + images else f'{steps} steps and {images} images differ'}"


def as_it_should(form: Form, found: Found, wrong: tuple[int, int]) -> bool:
    """Whether a form lost nothing, computed rightly and kept to its bytes, or failed in what it shows to fail."""
    lost, differ = found.lost > 0, wrong != (0, 0)
    return bool(found.images) and (lost, differ, found.faults) == (form.loses, form.differs, 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--build-dir", type=Path, default=HERE / "build", metavar="DIR")
    return ended(lambda: run(parser.parse_args().build_dir.resolve()))


def run(folder: Path) -> int:
    need_tools()
    want, well = wanted(), True
    firmware = built(HERE, folder, FORMS[0].name, {})
    outputs = [emulated(firmware.with_name(f"{form.name}_firmware.elf"), form.shift) for form in FORMS]
    print(f"\n{'':40}arenas  longest turn  lost  images")
    for form, output in zip(FORMS, outputs, strict=True):
        found = found_in(output)
        wrong = differences(found, want)
        print(line(form, found, wrong))
        if not as_it_should(form, found, wrong):
            print(f"        this is not what it should show; {found.faults} bytes changed that nobody had")
            well = False
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
