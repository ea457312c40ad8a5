"""A broken internal invariant ends a command with one message, also under `python -O`."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from executors import plan_of
from random_graphs import Sketch

from tinyfuse import __version__
from tinyfuse.cli.main import main
from tinyfuse.cli.terminal import fault_text
from tinyfuse.errors import InternalFault
from tinyfuse.ir import Tensor
from tinyfuse.plan.check.player import verify_plan

#: `tinyfuse report MODEL --target host` of a build whose planner puts every buffer at the arena's start
_SEEDED = """
import sys
from dataclasses import replace
from tinyfuse.schedule.plans import build

plan_arena = build.plan_arena


def wrong(buffers, overlaps, work_limit):
    placement = plan_arena(buffers, overlaps, work_limit)
    return replace(placement, offsets=dict.fromkeys(placement.offsets, 0))


if sys.argv.pop(1) == "seeded":
    build.plan_arena = wrong
from tinyfuse.cli.main import main

main()
"""


def model() -> bytes:
    sketch = Sketch(1)
    x = sketch.value((1, 9, 7, 8))
    return sketch.build([x], [sketch.conv(sketch.depthwise(x, (3, 3)), 16, (1, 1))])


def command(folder: Path, *arguments: str) -> subprocess.CompletedProcess:
    (folder / "model.tflite").write_bytes(model())
    (folder / "seeded.py").write_text(_SEEDED)
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=120, cwd=folder, check=False
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("optimized", [(), ("-O",)])
def test_a_wrong_plan_is_told_and_nothing_is_written(tmp_path: Path, optimized: tuple[str, ...]) -> None:
    generate = ("gen", "model.tflite", "--target", "host", "-o", "out")
    done = command(tmp_path, *optimized, "seeded.py", "seeded", *generate)
    assert (done.returncode, done.stdout) == (5, "")
    (line,) = done.stderr.splitlines()
    assert "a fault of tinyfuse itself, found by the check of the placement" in line and "share bytes" in line
    assert "report it" in line and not (tmp_path / "out").exists()
    assert command(tmp_path, *optimized, "seeded.py", "sound", *generate).returncode == 0


@pytest.mark.slow
def test_it_is_json_where_that_is_wanted(tmp_path: Path) -> None:
    done = command(tmp_path, "-O", "seeded.py", "seeded", "gen", "model.tflite", "--target", "host", "--json")
    assert json.loads(done.stdout)["error"]["exit_code"] == done.returncode == 5


def test_the_checker_says_where_and_what() -> None:
    plan = plan_of(model())
    tensor = plan.graph.outputs[0]
    storage = plan.storage | {tensor: replace(plan.storage[tensor], offset=plan.storage[tensor].offset + 4)}
    with pytest.raises(InternalFault) as fault:
        verify_plan(replace(plan, storage=storage))
    assert fault.value.where == "the checker of plans" and "outside its buffer" in fault.value.what


def _commands() -> list[str]:
    return [name for name, command in main.commands.items() if command is None or not command.hidden]


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize("name", _commands())
def test_an_exception_that_no_command_expects_is_one_message(
    name: str, as_json: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = main.commands[name]
    assert command is not None

    def broken(*_: object) -> None:
        raise ValueError("a matrix\nof nothing")

    monkeypatch.setattr(command, "invoke", broken)
    monkeypatch.setattr(command, "parse_args", lambda context, arguments: [])
    arguments = [name, "a model.tflite", "--json"] if as_json else [name, "a model.tflite"]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 5
    message = (
        json.loads(done.stdout)["error"]["message"] if as_json else done.stderr.removeprefix("tinyfuse: ").rstrip()
    )
    assert (len(message.splitlines()), bool(done.stdout)) == (1, as_json)
    assert "a fault of tinyfuse itself: ValueError: a matrix of nothing" in message
    assert "Please report it" in message and f"tinyfuse {__version__}, Python " in message
    assert message.endswith(f"tinyfuse {name} 'a model.tflite'{' --json' if as_json else ''}")


def test_the_place_is_the_last_one_in_tinyfuse() -> None:
    with pytest.raises(KeyError) as fault:
        Tensor("x", (1,), "int7").bytes  # noqa: B018
    text = fault_text(fault.value, ["gen", "m.tflite"])
    assert "a fault of tinyfuse itself: KeyError: 'int7' (graph.py:" in text and ", bytes)" in text
