"""ABS and RSQRT of int8, int16 and float32, and the functions that TFLM has only for float32."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from tinyfuse.ir import Array, Op, float_math
from tinyfuse.ir.fixedpoint import inverse_sqrt_multiplier, multiply_by_quantized_multiplier, quantize_multiplier
from tinyfuse.ir.float_math import Floats
from tinyfuse.ops.core.family import Rule
from tinyfuse.ops.core.unary import RATIO_RULE, UnaryFamily, saturate, scale_ratio, unary_rules


class AbsFamily(UnaryFamily):
    """ABS: the magnitude, requantized if input and output have different scales."""

    kind = "ABS"
    summary = "magnitude"
    rules = (*unary_rules("int8", "int16", "float32"), RATIO_RULE)

    def function(self, op: Op, values: Array) -> Array:
        size = np.abs(values.astype(np.int64) - op.input.zero_point)
        if op.input.scale != op.output.scale:
            size = multiply_by_quantized_multiplier(size, *quantize_multiplier(scale_ratio(op)))
        return saturate(size + op.output.zero_point, op.output.dtype)

    def real(self, op: Op, x: Floats) -> Floats:
        return np.abs(x)


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


class RsqrtFamily(UnaryFamily):
    """RSQRT: 1 / sqrt of the stored value less its zero point, by a multiplier and a shift. Zero gives the largest
    output."""

    kind = "RSQRT"
    summary = "1 / sqrt(x)"
    rules = (
        *unary_rules("int8", "float32"),
        Rule(
            "an int8 input's zero point is -128: no value is negative",
            lambda op: op.input if op.input.dtype == "int8" and op.input.zero_point != -128 else None,
            "TensorFlow Lite Micro stops at a negative value; clamp before quantizing",
        ),
        Rule(
            "of int8, sqrt(input scale) times output scale is above 2^-30 and at most 2^12",
            lambda op: op.input.dtype == "int8" and not 2.0**-30 < _rsqrt_root(op) <= 2.0**12,
        ),
    )

    def function(self, op: Op, values: Array) -> Array:
        multiplier, shift = quantize_multiplier(1.0 / _rsqrt_root(op))
        inverses, inverse_shifts = _inverse_roots()
        data = multiply_by_quantized_multiplier(np.int64(1), inverses, inverse_shifts + _FRACTION_BITS)
        results = multiply_by_quantized_multiplier(data, multiplier, shift - _FRACTION_BITS) + op.output.zero_point
        offsets = values.astype(np.int64) - op.input.zero_point
        return np.where(offsets == 0, 127, saturate(results)[offsets]).astype(np.int8)

    def real(self, op: Op, x: Floats) -> Floats:
        return np.divide(np.float32(1), np.sqrt(x))


def _rounded(x: Floats) -> Floats:
    """Round as TFLM does (reference/round.h): values from -0.5 to below 0 become 0, not -0."""
    below = np.floor(x)
    rest = x - below
    stays = (rest < np.float32(0.5)) | ((rest == np.float32(0.5)) & (np.fmod(below, np.float32(2)) == 0))
    return np.where(stays, below, below + np.float32(1))


class FloatFunction(UnaryFamily):
    """Family of a function that is computed in float32, in a float32 model or between a DEQUANTIZE and a QUANTIZE.
    `ulp`: as OpFamily.ulp."""

    rules = unary_rules("float32")

    def __init__(self, kind: str, summary: str, function: Callable[[Floats], Floats], ulp: int | None = None) -> None:
        self.kind, self.summary = kind, summary
        self._function, self._ulp = function, ulp

    def real(self, op: Op, x: Floats) -> Floats:
        return self._function(x)

    def ulp(self, op: Op) -> int | None:
        return self._ulp


#: exact except for functions of libm; SQUARE overflows to infinity, LOG and SQRT of negative numbers are NaN
FLOAT_FUNCTIONS = (
    FloatFunction("NEG", "-x of floats", np.negative),
    FloatFunction("SQUARE", "x * x of floats", np.square),
    FloatFunction("SQRT", "square root of floats", np.sqrt),
    FloatFunction("FLOOR", "the next integer below or at a float", np.floor),
    FloatFunction("CEIL", "the next integer above or at a float", np.ceil),
    FloatFunction("ROUND", "the nearest integer to a float, halves to the even one", _rounded),
    FloatFunction("EXP", "exp(x) of floats", float_math.exp, 1),
    FloatFunction("LOG", "natural logarithm of floats", float_math.log, 1),
    FloatFunction("SIN", "sine of floats", float_math.sin, 1),
    FloatFunction("COS", "cosine of floats", float_math.cos, 1),
)
