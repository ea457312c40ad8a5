"""A promise of tinyfuse's own that does not hold ends a command with one message, under `python -O` too."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from executors import plan_of
from random_graphs import Sketch

from tinyfuse.errors import InternalFault
from tinyfuse.plan.checker import verify_plan

#: `tinyfuse report MODEL --target host` of a build whose planner puts every buffer at the arena's start
_SEEDED = """
import sys
from dataclasses import replace
from tinyfuse.schedule import build

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
