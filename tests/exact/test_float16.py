"""Weights of float16 behind DEQUANTIZE: float32 when a model is compiled, as LiteRT computes them."""

from __future__ import annotations

import numpy as np
import pytest
from executors import assert_exact, plan_of
from tflite_builder import ModelBuilder

from tinyfuse.errors import CompileError
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.rewrite.fold_constants import fold_constants
from tinyfuse.verify.emulation.inputs import input_set
from tinyfuse.verify.oracle import ReferenceOracle, make_oracle

#: zeros, subnormal numbers, the ends, and what lies between
VALUES = np.array([0, -0.0, 2**-24, -3 * 2**-24, 2**-14, 65504, -65504, 1, -1 / 3, 1000.5], np.float16)


def model_of(halves: np.ndarray) -> bytes:
    """A model whose outputs are the input and the dequantized constants."""
    model = ModelBuilder()
    x = model.tensor("x", (1, 4), "float32")
    half = model.tensor("half", (1, halves.size), "float16", data=halves.reshape(1, -1))
    single = model.tensor("single", (1, halves.size), "float32")
    y = model.tensor("y", (1, 4 + halves.size), "float32")
    model.op("DEQUANTIZE", [half], [single], version=3)
    model.op("CONCATENATION", [x, single], [y], axis=1)
    return model.build([x], [y])


def test_litert_agrees() -> None:
    pytest.importorskip("ai_edge_litert")
    data = model_of(VALUES)
    graph = read_tflite("m.tflite", data)
    assert [op.kind for op in fold_constants(graph).ops] == ["CONCATENATION"]
    inputs = input_set(graph, 2, 0)
    wanted = make_oracle("litert", data, graph).run_all(inputs)
    for ours, theirs in zip(ReferenceOracle(graph).run_all(inputs), wanted, strict=True):
        np.testing.assert_array_equal(ours[0].view(np.uint32), theirs[0].view(np.uint32))


def test_the_c_has_these_values() -> None:
    assert_exact(plan_of(model_of(VALUES)))


def test_computed_float16_is_refused() -> None:
    model = ModelBuilder()
    x, y = model.tensor("x", (1, 4), "float16"), model.tensor("y", (1, 4), "float32")
    model.op("DEQUANTIZE", [x], [y], version=3)
    with pytest.raises(CompileError, match="float16 is supported for constant weights alone"):
        read_tflite("m.tflite", model.build([x], [y]))
