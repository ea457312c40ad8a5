"""Fully connected layers whose weights are computed at run time, as attention has them."""

from __future__ import annotations

import numpy as np
import pytest
from control_flow_models import choice, image
from executors import assert_all_exact, assert_reference_is_tflm, plan_of
from tflite_builder import ModelBuilder

from tinyfuse.compiler import check_graph
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.verify.emulation.inputs import input_set
from tinyfuse.verify.oracle import ReferenceOracle


def attention(
    dtype: str = "int8",
    activation: str = "NONE",
    bias: np.ndarray | None = None,
    batched: bool = False,
    constant: bool = False,
    weights_zero_point: int = 0,
) -> bytes:
    """A product of two activations, each made by an operator. `batched`: data and result are [2, 3, 8], otherwise [6,
    8]. `constant`: the data are a constant."""
    model, rng = ModelBuilder(), np.random.default_rng(3)
    floats = dtype == "float32"

    def tensor(name: str, shape: tuple[int, ...], scale: float, zero_point: int = 0, **more) -> int:
        return model.tensor(name, shape, dtype, *((None, None) if floats else (scale, zero_point)), **more)

    shape = (2, 3, 8) if batched else (6, 8)
    x, w = tensor("x", shape, 0.1, 5), tensor("w", (5, 8), 0.1, weights_zero_point)
    data, weights = tensor("data", shape, 0.07, -3), tensor("weights", (5, 8), 0.06, weights_zero_point)
    if constant:
        values = rng.integers(-128, 128, shape).astype(dtype)
        data = tensor("fixed", shape, 0.07, -3, data=values)
    model.op("LEAKY_RELU", [x], [data] if not constant else [tensor("data", shape, 0.07, -3)], alpha=0.5)
    model.op("LEAKY_RELU", [w], [weights], alpha=0.5)
    b = -1
    if bias is not None:
        b = model.tensor("bias", (5,), "float32" if floats else "int32", None if floats else 0.07 * 0.06, data=bias)
    y = tensor("y", (*shape[:-1], 5), 0.05, 11)
    model.op("FULLY_CONNECTED", [data, weights, b], [y], fused_activation_function=activation)
    return model.build([x, w], [y])


_FLOATS = np.array([0.5, -3, 7, 0, -0.1], np.float32)
MODELS = {
    "plain": lambda: attention(),
    "a zero point of the weights": lambda: attention(weights_zero_point=-7),
    "RELU": lambda: attention(activation="RELU"),
    "RELU6, batches": lambda: attention(activation="RELU6", batched=True),
    "RELU_N1_TO_1": lambda: attention(activation="RELU_N1_TO_1"),
    "a bias": lambda: attention(bias=np.array([1, -400, 0, 3000, 0], np.int32)),
    "a bias of zeros": lambda: attention(bias=np.zeros(5, np.int32)),
    "constant data": lambda: attention(constant=True),
    "float32": lambda: attention("float32"),
    "float32, bias, RELU_N1_TO_1": lambda: attention("float32", "RELU_N1_TO_1", _FLOATS),
    "float32, bias, batches": lambda: attention("float32", "NONE", _FLOATS, batched=True),
    "in a graph that IF runs": lambda: choice(_product_of_an_image(), _product_of_an_image()),
}


def _product_of_an_image():
    """Graph image -> image: its rows times the rows of a table that is computed from it."""
    model = ModelBuilder()
    x, y = image(model, "x"), image(model, "y")
    square, flat = model.tensor("square", (8, 4), scale=0.5, zero_point=3), model.tensor("flat", (8, 8), scale=9.0)
    first = model.tensor("first", (4, 8), scale=9.0)
    model.op("RESHAPE", [x], [square], new_shape=(8, 4))
    model.op("FULLY_CONNECTED", [square, square, -1], [flat])
    ends = [
        model.tensor(name, (2,), "int32", data=np.array(at, np.int32)) for name, at in (("b", (0, 0)), ("s", (4, 8)))
    ]
    model.op("SLICE", [flat, *ends], [first])
    model.op("RESHAPE", [first], [y], new_shape=(1, 4, 4, 2))
    return model, [x], [y]


@pytest.mark.parametrize("name", MODELS)
def test_references_are_tflms(name: str) -> None:
    assert_reference_is_tflm(MODELS[name]())


@pytest.mark.parametrize("target", ["host", "cortex-m4"])
def test_modules_are_exact(target: str) -> None:
    assert_all_exact([plan_of(make(), target, f"net{i}") for i, make in enumerate(MODELS.values())])


def test_infinite_sums_are_clamped_as_the_layer_does() -> None:
    graph = read_tflite("m.tflite", attention("float32"))
    (inputs,) = input_set(graph, 1, 0)
    huge = [[np.full_like(a, 3e38) for a in inputs], [np.full_like(a, -0.0) for a in inputs]]
    for before, after in zip(
        ReferenceOracle(graph).run_all(huge), ReferenceOracle(check_graph(graph)).run_all(huge), strict=True
    ):
        np.testing.assert_array_equal(before[0].view(np.uint32), after[0].view(np.uint32))
