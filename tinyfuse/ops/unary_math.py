"""ABS and RSQRT of int8 tensors; NEG and SQUARE of float ones, for TFLM has no others."""

from __future__ import annotations

from functools import cache

import numpy as np

from tinyfuse.ir import Array, Op, given
from tinyfuse.ir.fixedpoint import inverse_sqrt_multiplier, multiply_by_quantized_multiplier, quantize_multiplier
from tinyfuse.ops.base import SAME_ROW, OpFamily, RowWindow, Rule
from tinyfuse.ops.unary import (
    ONE_INPUT,
    ONE_SHAPE,
    RATIO_RULE,
    UNARY_RULES,
    UnaryOperator,
    saturate,
    scale_ratio,
)


class AbsOperator(UnaryOperator):
    """The magnitude, requantized where the scales differ."""

    kind = "ABS"
    summary = "magnitude"
    rules = (*UNARY_RULES, RATIO_RULE)

    def function(self, op: Op, values: Array) -> Array:
        size = np.abs(values.astype(np.int64) - op.input.zero_point)
        if op.input.scale != op.output.scale:
            size = multiply_by_quantized_multiplier(size, *quantize_multiplier(scale_ratio(op)))
        return saturate(size + op.output.zero_point)


#: bits that keep the fraction of 1 / sqrt(value) between two requantizations
_FRACTION_BITS = 20


def _rsqrt_root(op: Op) -> float:
    """sqrt(input scale) * output scale: what 1 / sqrt(stored value) is divided by, in float32."""
    with np.errstate(over="ignore"):
        return float(np.sqrt(np.float32(op.input.scale)) * np.float32(op.output.scale))


@cache
def _inverse_roots() -> tuple[np.ndarray, np.ndarray]:
    """Multipliers and shifts, int64[256] each, of 1 / sqrt(offset) for the offsets 0 to 255 of an int8 value."""
    pairs = np.array([inverse_sqrt_multiplier(offset) for offset in range(256)], np.int64)
    return pairs[:, 0], pairs[:, 1]


class RsqrtOperator(UnaryOperator):
    """1 / sqrt of the stored value less its zero point, as a multiplier and a shift; zero gives the
    largest output."""

    kind = "RSQRT"
    summary = "1 / sqrt(x)"
    rules = (
        *UNARY_RULES,
        Rule(
            "the input's zero point is -128: no value is negative",
            lambda op: op.input if op.input.zero_point != -128 else None,
            "TensorFlow Lite Micro stops at a negative value; clamp before quantizing",
        ),
        Rule(
            "sqrt(input scale) times output scale is above 2^-30 and at most 2^12",
            lambda op: not 2.0**-30 < _rsqrt_root(op) <= 2.0**12,
        ),
    )

    def function(self, op: Op, values: Array) -> Array:
        multiplier, shift = quantize_multiplier(1.0 / _rsqrt_root(op))
        inverses, inverse_shifts = _inverse_roots()
        data = multiply_by_quantized_multiplier(np.int64(1), inverses, inverse_shifts + _FRACTION_BITS)
        results = multiply_by_quantized_multiplier(data, multiplier, shift - _FRACTION_BITS) + op.output.zero_point
        offsets = values.astype(np.int64) - op.input.zero_point
        return np.where(offsets == 0, 127, saturate(results)[offsets]).astype(np.int8)


class _FloatOperator(OpFamily):
    """Between a DEQUANTIZE and a QUANTIZE, where a converter leaves what has no int8 form."""

    elementwise = True

    rules = (
        ONE_INPUT,
        Rule(
            "input and output are float32",
            lambda op: next((t for t in (op.input, op.output) if t.dtype != "float32"), None),
            "TensorFlow Lite Micro computes it in float32 alone; take a product or a difference for int8",
        ),
        ONE_SHAPE,
    )

    def row_window(self, op: Op, index: int) -> RowWindow | None:
        return SAME_ROW if op.output.is_image else None


class NegOperator(_FloatOperator):
    """float32 -> float32 of one shape."""

    kind = "NEG"
    summary = "-x of floats"

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        return (-given(inputs[0]),)


class SquareOperator(_FloatOperator):
    """float32 -> float32 of one shape; what is too large becomes infinite."""

    kind = "SQUARE"
    summary = "x * x of floats"

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        with np.errstate(over="ignore", under="ignore"):
            return (given(inputs[0]) * given(inputs[0]),)
