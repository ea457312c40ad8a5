"""examples/parts: a camera's lines in, one class a picture, as TensorFlow Lite Micro's interpreter gives it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from scripts import scripts_of

ROOT = Path(__file__).resolve().parents[2]
PARTS = ROOT / "examples" / "parts"
README = (PARTS / "README.md").read_text()


@pytest.fixture
def example():
    """Imports a script of the example."""
    with scripts_of(PARTS):
        yield __import__


def ran(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, PARTS / "run.py", *arguments]
    return subprocess.run(
        command, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=600
    )


@pytest.mark.emulated
def test_the_firmware_sees_what_the_readme_shows(tmp_path: Path) -> None:
    """Then the same build folder with a camera that is too fast for it."""
    build = tmp_path / "build"
    done = ran("--build-dir", build)
    assert done.returncode == 0, done.stdout + done.stderr
    shown = README.partition("```console\n")[2].partition("```")[0]
    printed = re.findall(r"^(?:picture|all|arena).*$", done.stdout.partition("\n\n")[0], re.MULTILINE)
    *pictures, arena, all_exact = printed
    assert len(pictures) == 8 and all(f"{line}\n" in shown for line in (*pictures, all_exact))
    assert arena.partition(", the longest row")[0] in shown  # its time depends on the compiler
    assert (build / "seen.svg").read_text() == (PARTS / "seen.svg").read_text()

    done = ran("--build-dir", build, "--line-us", "250")
    assert done.returncode == 4 and "a line was lost: with a line every 250 us, 4 waited" in done.stderr


def test_expected_scores_are_the_interpreters(example) -> None:
    pytest.importorskip("tflite_micro")
    script = example("expected")
    assert script.EXPECTED.read_text() == script.expected_text()


def test_it_sees_what_was_drawn(example) -> None:
    rows = json.loads((PARTS / "expected.json").read_text())["scores"]
    assert tuple(row.index(max(row)) for row in rows) == example("scenes").FILM_CLASSES


def test_the_film_is_the_scripts(example) -> None:
    scenes = example("scenes")
    difference = scenes.read_pgm(scenes.FILM).astype(int) - scenes.film()
    assert abs(difference).max() <= 1  # where another libm rounds otherwise


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda scores: scores[3].__setitem__(0, 7), "picture 3: the firmware has"),
        (lambda scores: scores.pop(), "7 pictures have a result; 8 should"),
    ],
    ids=["a score", "a picture"],
)
def test_a_difference_is_found(example, spoil, said: str) -> None:
    run, wanted = example("run"), json.loads((PARTS / "expected.json").read_text())["scores"]
    printed = "\n".join(f"scores {n} {' '.join(map(str, row))}" for n, row in enumerate(wanted))
    found = run.scores_of(f"{printed}\n")
    assert run.differences(found, wanted) == []
    spoil(found)
    (difference,) = run.differences(found, wanted)
    assert difference.startswith(said)


@pytest.mark.parametrize(
    "data",
    [
        b"no picture",
        b"P5\n160 120\n65535\n" + bytes(2 * 160 * 120),
        b"P5\n# a comment, which main.c doesn't look for\n160 120\n255\n" + bytes(160 * 120),
        b"P5\n320 240\n255\n" + bytes(320 * 240),
        b"P5\n160 120\n255\n" + bytes(160 * 120 - 1),
        b"P5\n160 0\n255\n",
    ],
    ids=["text", "of 16 bits", "a comment", "too wide", "cut short", "empty"],
)
def test_files_that_nobody_can_show(data: bytes, tmp_path: Path, example) -> None:
    path = tmp_path / "x.pgm"
    path.write_bytes(data)
    with pytest.raises(ValueError, match="it must be"):
        example("scenes").read_pgm(path)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["--film", "absent.pgm"], "absent.pgm can't be shown"), (["--line-us", "0"], "--line-us: 20 to 600000")],
    ids=["a file", "a time"],
)
def test_what_cannot_be_shown_is_said_before_a_build(arguments: list[str], said: str, tmp_path: Path) -> None:
    done = ran(*arguments, "--build-dir", tmp_path / "build")
    assert done.returncode == 2 and said in done.stderr and not (tmp_path / "build").exists()


def test_the_model_is_what_the_readme_says() -> None:
    for name in ("parts.tflite", "film.pgm"):
        assert f"{(PARTS / name).stat().st_size:,} bytes" in README
