"""DIV, FLOOR_DIV and FLOOR_MOD, with broadcasting. If FLOOR_DIV divides by 0, TFLM ends the run. Here a float32 result
is that of IEEE 754, as for DIV, and an int32 result is 0."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tinyfuse.ir import Array, Int64s, Op
from tinyfuse.ir.fixedpoint import (
    RANGE,
    clamp,
    multiply_by_quantized_multiplier,
    one_over_one_plus_x,
    quantize_multiplier,
    saturating_rounding_doubling_high_mul,
)
from tinyfuse.ir.float_math import Floats
from tinyfuse.ops.core.binary import Binary, Multiplier, whole_clamp
from tinyfuse.ops.core.convolution import clamp_range
from tinyfuse.ops.core.convolution_rules import ACTIVATION_RULES
from tinyfuse.ops.core.family import Rule
from tinyfuse.ops.core.real import clamp_real, real_clamp
from tinyfuse.ops.elementwise.elementwise import (
    QUANTIZATION_RULE,
    SHAPE_RULES,
    TWO_INPUTS,
    BinaryFamily,
    binary_dtypes,
)


def div_multiplier(op: Op) -> Multiplier:
    """(multiplier, shift) of the quotient of stored int8 values."""
    return quantize_multiplier(op.operand(0).scale / (op.operand(1).scale * op.output.scale))


def reciprocals() -> Array:
    """int64 [256]: 2^31 / size, in 31 bits, for each absolute value `size` (0 to 255) of an int8 divisor less its zero
    point."""
    sizes = np.arange(256, dtype=np.int64)
    leading = np.array([32 - int(size).bit_length() for size in sizes])
    inverse: Int64s = one_over_one_plus_x((sizes << leading) - (1 << 31))
    inverse[0] = 0
    return inverse


class DivFamily(BinaryFamily):
    """DIV. int8: the first operand, shifted left as far as possible, times a 31-bit reciprocal of the second, rescaled.
    Division by 0, which TFLM leaves undefined, gives the output's zero point."""

    kind = "DIV"
    options_table = "DivOptions"
    summary = "a / b, with broadcasting"
    rules = (
        TWO_INPUTS,
        binary_dtypes("int8", "int32", "float32"),
        QUANTIZATION_RULE,
        *SHAPE_RULES,
        *ACTIVATION_RULES,
        Rule(
            "of int8, the first scale is from 64 to below 2^23 times the product of the others",
            lambda op: op.output.dtype in RANGE and not 7 <= div_multiplier(op)[1] <= 23,
            "TensorFlow Lite Micro would shift by more than 31 bits; a finer scale of the output would do",
        ),
    )

    def attributes(self, options: Mapping[str, Any]) -> Binary:
        return Binary(options.get("fused_activation_function", "NONE"))

    def function(self, op: Op, a: Array, b: Array) -> Array:
        if op.output.dtype == "int32":
            divisor = np.where(b == 0, 1, b).astype(np.int64)
            dividend = np.where(b == 0, 0, a).astype(np.int64)
            towards_zero: Int64s = np.sign(dividend) * np.sign(divisor) * (np.abs(dividend) // np.abs(divisor))
            return clamp(towards_zero.astype(np.int32), *whole_clamp(op), "int32")
        x, y = (d.astype(np.int64) - t.zero_point for d, t in zip((a, b), op.operands, strict=True))
        x, size = np.where(y < 0, -x, x), np.abs(y)
        # leading sign bits of 32: of a negative number as many as of its complement
        headroom = 31 - _bit_length(np.where(x < 0, ~x, x))
        quotient = saturating_rounding_doubling_high_mul(x << headroom, reciprocals()[size])
        multiplier, shift = div_multiplier(op)
        right = headroom + _bit_length(size) - 1 - shift
        scaled = multiply_by_quantized_multiplier(quotient, multiplier, -right)
        return clamp(np.where(size == 0, 0, scaled) + op.output.zero_point, *clamp_range(op))

    def real(self, op: Op, a: Floats, b: Floats) -> Floats:
        return clamp_real(a / b, *real_clamp(op))


def _bit_length(values: Array) -> Int64s:
    """Return the bit length of values from 0 to 511."""
    lengths = np.array([number.bit_length() for number in range(512)], np.int64)
    found: Int64s = lengths[values]
    return found


_RULES = (TWO_INPUTS, binary_dtypes("float32"), *SHAPE_RULES)


class FloorDivFamily(BinaryFamily):
    """FLOOR_DIV: the quotient is computed in float64, as in TFLM, and then rounded down."""

    kind = "FLOOR_DIV"
    summary = "a / b rounded down, with broadcasting"
    rules = _RULES

    def real(self, op: Op, a: Floats, b: Floats) -> Floats:
        quotient: Floats = np.floor(a.astype(np.float64) / b.astype(np.float64)).astype(np.float32)
        return quotient


class FloorModFamily(BinaryFamily):
    """FLOOR_MOD: the exact remainder, with the divisor's sign."""

    kind = "FLOOR_MOD"
    summary = "a - b * floor(a / b), with broadcasting"
    rules = _RULES

    def real(self, op: Op, a: Floats, b: Floats) -> Floats:
        rest = np.fmod(a, b)
        return np.where((rest != 0) & ((b < 0) != (rest < 0)), rest + b, rest)
