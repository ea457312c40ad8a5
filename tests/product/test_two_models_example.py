"""examples/two_models: sound and pictures take turns in one firmware; all scores are TensorFlow Lite Micro's."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from scripts import scripts_of
from test_docs_figures import COMPILER

import tinyfuse

ROOT = Path(__file__).resolve().parents[2]
TWO = ROOT / "examples" / "two_models"
README = (TWO / "README.md").read_text()
FORMS = ("steps", "whole", "wrong", "checked")


@pytest.fixture
def script():
    with scripts_of(TWO):
        yield __import__("run")


@pytest.mark.emulated
def test_the_forms_do_what_the_readme_shows(tmp_path: Path) -> None:
    command = [sys.executable, TWO / "run.py", "--build-dir", tmp_path / "build"]
    done = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
    printed = re.findall(rf"^(?:{'|'.join(FORMS)}) .*$", done.stdout, re.MULTILINE)
    assert tuple(line.split()[0] for line in printed) == FORMS
    compiler = subprocess.run(["arm-none-eabi-gcc", "--version"], capture_output=True, text=True).stdout
    shown = README.partition("```console\n")[2].partition("```")[0]
    for line in printed:
        # of another compiler times are others, and so is how many images there is time for
        text = line if COMPILER in compiler else re.match(r".*?\d,\d+", line)[0]
        assert text in shown


def found(script, **others):
    want = script.wanted()
    turns = {"doorbell": 4000, "digits": 500}
    right = script.Found(want.first_step, want.steps, want.images[:100], 4608, 1600, 500, 0, 0, turns)
    return replace(right, **others)


def test_what_the_interpreter_computes_is_accepted(script) -> None:
    assert script.differences(found(script), script.wanted()) == (0, 0)


@pytest.mark.parametrize(
    ("spoiled", "said"),
    [
        (lambda want: {"steps": [[1, 2, 3], *want.steps[1:]]}, (1, 0)),
        (lambda want: {"steps": want.steps[:-1]}, (1, 0)),
        (lambda want: {"first_step": 46}, (1, 0)),
        (lambda want: {"steps": []}, (253, 0)),
        (lambda want: {"images": [want.images[1], *want.images[1:9]]}, (0, 1)),
    ],
    ids=["a step", "the last step", "the first step", "all steps", "an image"],
)
def test_a_difference_is_found(script, spoiled, said: tuple[int, int]) -> None:
    want = script.wanted()
    assert script.differences(found(script, **spoiled(want)), want) == said


def test_a_form_has_to_show_what_it_is_there_for(script) -> None:
    steps, whole, wrong, _ = script.FORMS
    right, lossy = found(script), found(script, lost=100)
    assert script.as_it_should(steps, right, (0, 0)) and script.as_it_should(whole, lossy, (0, 0))
    assert script.as_it_should(wrong, right, (0, 100))
    for form, one, differ in (
        (steps, right, (1, 0)), (steps, lossy, (0, 0)), (steps, found(script, images=[]), (0, 0)),
        (steps, found(script, faults=1), (0, 0)), (whole, right, (0, 0)), (whole, lossy, (0, 1)),
        (wrong, right, (0, 0)),
    ):  # fmt: skip
        assert not script.as_it_should(form, one, differ)


def test_the_longest_step_is_what_the_readme_says() -> None:
    digits = tinyfuse.compile(ROOT / "examples" / "digits" / "digits.tflite", "cortex-m4", step=True)
    longest = re.search(r"step\s+([\d,]+) instructions in the longest", digits.report_text())
    assert f"predicts {longest[1]} instructions for the longest" in " ".join(README.split())


#: every byte that a turn may not change is changed once, between the doorbell's turn and the next or during it
PROGRAM = """\
#include <stdio.h>
#define MEMORY_CHECKED
#include "memory.c"

static void *turn(uint8_t *spoiled)
{
    uint8_t *arena = memory_digits();

    memset(arena, 1, DIGITS_ARENA_BYTES);
    memset(memory_sound(), 2, DOORBELL_ARENA_BYTES);
    if (spoiled == NULL) {
        arena[3] = 9;
    }
    memory_sound_done();
    if (spoiled != NULL) {
        *spoiled ^= 1;
    }
    arena = memory_digits();
    for (int i = 0; i < DIGITS_ARENA_BYTES; ++i) {
        if (arena[i] != (spoiled == NULL && i == 3 ? 9 : 1)) {
            printf("lost ");
        }
    }
    junk(&memory, sizeof memory);
    return arena;
}

int main(void)
{
    uint8_t unused;
    uint8_t *spoiled[] = {&unused, NULL, memory.before, &memory.before[GUARD - 1], memory.between, memory.after,
                          &memory.after[GUARD - 1], memory.sound.bytes, &memory.sound.bytes[DOORBELL_ARENA_BYTES - 1]};

    for (unsigned i = 0; i < sizeof spoiled / sizeof spoiled[0]; ++i) {
        faults = 0;
        turn(spoiled[i]);
        printf("%u ", memory_faults());
    }
    return 0;
}
"""


@pytest.mark.skipif(not shutil.which("cc"), reason="needs cc")
def test_bytes_that_change_though_nobody_has_them_are_counted(tmp_path: Path) -> None:
    """The checked form finds a change of every kind, so that its 0 says something."""
    for name, count in (("digits", 40), ("doorbell", 24)):
        (tmp_path / f"{name}.h").write_text(
            "#include <stdint.h>\n"
            f"#define {name.upper()}_ARENA_BYTES {count}\n"
            f"typedef struct {{ uint8_t bytes[{count}]; }} {name}_arena_type;\n"
        )
    (tmp_path / "main.c").write_text(PROGRAM)
    command = ["cc", "-std=c99", "-Wall", "-Wextra", "-Werror", f"-I{tmp_path}", f"-I{TWO}", tmp_path / "main.c"]
    subprocess.run([*command, "-o", tmp_path / "main"], check=True)
    told = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=True).stdout.split()
    assert told == ["0", *["1"] * 8]
