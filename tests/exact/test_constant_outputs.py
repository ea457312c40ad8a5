"""Outputs of a model that depend on no input: constants of the file, what operators make of constants alone, and both
beside others; against TensorFlow Lite Micro."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from executors import assert_all_exact, assert_exact, assert_reference_is_tflm, plan_of
from tflite_builder import ModelBuilder

from tinyfuse.frontend.reader import read_tflite
from tinyfuse.verify.varying_inputs import unchanging


def _constant(model: ModelBuilder, name: str, dtype: str, shape: tuple[int, ...] = (2, 3)) -> int:
    quant = (0.1, 3) if dtype == "int8" else (None, None)
    data = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    return model.tensor(name, shape, dtype, *quant, data=data)


def beside(dtype: str = "int8") -> bytes:
    """A model with three outputs: a constant of the file, a computed one, and the constant again."""
    model = ModelBuilder()
    c = _constant(model, "c", dtype)
    x, y = model.tensor("x", (1, 3, 4, 2), scale=0.1, zero_point=3), model.tensor("y", (1, 3, 4, 2), scale=0.2)
    model.op("LEAKY_RELU", [x], [y], alpha=0.5)
    return model.build([x], [c, y, c])


def folded() -> bytes:
    """A model whose outputs are a sum of constants and a shape."""
    model = ModelBuilder()
    a, b, total = _constant(model, "a", "int8"), _constant(model, "b", "int8"), model.tensor("sum", (2, 3), scale=0.2)
    x, shape = model.tensor("x", (1, 3, 4, 2), scale=0.1), model.tensor("shape", (4,), "int32")
    model.op("ADD", [a, b], [total])
    model.op("SHAPE", [x], [shape])
    return model.build([x], [total, shape])


def read_too() -> bytes:
    """A model with an output that is a constant which an operator also reads."""
    model = ModelBuilder()
    c = _constant(model, "c", "int8", (1, 3, 4, 2))
    x, y = model.tensor("x", (1, 3, 4, 2), scale=0.1, zero_point=3), model.tensor("y", (1, 3, 4, 2), scale=0.2)
    model.op("ADD", [x, c], [y])
    return model.build([x], [y, c])


MODELS: dict[str, Callable[[], bytes]] = {
    **{f"beside, {dtype}": lambda dtype=dtype: beside(dtype) for dtype in ("int8", "float32", "bool", "int64")},
    "folded": folded,
    "read too": read_too,
}


@pytest.mark.parametrize("name", MODELS)
def test_references_are_tflms(name: str) -> None:
    assert_reference_is_tflm(MODELS[name]())


@pytest.mark.parametrize("target", ["host", "cortex-m4"])
def test_modules_are_exact(target: str) -> None:
    assert_all_exact([plan_of(make(), target, f"net{i}") for i, make in enumerate(MODELS.values())])


@pytest.mark.parametrize(
    "options", [{"feed_rows": True}, {"step": True}, {"fusion": "none"}, {"weights_blob": True}], ids=str
)
def test_options(options: dict) -> None:
    assert_exact(plan_of(beside(), **options))


def test_nothing_is_said_of_outputs_that_cannot_change() -> None:
    graph = read_tflite("m.tflite", beside())
    runs = [[np.zeros(6, np.int8), np.full(24, run, np.int8), np.zeros(6, np.int8)] for run in range(3)]
    assert unchanging(graph, runs) == []
    assert unchanging(graph, [runs[0], runs[0]]) == ["y"]
