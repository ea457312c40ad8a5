"""`gen --measure` and `report --measure` on an emulated core."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from sized_networks import line_network
from test_emulation import needs_qemu

from tinyfuse.cli.main import main


def run(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words], catch_exceptions=False)


def answer(*words: object) -> dict[str, Any]:
    done = run(*words, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "line.tflite"
    path.write_bytes(line_network(41_003, "int8"))
    return path


@pytest.mark.emulated
@needs_qemu
def test_the_printed_options_make_the_same_files(model: Path, tmp_path: Path) -> None:
    data = answer("gen", model, "--target", "cortex-m4", "-o", tmp_path / "measured", "--measure")
    measured = data["measured"]
    (chosen,) = [each for each in measured if each["chosen"]]
    assert 1 < len(measured) <= 3
    assert measured[0]["options"] == ""
    assert (chosen["arena_bytes"], chosen["predicted_instructions"]) == (
        data["arena_bytes"], data["predicted_instructions"],
    )  # fmt: skip
    options = chosen["options"].split()
    again = answer("gen", model, "--target", "cortex-m4", "-o", tmp_path / "again", *options)
    assert again["measured"] is None
    assert again["files"] == data["files"]


@pytest.mark.emulated
@needs_qemu
@pytest.mark.parametrize(
    "optimize", ["balanced", *(pytest.param(each, marks=pytest.mark.campaign) for each in ("speed", "ram"))]
)
def test_figures_are_those_of_verify(model: Path, optimize: str) -> None:
    asked = (model, "--target", "cortex-m4", "--optimize", optimize)
    data = answer("report", *asked, "--measure")
    for each in data["measured"]:
        words = each["options"].split()
        found = answer("verify", *(asked if not words else (*asked[:3], *words)))
        assert (each["instructions"], each["stack_bytes"]) == (found["instructions"], found["stack_bytes"])
        assert each["code_bytes"] == found["flash_code_bytes"]


@pytest.mark.emulated
@needs_qemu
def test_limits_hold(model: Path) -> None:
    free = answer("report", model, "--target", "cortex-m4", "--optimize", "ram")
    most = free["arena_bytes"] + free["state_bytes"] + 16
    data = answer("report", model, "--target", "cortex-m4", "--optimize", "speed", "--max-ram", most, "--measure")
    assert all(each["arena_bytes"] + each["state_bytes"] <= most for each in data["measured"])


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--target", "cortex-m4", "--fusion", "basic"), "--measure needs --fusion rows, not basic"),
        (("--target", "host"), "give a --target of `tinyfuse targets` other than host"),
        (("--target", "cortex-m4", "--feed-rows"), "leave out --feed-rows"),
    ],
)
def test_refused_before_anything_is_written(model: Path, tmp_path: Path, words: tuple[str, ...], told: str) -> None:
    done = run("gen", model, *words, "-o", tmp_path / "out", "--measure")
    assert done.exit_code == 2 and told in " ".join(done.output.split())
    assert not (tmp_path / "out").exists()
