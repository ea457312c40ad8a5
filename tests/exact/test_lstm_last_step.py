"""An LSTM of which only the last step is read keeps no other step."""

from __future__ import annotations

import numpy as np
import pytest
from executors import assert_exact, plan_of
from stream_models import add_lstm
from tflite_builder import ModelBuilder

from tinyfuse.frontend.reader import read_tflite
from tinyfuse.plan import Plan
from tinyfuse.rewrite.keep_last_step import keep_last_step

_QUANT = {
    "int8": ({"scale": 0.05, "zero_point": -7}, {"scale": 1 / 128, "zero_point": 5}),
    "int16": ({"scale": 0.05 / 256, "zero_point": 0}, {"scale": 2.0**-15, "zero_point": 0}),
    "float32": ({}, {}),
}


def read_at(step: int, dtype: str = "int8", kind: str = "STRIDED_SLICE", time_major: bool = False, batches: int = 1,
            count: int = 1, whole: bool = False) -> bytes:  # fmt: skip
    """An LSTM of 9 steps of which `count` are read from `step` on. `whole`: other operators read all steps."""
    shape, units, time = (9, batches, 4) if time_major else (batches, 9, 4), 6, 0 if time_major else 1
    model, (of_x, of_y) = ModelBuilder(), _QUANT[dtype]
    x = model.tensor("x", shape, dtype, **of_x)
    steps = add_lstm(model, x, shape, units, "lstm", time_major=time_major, dtype=dtype)
    begin, size = [0, 0, 0], [*shape[:2], units]
    begin[time], size[time] = step, count
    end = [b + s for b, s in zip(begin, size, strict=True)]
    numbers = [begin, size] if kind == "SLICE" else [begin, end, [1, 1, 1]]
    constants = [model.tensor(f"n{i}", (3,), "int32", data=np.array(n, np.int32)) for i, n in enumerate(numbers)]
    y = model.tensor("y", tuple(size), dtype, **of_y)
    model.op(kind, [steps, *constants], [y])
    return model.build([x], [y, steps] if whole else [y])


def lstm_bytes(plan: Plan) -> int:
    (op,) = (op for op in plan.graph.ops if op.kind.endswith("LSTM"))
    return op.output.bytes


@pytest.mark.parametrize("target", ["host", "cortex-m4"])
@pytest.mark.parametrize("dtype", _QUANT)
@pytest.mark.parametrize(("kind", "time_major", "batches"), [("STRIDED_SLICE", False, 1), ("SLICE", True, 3)])
def test_only_the_last_step_is_kept(target: str, dtype: str, kind: str, time_major: bool, batches: int) -> None:
    data = read_at(8, dtype, kind, time_major, batches)
    plan, whole = (plan_of(data, target, kernels="tinyfuse", fusion=fusion) for fusion in ("basic", "none"))
    assert lstm_bytes(plan) * 9 == lstm_bytes(whole) and plan.arena_bytes < whole.arena_bytes
    assert_exact(plan, runs=3)


@pytest.mark.parametrize(
    "options", [{"step": 7}, {"step": 7, "count": 2}, {"step": 8, "whole": True}, {"step": 8, "batches": 2}]
)
def test_what_else_is_read_stays(options: dict[str, int]) -> None:
    graph = read_tflite("m.tflite", read_at(**options))  # type: ignore[arg-type]
    assert keep_last_step(graph) is graph
