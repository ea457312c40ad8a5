"""examples/digits: the firmware on the emulated Cortex-M4 reads every image as the interpreter does."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from scripts import scripts_of

ROOT = Path(__file__).resolve().parents[2]
DIGITS = ROOT / "examples" / "digits"


@pytest.fixture
def example():
    """Imports a script of the example."""
    with scripts_of(DIGITS):
        yield __import__


@pytest.fixture(scope="module")
def expected():
    return json.loads((DIGITS / "expected.json").read_text())


def printed(expected):
    """The expected output of firmware that computes `expected` for each image."""
    rows = enumerate(zip(expected["classes"], expected["scores"], strict=True))
    return [f"scores {i} {read} {' '.join(map(str, scores))}" for i, (read, scores) in rows]


@pytest.mark.emulated
@pytest.mark.parametrize(
    "options", [(), pytest.param(("--fusion", "none"), marks=pytest.mark.campaign)], ids=["default", "unfused"]
)
def test_firmware_equals_interpreter_image_for_image(tmp_path, options):
    done = subprocess.run(
        [sys.executable, DIGITS / "run.py", "--build-dir", tmp_path / "build", "--", *options],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "accuracy 98.06 % (353 of 360 images)" in done.stdout
    assert "all 360 images: class and int8 scores equal" in done.stdout
    assert "arena" in done.stdout.partition("interpreter\n")[2]


def test_scripts_of_one_name_do_not_meet():
    """benchmarks/ has a run.py, too."""
    for folder in (DIGITS, ROOT / "benchmarks", DIGITS):
        with scripts_of(folder):
            assert Path(__import__("run").__file__).parent == folder
    assert "run" not in sys.modules


def test_expected_scores_are_the_interpreters(example):
    script = example("expected")
    assert script.EXPECTED.read_text() == script.expected_text()


def test_equal_scores_are_accepted(example, expected):
    assert example("run").differences("\n".join(printed(expected)), expected) == []


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda line: line + "0", id="a score"),
        pytest.param(lambda line: line.replace("scores 7 ", "scores 7 1"), id="the class"),
        pytest.param(lambda line: line.rpartition(" ")[0], id="a score is missing"),
        pytest.param(lambda line: "", id="the image is missing"),
    ],
)
def test_a_difference_in_one_image_is_found(example, expected, spoil):
    lines = printed(expected)
    lines[7] = spoil(lines[7])
    (difference,) = example("run").differences("\n".join(lines), expected)
    assert difference.startswith("image 7:")


def test_the_model_is_what_the_readme_says(expected):
    assert (DIGITS / "digits.tflite").stat().st_size < 60_000
    assert expected["correct"] / len(expected["classes"]) > 0.96


def test_quickstart_ends_with_commands_that_exist():
    from tinyfuse.cli.main import main

    _, _, after = (ROOT / "examples" / "quickstart.sh").read_text().partition('examples/digits/run.py "$@"')
    told = re.findall(r"^  tinyfuse (\S+) MODEL.tflite --target cortex-m4", after, re.MULTILINE)
    assert told == ["report", "gen", "verify"]
    assert set(re.findall(r"\btinyfuse ([a-z-]+)", after)) <= set(main.commands)
    assert (ROOT / "docs" / "build-systems.md").is_file() and "docs/build-systems.md" in after
    assert after.rstrip().endswith('grep "^accuracy" "$said"')


QUIETLY = """\
set -euo pipefail
me=test
. examples/debian.sh
quietly sh -c 'sleep 1.7; printf hid; printf den'
echo first
quietly sh -c 'echo why; exit 7'
"""


def test_a_quiet_wait_is_told():
    """A line now and then, nothing of a command that succeeds, all of one that fails; and nobody is left behind."""
    done = subprocess.run(
        ["bash", "-c", QUIETLY],
        cwd=ROOT,
        env=os.environ | {"TINYFUSE_TELL_AFTER": "1"},
        capture_output=True,
        text=True,
        timeout=20,
    )
    assert done.returncode == 3 and "hidden" not in done.stdout + done.stderr
    assert re.fullmatch(r"(  \d s, and not done: sh .*\n)+first\n", done.stdout)
    assert done.stderr == "why\ntest: failed: sh -c echo why; exit 7\n"
