"""Constants of zeros whose scale is 0: TensorFlow Lite Micro runs them where the scale is a factor of a multiplier, or
where nothing asks for it. Elsewhere they are refused."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from executors import assert_all_exact, assert_reference_is_tflm, plan_of
from tflite_builder import ModelBuilder

from tinyfuse.errors import CompileError

SHAPE = (1, 1, 6, 8)
Build = Callable[[ModelBuilder, int, int, str], int]


def network(build: Build, dtype: str) -> bytes:
    """A model that adds to its input what `build` makes of the input and of zeros with scale 0."""
    model = ModelBuilder()
    x = model.tensor("x", SHAPE, dtype, 0.02, 0)
    zeros = model.tensor("zeros", SHAPE, dtype, 0.0, 0, data=np.zeros(SHAPE, dtype))
    made, y = build(model, x, zeros, dtype), model.tensor("y", SHAPE, dtype, 0.03, 0)
    model.op("ADD", [x, made], [y], fused_activation_function="NONE")
    return model.build([x], [y])


def _result(model: ModelBuilder, dtype: str, shape: tuple[int, ...] = SHAPE, scale: float = 0.02) -> int:
    return model.tensor("made", shape, dtype, scale, 0)


def product(model: ModelBuilder, x: int, zeros: int, dtype: str) -> int:
    made = _result(model, dtype, scale=1e-40)
    model.op("MUL", [x, zeros], [made], fused_activation_function="NONE")
    return made


def greater(model: ModelBuilder, x: int, zeros: int, dtype: str) -> int:
    made = _result(model, dtype)
    model.op("MAXIMUM", [zeros, x], [made])
    return made


def quantized_again(model: ModelBuilder, x: int, zeros: int, dtype: str) -> int:
    made = _result(model, dtype)
    model.op("QUANTIZE", [zeros], [made])
    return made


def layer(model: ModelBuilder, x: int, zeros: int, dtype: str) -> int:
    """A convolution whose filter is all zeros with a single scale."""
    weights = model.tensor("weights", (8, 1, 1, 8), "int8", 0.0, 0, data=np.zeros((8, 1, 1, 8), np.int8))
    made = _result(model, dtype)
    model.op("CONV_2D", [x, weights], [made], padding="SAME", stride_h=1, stride_w=1, dilation_h_factor=1,
             dilation_w_factor=1, fused_activation_function="NONE")  # fmt: skip
    return made


def total(model: ModelBuilder, x: int, zeros: int, dtype: str) -> int:
    made = _result(model, dtype)
    model.op("ADD", [x, zeros], [made], fused_activation_function="NONE")
    return made


def difference(model: ModelBuilder, x: int, zeros: int, dtype: str) -> int:
    made = _result(model, dtype)
    model.op("SUB", [zeros, zeros], [made], fused_activation_function="NONE")
    return made


USED = [product, greater, quantized_again, layer]


@pytest.mark.parametrize("dtype", ["int8", "int16"])
@pytest.mark.parametrize("build", USED)
def test_zeros_without_a_scale_are_tflms(build: Build, dtype: str) -> None:
    assert_reference_is_tflm(network(build, dtype))


def test_modules_are_exact() -> None:
    models = [network(build, dtype) for build in USED for dtype in ("int8", "int16")]
    for optimize in ("balanced", "speed"):
        assert_all_exact([plan_of(data, name=f"net{i}", optimize=optimize) for i, data in enumerate(models)])


@pytest.mark.parametrize("dtype", ["int8", "int16"])
@pytest.mark.parametrize("build", [total, difference])
def test_a_scale_that_arithmetic_divides_by_is_refused(build: Build, dtype: str) -> None:
    with pytest.raises(CompileError, match="a scale is 0.0; .* needs a positive one"):
        plan_of(network(build, dtype))
