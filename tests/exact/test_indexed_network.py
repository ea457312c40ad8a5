"""Modules that pick, replace and move elements: every dtype at their borders and in their states, parts replaced in
place, and indexes outside, which end a run with an error."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from cases import NAMED
from cases.common import inputs_of, model_of
from executors import assert_all_exact, assert_exact, assert_reference_is_tflm, plan_of
from host_program import HostProgram
from random_graphs import Sketch, Value
from stream_models import add_handle
from stream_program import assert_all_stream
from tflite_builder import ModelBuilder

from tinyfuse.ir import Op
from tinyfuse.ops import FAMILIES
from tinyfuse.options import OPTIMIZE

_QUANT = {"int8": {"scale": 0.1, "zero_point": 3}, "int16": {"scale": 0.1, "zero_point": 0}}


def _tensor(model: ModelBuilder, name: str, shape, dtype: str) -> int:
    return model.tensor(name, shape, dtype, **_QUANT.get(dtype, {}))


def _numbers(model: ModelBuilder, name: str, values) -> int:
    data = np.array(values, np.int32)
    return model.tensor(name, data.shape, "int32", data=data)


def cache(dtype: str) -> bytes:
    """A cache: one entry is replaced at an index from the caller, and all of it is read."""
    model = ModelBuilder()
    x, where = _tensor(model, "x", (1, 1, 3), dtype), model.tensor("where", (3,), "int32")
    handle = add_handle(model, "cache")
    before, after = (_tensor(model, name, (1, 4, 3), dtype) for name in ("before", "after"))
    model.op("READ_VARIABLE", [handle], [before])
    model.op("DYNAMIC_UPDATE_SLICE", [before, x, where], [after], table=False)
    model.op("ASSIGN_VARIABLE", [handle, after], [])
    flat = _tensor(model, "flat", (12,), dtype)
    model.op("RESHAPE", [after, _numbers(model, "shape", (12,))], [flat])
    return model.build([x, where], [flat])


def last_frame(dtype: str) -> bytes:
    """Outputs the previous frame reversed, in dtypes for which TFLM's REVERSE_V2 has the widest support."""
    model = ModelBuilder()
    x, handle = _tensor(model, "x", (2, 5), dtype), add_handle(model, "last")
    last, y = (_tensor(model, name, (2, 5), dtype) for name in ("before", "y"))
    model.op("READ_VARIABLE", [handle], [last])
    model.op("REVERSE_V2", [last, _numbers(model, "axis", (1,))], [y], table=False)
    model.op("ASSIGN_VARIABLE", [handle, x], [])
    return model.build([x], [y])


def wide(dtype: str) -> bytes:
    """Wide elements, repeated, next to a tensor of five bytes: they may be aligned to words only."""
    model = ModelBuilder()
    x, small = _tensor(model, "x", (3, 1), dtype), _tensor(model, "small", (1, 5), "int8")
    spread, y = _tensor(model, "spread", (2, 3, 5), dtype), _tensor(model, "y", (1, 30), dtype)
    back, same = _tensor(model, "back", (1, 5), "int8"), _tensor(model, "same", (5,), "int8")
    model.op("BROADCAST_TO", [x, _numbers(model, "shape", (2, 3, 5))], [spread], table=False)
    model.op("RESHAPE", [spread, _numbers(model, "flat", (1, 30))], [y])
    model.op("REVERSE_V2", [small, _numbers(model, "axes", (0, 1))], [back], table=False)
    model.op("RESHAPE", [back, _numbers(model, "five", (5,))], [same])
    return model.build([small, x], [same, y])


STREAMS = {
    **{f"cache of {dtype}": cache(dtype) for dtype in ("int8", "int16", "int32", "float32")},
    **{
        f"last frame of {dtype}": last_frame(dtype) for dtype in ("bool", "uint8", "int16", "int32", "int64", "float32")
    },
}
WIDE = {dtype: wide(dtype) for dtype in ("bool", "uint32", "int64", "uint64", "float32")}


@pytest.mark.parametrize("name", STREAMS)
def test_references_of_states_of_every_dtype_are_tflm(name: str) -> None:
    pytest.importorskip("tflite_micro")
    assert_reference_is_tflm(STREAMS[name], runs=8)


def test_states_of_every_dtype() -> None:
    assert_all_stream([plan_of(data) for data in STREAMS.values()])


def test_borders_of_every_dtype() -> None:
    pytest.importorskip("tflite_micro")
    for data in WIDE.values():
        assert_reference_is_tflm(data)
    assert_all_exact([plan_of(data) for data in WIDE.values()])


@pytest.mark.emulated
def test_on_a_core() -> None:
    assert_all_exact([plan_of(data, "cortex-m4") for data in WIDE.values()])


def test_a_part_is_replaced_in_place() -> None:
    """The tensor is computed in the run and has no other reader."""
    model = ModelBuilder()
    x, part = _tensor(model, "x", (1, 16), "int8"), _tensor(model, "part", (2, 16), "int8")
    where = model.tensor("where", (2,), "int32")
    spread, y = (_tensor(model, name, (8, 16), "int8") for name in ("spread", "y"))
    model.op("BROADCAST_TO", [x, _numbers(model, "shape", (8, 16))], [spread], table=False)
    model.op("DYNAMIC_UPDATE_SLICE", [spread, part, where], [y], table=False)
    plan = plan_of(model.build([x, part, where], [y]))
    assert plan.arena_bytes < 2 * plan.graph.outputs[0].bytes
    assert_exact(plan)


# --- indexes outside -------------------------------------------------------------------------

#: of what ends a run: the case, and the number of the run-time input with the indexes
ENDING: tuple[tuple[Op, int], ...] = (
    (NAMED["GATHER"]["rows"], 1),
    (NAMED["GATHER_ND"]["rows"], 1),
    (NAMED["EMBEDDING_LOOKUP"]["int8"], 0),
    (NAMED["EMBEDDING_LOOKUP"]["dequantized"], 0),
    (NAMED["SCATTER_ND"]["rows"], 0),
    (NAMED["REVERSE_SEQUENCE"]["in rows of a batch"], 1),
)


def _outside(inputs: list[np.ndarray], op: Op, index: int, below: bool) -> list[np.ndarray] | None:
    """The inputs with one index just out of range, or None if an index that is too low does no harm."""
    low, high = FAMILIES[op.kind].indexes(op, index)
    if below and low < 0:
        return None
    changed = [array.copy() for array in inputs]
    changed[index].reshape(-1)[-1] = low - 1 if below else high + 1
    return changed


def test_an_index_outside_ends_the_run(tmp_path: Path) -> None:
    """One program for all: the first run succeeds, and each other one fails at the one module that gets a bad index."""
    program = HostProgram(tmp_path, [plan_of(model_of(op)) for op, _ in ENDING])
    good = [inputs_of(op)[3] for op, _ in ENDING]

    def status(inputs: list[list[np.ndarray]]) -> int:
        fed = b"".join(array.tobytes() for module in inputs for array in module)
        no_leaks = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}  # it frees nothing where a run fails
        return subprocess.run([program.program, "1"], input=fed, capture_output=True, env=no_leaks).returncode

    assert status(good) == 0
    for number, (op, index) in enumerate(ENDING):
        for below in (False, True):
            bad = _outside(good[number], op, index, below)
            assert bad is None or status([*good[:number], bad, *good[number + 1 :]]) == 4, (op.kind, below)


# --- what follows from shapes ----------------------------------------------------------------


def filled_like(values: str) -> bytes:
    """x plus a value in a shape that is computed from x, by FILL, ZEROS_LIKE or BROADCAST_TO."""
    model = ModelBuilder()
    x, y = _tensor(model, "x", (2, 3), "int8"), _tensor(model, "y", (2, 3), "int8")
    shape, filled = model.tensor("shape", (2,), "int32"), _tensor(model, "filled", (2, 3), "int8")
    zero = model.tensor("zero", (), "int8", data=np.array(4, np.int8), **_QUANT["int8"])
    model.op("SHAPE", [x], [shape])
    if values == "FILL":
        model.op("FILL", [shape, zero], [filled], table=False)
    elif values == "ZEROS_LIKE":
        model.op("ZEROS_LIKE", [x], [filled], table=False)
    else:
        wider = model.tensor("wider", (2,), "int32")
        model.op("BROADCAST_ARGS", [shape, _numbers(model, "row", (1, 3))], [wider], table=False)
        model.op("BROADCAST_TO", [zero, wider], [filled], table=False)
    model.op("ADD", [x, filled], [y])
    return model.build([x], [y])


@pytest.mark.parametrize("values", ["FILL", "ZEROS_LIKE", "BROADCAST_TO"])
def test_what_follows_from_shapes_is_constant(values: str) -> None:
    plan = plan_of(filled_like(values))
    assert [op.kind for op in plan.graph.ops] == ["ADD"]
    assert_exact(plan)


# --- among layers ----------------------------------------------------------------------------


def _chain(seed: int) -> bytes:
    """Layers on an image with random data movement between them."""
    sketch = Sketch(seed)
    rng = np.random.default_rng(seed)
    x = image = sketch.value((1, *rng.integers(3, 7, 2).tolist(), int(rng.integers(2, 6))), 0.05, 0)
    for step in range(4):
        x = sketch.conv(x, int(rng.integers(2, 6)), (3, 3) if step % 2 else (1, 1))
        x = _moved(sketch, x, rng)
    return sketch.build([image], [sketch.fully_connected(x, 5) if rng.random() < 0.5 else x])


def _moved(sketch: Sketch, x: Value, rng: np.random.Generator) -> Value:
    _, height, width, depth = x.shape
    kind = rng.choice(["REVERSE_V2", "TILE", "BROADCAST_TO", "SPACE_TO_BATCH_ND", "DYNAMIC_UPDATE_SLICE"])
    if kind == "REVERSE_V2":
        return sketch.moved(kind, x, x.shape, [int(rng.integers(1, 4))])
    if kind == "TILE":
        axis = int(rng.integers(1, 4))
        times = [2 if d == axis and x.shape[d] < 12 else 1 for d in range(4)]
        return sketch.moved(kind, x, [dim * n for dim, n in zip(x.shape, times, strict=True)], times)
    if kind == "BROADCAST_TO":
        row = sketch.moved("SLICE", x, (1, 1, width, depth), [0, 0, 0, 0], [1, 1, width, depth])
        return sketch.moved(kind, row, x.shape, x.shape)
    if kind == "SPACE_TO_BATCH_ND":
        above, below = 2, 2 + height % 2
        shape = (2, (height + above + below) // 2, width, depth)
        batch = sketch.moved(kind, x, shape, [2, 1], [[above, below], [0, 0]])
        y = sketch.conv(batch, depth, (3, 1), padding="VALID")
        return sketch.moved("BATCH_TO_SPACE_ND", y, (1, height, width, depth), [2, 1], [[0, height % 2], [0, 0]])
    part = sketch.moved("SLICE", x, (1, 2, 1, depth), [0, 1, 0, 0], [1, 2, 1, depth])
    y = sketch.value(x.shape, x.scale, x.zero_point)
    where = sketch.constant(rng.integers(-1, 5, 4).tolist())
    sketch.model.op(kind, [x.index, part.index, where], [y.index], table=False)
    return y


def test_moves_among_layers() -> None:
    """Rewrites, views and places in the arena keep every bit, whatever they make of them."""
    plans = [plan_of(_chain(seed), optimize=OPTIMIZE[seed % 3]) for seed in range(18)]
    assert_all_exact(plans, runs=4)
