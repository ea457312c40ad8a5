"""Hostile files through the whole compiler: a module, or one clear refusal, within 10 s and a GiB.

`hostile_worker.py` does the compiling in a process with those limits. CI makes PASSES through its models; a campaign,

    pytest --campaign tests/hostile/test_hostile_compile.py        (TINYFUSE_FUZZ_SECONDS, TINYFUSE_FUZZ_SEED)

prints how many files it made, read, compiled, and ran under sanitizers, and what it found. A file that once was a find is kept in
hostile_files/ under the name of its fault.
"""

from __future__ import annotations

import json
import os
import random
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tflite
from tflite_builder import ModelBuilder

pytest.importorskip("ai_edge_litert", reason="needs the PyPI package ai-edge-litert")

from call_limit import at_most
from executors import plan_of
from hostile_worker import limited, limited_memory, starting_points
from mutant_trials import c_problem
from random_graphs import Sketch
from tflite_structure import structural_mutants

from tinyfuse.emit import emit
from tinyfuse.errors import CompileError
from tinyfuse.frontend.check import check
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.ops import FAMILIES

HERE = Path(__file__).resolve().parent
KEPT = sorted((HERE / "files").glob("*.tflite"))
#: for a process; there are two
PASSES = 1
CAMPAIGN_SECONDS = float(os.environ.get("TINYFUSE_FUZZ_SECONDS", "600"))
SEED = int(os.environ.get("TINYFUSE_FUZZ_SEED", "0"))


def fuzz(passes: int, seconds: float, seed: int, folder: Path, exact: int = 0) -> dict:
    return run_worker("hostile_worker.py", seconds, passes, seconds, seed, folder, exact)


def run_worker(script: str, seconds: float, *arguments: object) -> dict:
    """Returns the worker's figures; fails if its process crashes."""
    done = subprocess.run(
        [sys.executable, *map(str, (HERE.parent / "support" / script, *arguments))],
        capture_output=True, text=True, timeout=seconds + 120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.campaign)])
def test_random_files(seed: int, tmp_path: Path) -> None:
    figures = fuzz(PASSES, 300, seed, tmp_path)
    print(figures)
    assert figures["finds"] == []
    assert 0 < figures["compiled"] < figures["read"] < figures["files"]


@pytest.mark.campaign
def test_campaign(tmp_path: Path) -> None:
    figures = fuzz(1_000_000, CAMPAIGN_SECONDS, 1000 + SEED, tmp_path, exact=10)
    print(figures)
    assert figures["finds"] == []


@pytest.mark.parametrize("count", [300, pytest.param(100_000, marks=pytest.mark.campaign)])
@pytest.mark.parametrize("format", ["onnx", "pte"])
def test_mutants_of_other_formats(format: str, count: int, tmp_path: Path) -> None:
    seconds = 60 if count == 300 else 6 * CAMPAIGN_SECONDS
    figures = run_worker("hostile_ways_in.py", seconds, format, 2000 + SEED, count, seconds, tmp_path)
    print(figures)
    assert figures["finds"] == []
    assert 0 < figures["compiled"] < figures["read"] < figures["files"]


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.stem)
def test_what_was_found_once_stays_fixed(path: Path) -> None:
    for seed in range(12):  # other targets, kernels and fusion
        module = limited(path.read_bytes(), random.Random(seed))
    assert not isinstance(module, dict) or c_problem(module) is None


def test_starting_points_have_every_operator_that_a_file_can_have() -> None:
    kinds = {op.kind for data in starting_points().values() for op in read_tflite("m.tflite", data).ops}
    read = {"VAR_HANDLE", "CALL_ONCE"}  # the reader resolves them, so they are in files alone
    assert {kind for kind in FAMILIES if hasattr(tflite.BuiltinOperator, kind)} - read <= kinds


def test_many_calls_of_a_long_initialization_are_read_in_time() -> None:
    """Each CALL_ONCE plays its subgraph: a small file could ask for millions of operators."""
    model = ModelBuilder()
    x, y = model.tensor("x", (1, 4), scale=0.1, zero_point=0), model.tensor("y", (1, 4), scale=0.1, zero_point=0)
    for _ in range(5000):
        model.op("CALL_ONCE", [], [], init_subgraph_index=1)
    model.op("RELU", [x], [y])
    main = model.build([x], [y], subgraphs=2)
    with at_most(calls=10_000_000), pytest.raises(CompileError, match="it calls|has CALL_ONCE"):
        read_tflite("m.tflite", main)


def sketch_of(height: int, width: int, branches: int) -> bytes:
    """Adds an image and the result of `branches` on it."""
    sketch = Sketch(1)
    total = x = sketch.value((1, height, width, 4))
    made = [sketch.conv(sketch.depthwise(x, (3, 1)), 4, (1, 1)) for _ in range(branches)]
    for y in made:
        total = sketch.add(total, y)
    return sketch.build([x], [total])


@pytest.mark.parametrize(
    ("height", "width", "message"),
    [
        (2500, 1, None),  # each row was compared with all: minutes
        (60_000, 1, "its images have 360,000 rows in all, more than 262,144"),
        (64, 25_000, None),  # the plan's check took 24 bytes for each element of a call
        (64, 120_000, "take an arena of"),  # it takes eight times the arena
        (1 << 13, 1 << 11, "more than 33,554,432 bytes"),
    ],
)
def test_large_images_are_planned_or_refused_in_time(height: int, width: int, message: str | None) -> None:
    data = sketch_of(height, width, branches=1 if message is None else 2)
    with limited_memory(), at_most(calls=5_000_000):
        if message is None:
            plan_of(data, "cortex-m4")
        else:
            with pytest.raises(CompileError, match=message):
                plan_of(data, "cortex-m4")


def test_megabytes_of_weights_are_emitted_in_time() -> None:
    model = ModelBuilder()
    units, depth = 4096, 1024
    x, y = (
        model.tensor("x", (1, depth), scale=0.1, zero_point=0),
        model.tensor("y", (1, units), scale=0.1, zero_point=0),
    )
    data = np.random.default_rng(0).integers(-127, 128, (units, depth)).astype(np.int8)
    w = model.tensor("w", data.shape, scale=0.01, zero_point=0, data=data)
    b = model.tensor("b", (units,), "int32", data=np.zeros(units, np.int32))
    model.op("FULLY_CONNECTED", [x, w, b], [y])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with at_most(calls=data.size):
        text = emit(plan_of(model.build([x], [y]), "cortex-m4"))["net_weights.c"]
    assert len(text) > 4 * data.size
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak < 300 << 10  # KiB


def test_mutants_repeat_and_differ() -> None:
    data = starting_points()["network"]
    first, again, other = (structural_mutants(data, seed) for seed in (3, 3, 4))
    files = [next(first) for _ in range(30)]
    assert files == [next(again) for _ in range(30)] != [next(other) for _ in range(30)]
    assert len(set(files)) > 25


@pytest.mark.parametrize(
    ("code", "message", "hint"),
    [
        ("ethos-u", "a program for Arm's Ethos-U NPU, which Vela compiled", "the file that Vela was given"),
        ("FlexErf", "an operator of TensorFlow that the converter left", "TFLITE_BUILTINS_INT8"),
        ("mine\n\x1b[31m", "a custom operator, whose code is in the program", "built-in operators"),
        ("", "a custom operator", "built-in operators"),
    ],
)
def test_a_custom_operator_is_refused_by_what_it_is(code: str, message: str, hint: str) -> None:
    model = ModelBuilder()
    x, y = model.tensor("x", (1, 4), scale=0.1, zero_point=0), model.tensor("y", (1, 4), scale=0.1, zero_point=0)
    model.op("CUSTOM", [x], [y], custom_code=code)
    with pytest.raises(CompileError) as caught:
        check(read_tflite("m.tflite", model.build([x], [y])))
    (problem,) = caught.value.problems
    assert message in problem.message and hint in problem.hint
    assert "CUSTOM" in problem.operator and "\n" not in str(problem) and "\x1b" not in str(problem)
