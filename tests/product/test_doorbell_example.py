"""examples/doorbell: samples in, one score a step, as TensorFlow Lite Micro's interpreter gives it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import wave
from pathlib import Path

import pytest
from scripts import scripts_of

ROOT = Path(__file__).resolve().parents[2]
DOORBELL = ROOT / "examples" / "doorbell"
README = (DOORBELL / "README.md").read_text()


@pytest.fixture
def example():
    """Imports a script of the example."""
    with scripts_of(DOORBELL):
        yield __import__


def expected() -> dict:
    return json.loads((DOORBELL / "expected.json").read_text())


def ran(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, DOORBELL / "run.py", *arguments]
    return subprocess.run(
        command, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=600
    )


@pytest.mark.emulated
def test_the_firmware_hears_what_the_readme_shows(tmp_path: Path) -> None:
    done = ran("--build-dir", tmp_path / "build")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (
        f"all {len(expected()['scores'])} steps: int8 scores equal TensorFlow Lite Micro's interpreter" in done.stdout
    )
    heard = re.findall(r"^\d+ ms: .*$", done.stdout, re.MULTILINE)
    shown = README.partition("```console\n")[2].partition("```")[0]
    assert heard and all(line in shown for line in heard)
    assert re.search(r"^arena .*$", done.stdout, re.MULTILINE)[0] in shown
    assert (tmp_path / "build" / "scores.svg").read_text() == (DOORBELL / "scores.svg").read_text()
    assert "the first 47 steps have no result" in " ".join(done.stdout.split())


def test_expected_scores_are_the_interpreters(example) -> None:
    pytest.importorskip("tflite_micro")
    script = example("expected")
    assert script.EXPECTED.read_text() == script.expected_text()


def test_it_hears_a_doorbell_then_an_alarm(example) -> None:
    names, best = example("sounds").CLASSES, [max(range(3), key=row.__getitem__) for row in expected()["scores"]]
    changes = [names[now] for before, now in zip([None, *best[:-1]], best, strict=True) if now != before]
    assert changes[:4] == ["nothing", "doorbell", "nothing", "alarm"]


def test_the_recording_is_the_scripts(example) -> None:
    sounds = example("sounds")
    difference = sounds.read_wav(sounds.RECORDING).astype(int) - sounds.recording()
    assert abs(difference).max() <= 1  # where another libm rounds otherwise


def test_the_front_end_is_that_of_the_command(tmp_path: Path, example) -> None:
    """README names the command that writes mel.tflite."""
    (command,) = re.findall(r"^tinyfuse (front-end .*?[^\\])$", README, re.MULTILINE | re.DOTALL)
    words = command.replace("\\\n", " ").split()
    words = [str(tmp_path / "mel.tflite") if word == "mel.tflite" else word for word in words]
    words = [str(DOORBELL / word) if word == "doorbell.tflite" else word for word in words]
    subprocess.run([sys.executable, "-P", "-m", "tinyfuse", *words], check=True, capture_output=True)
    assert (tmp_path / "mel.tflite").read_bytes() == (DOORBELL / "mel.tflite").read_bytes()


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda scores: scores[0].__setitem__(0, 7), "step 47: the firmware has"),
        (lambda scores: scores.pop(), "252 steps from step 47 on have a result; 253 from 47 on should"),
    ],
    ids=["a score", "a step"],
)
def test_a_difference_is_found(example, spoil, said: str) -> None:
    run, wanted = example("run"), expected()
    printed = "\n".join(
        f"step {n} {' '.join(map(str, row))}" for n, row in enumerate(wanted["scores"], wanted["first_step"])
    )
    found = run.scores_of(f"{printed}\n")
    assert run.differences(found, (wanted["first_step"], wanted["scores"])) == []
    spoil(found[1])
    (difference,) = run.differences(found, (wanted["first_step"], wanted["scores"]))
    assert difference.startswith(said)


@pytest.mark.parametrize("kind", ["text", "stereo", "absent"])
def test_files_that_nobody_hears(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "x.wav"
    if kind == "text":
        path.write_text("no sound")
    elif kind == "stereo":
        with wave.open(str(path), "wb") as file:
            file.setparams((2, 2, 44100, 0, "NONE", ""))
            file.writeframes(bytes(400))
    done = ran("--wav", path, "--build-dir", tmp_path / "build")
    assert done.returncode == 2 and "x.wav can't be heard" in done.stderr and not (tmp_path / "build").exists()


def test_the_model_is_what_the_readme_says() -> None:
    for name in ("doorbell.tflite", "mel.tflite", "recording.wav"):
        assert f"{(DOORBELL / name).stat().st_size:,} bytes" in README
