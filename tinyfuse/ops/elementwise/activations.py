"""Activations that are operators of their own: RELU, RELU6, LEAKY_RELU, HARD_SWISH, ELU, LOGISTIC, TANH."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tinyfuse.ir import Array, Op, float_math
from tinyfuse.ir.fixedpoint import (
    INT32_MAX,
    RANGE,
    activation_range,
    exp_on_negative_values,
    multiply_by_quantized_multiplier,
    one_minus_x_over_one_plus_x,
    one_over_one_plus_x,
    quantize_multiplier,
    rounding_divide_by_pot,
    saturate_16,
    saturating_doubling_high_mul_16,
    saturating_rounding_doubling_high_mul_16,
)
from tinyfuse.ir.float_math import Floats
from tinyfuse.ops.core.family import Rule
from tinyfuse.ops.core.uint8_functions import by_floats, clamped, logistic, rescaled
from tinyfuse.ops.core.unary import MOST_RATIO, RATIO_RULE, UnaryFamily, saturate, scale_ratio, unary_rules
from tinyfuse.ops.elementwise.sigmoid import SIGMOID_RULES, interpolated, sigmoid_scaling

_THREE = ("int8", "int16", "float32")
_ZERO, _ONE, _SIX = np.float32(0), np.float32(1), np.float32(6)


class ReluFamily(UnaryFamily):
    """RELU: rescales to the output's quantization, then clamps at its zero point."""

    kind = "RELU"
    computes_uint8 = True
    fused_as = "RELU"
    summary = "max(x, 0)"
    rules = (*unary_rules(*_THREE), RATIO_RULE)

    def function(self, op: Op, values: Array) -> Array:
        rescaled = multiply_by_quantized_multiplier(
            values.astype(np.int64) - op.input.zero_point, *quantize_multiplier(scale_ratio(op))
        )
        low, high = activation_range("RELU", op.output.scale, op.output.zero_point, op.output.dtype)
        return np.clip(rescaled + op.output.zero_point, low, high).astype(op.output.dtype)

    def function_of_uint8(self, op: Op, values: Array) -> Array:
        return clamped(op, values, None)

    def real(self, op: Op, x: Floats) -> Floats:
        return np.where(x < _ZERO, _ZERO, x)


class Relu6Family(UnaryFamily):
    """RELU6: clamps stored values to the range from 0 to 6 on the input's scale. TFLM ignores the output's
    quantization, so a different one changes nothing here either."""

    kind = "RELU6"
    computes_uint8 = True
    fused_as = "RELU6"
    summary = "min(max(x, 0), 6)"
    rules = (
        *unary_rules(*_THREE),
        Rule(
            "the input's scale is above 2^-28",
            lambda op: op.input if op.input.dtype in RANGE and op.input.scale <= 2.0**-28 else None,
        ),
    )

    def function(self, op: Op, values: Array) -> Array:
        return np.clip(values, *activation_range("RELU6", op.input.scale, op.input.zero_point, op.input.dtype))

    def function_of_uint8(self, op: Op, values: Array) -> Array:
        return clamped(op, values, 6.0)

    def real(self, op: Op, x: Floats) -> Floats:
        return np.where(x > _SIX, _SIX, np.where(x < _ZERO, _ZERO, x))


@dataclass(frozen=True)
class LeakyRelu:
    """Attributes of LEAKY_RELU: `alpha`, the factor of negative values."""

    alpha: float = 0.0


def alpha_multiplier(op: Op) -> float:
    """The real multiplier of a negative value of LEAKY_RELU, in double as `scale_ratio`."""
    return op.input.scale * float(np.float32(op.attributes_as(LeakyRelu).alpha)) / op.output.scale


class LeakyReluFamily(UnaryFamily):
    """LEAKY_RELU: positive and negative values are requantized with a multiplier each. That of a negative alpha is made
    from its magnitude, and the result is negated."""

    kind = "LEAKY_RELU"
    computes_uint8 = True
    options_table = "LeakyReluOptions"
    summary = "x, or alpha * x where x is negative"
    rules = (
        *unary_rules(*_THREE),
        RATIO_RULE,
        Rule(
            "alpha times the input's scale is below 2^21 times the output's, of int16 2^14 times",
            lambda op: op.input.dtype in MOST_RATIO and not abs(alpha_multiplier(op)) < MOST_RATIO[op.input.dtype],
        ),
    )

    def attributes(self, options: Mapping[str, Any]) -> LeakyRelu:
        return LeakyRelu(options.get("alpha", 0.0))

    def function(self, op: Op, values: Array) -> Array:
        data, alpha = values.astype(np.int64) - op.input.zero_point, alpha_multiplier(op)
        positive = multiply_by_quantized_multiplier(data, *quantize_multiplier(scale_ratio(op)))
        negative = multiply_by_quantized_multiplier(data, *quantize_multiplier(abs(alpha)))
        negative = -negative if alpha < 0 else negative
        return saturate(np.where(data >= 0, positive, negative) + op.output.zero_point, op.output.dtype)

    def function_of_uint8(self, op: Op, values: Array) -> Array:
        alpha = op.attributes_as(LeakyRelu).alpha
        return np.where(values >= op.input.zero_point, rescaled(op, values), rescaled(op, values, alpha))

    def real(self, op: Op, x: Floats) -> Floats:
        return np.where(x > _ZERO, x, x * np.float32(op.attributes_as(LeakyRelu).alpha))


def _hard_swish_multipliers(op: Op) -> tuple[tuple[int, int], tuple[int, int]]:
    """(multiplier in 16 bits, exponent) of the output, and of the factor between 0 and 1."""
    fine = np.float32(1 / 128) * np.float32(op.input.scale)
    found = []
    for ratio in (fine / np.float32(op.output.scale), fine / (np.float32(3) / np.float32(32768))):
        multiplier, exponent = quantize_multiplier(float(ratio))
        found.append((min((multiplier + (1 << 15)) >> 16, 32767), exponent))
    return found[0], found[1]


class HardSwishFamily(UnaryFamily):
    """HARD_SWISH in 16-bit fixed point (TFLM, reference/hard_swish.h).

    Multiplies x at 128 times the input's resolution by a factor that rises from 0 at -3 to 1 at 3.
    """

    kind = "HARD_SWISH"
    computes_uint8 = True
    summary = "x * min(max(x + 3, 0), 6) / 6"
    rules = (
        *unary_rules("int8", "float32"),
        Rule(
            "an int8 input's scale is from 2^-22 to 2^24",
            lambda op: op.input if op.input.dtype == "int8" and not 2.0**-22 <= op.input.scale <= 2.0**24 else None,
        ),
        Rule(
            "an int8 input's scale is from 2^-9 to 128 times the output's",
            lambda op: (
                op.input.dtype == "int8"
                and (
                    not 2.0**-10 < op.input.scale / op.output.scale < 2.0**8
                    or not -15 <= _hard_swish_multipliers(op)[0][1] <= 0
                )
            ),
            "TensorFlow Lite Micro refuses larger ones too",
        ),
    )

    def function(self, op: Op, values: Array) -> Array:
        (out, out_exponent), (factor, exponent) = _hard_swish_multipliers(op)
        fine = (values.astype(np.int64) - op.input.zero_point) << 7
        unshifted = saturating_rounding_doubling_high_mul_16(fine, out)
        left = max(exponent, 0)
        share = saturate_16(fine << max(left - 1, 0))
        share = saturating_rounding_doubling_high_mul_16(share, factor)
        share = saturate_16(share << min(left, 1))
        share = rounding_divide_by_pot(share, max(-exponent, 0))
        share = (share + (1 << 15)) >> 1
        result = rounding_divide_by_pot(saturating_doubling_high_mul_16(share, unshifted), -out_exponent)
        return saturate(result + op.output.zero_point)

    def real(self, op: Op, x: Floats) -> Floats:
        above = x + np.float32(3)
        above = np.where(above > _ZERO, above, _ZERO)
        result: Floats = x * np.where(above < _SIX, above, _SIX) / _SIX
        return result


class EluFamily(UnaryFamily):
    """ELU: int8 in float32, with one exp for each stored value; float32 with tinyfuse's own expm1.

    TFLM calls the C library's exp when it loads the model. Here exp is computed in double and rounded, which agrees
    with glibc.
    """

    kind = "ELU"
    summary = "x, or exp(x) - 1 where x is negative"
    rules = (
        *unary_rules("int8", "float32"),
        RATIO_RULE,
        Rule(
            "an int8 input's scale is below 2^100, and the output's above 2^-21",
            lambda op: op.input.dtype == "int8" and (op.input.scale >= 2.0**100 or op.output.scale <= 2.0**-21),
        ),
    )

    def function(self, op: Op, values: Array) -> Array:
        inverse = np.float32(1) / np.float32(op.output.scale)
        real = np.float32(op.input.scale) * (values.astype(np.int64) - op.input.zero_point).astype(np.float32)
        exps = np.array([math.exp(min(x, 0.0)) for x in real.reshape(-1).tolist()], np.float32)
        scaled = np.where(real < 0, exps.reshape(real.shape) - np.float32(1), real) * inverse
        rounded = np.copysign(np.floor(np.abs(scaled.astype(np.float64)) + 0.5), scaled)
        return saturate(rounded.astype(np.int64) + op.output.zero_point)

    def real(self, op: Op, x: Floats) -> Floats:
        return np.where(x < _ZERO, float_math.expm1(x), x)

    def ulp(self, op: Op) -> int | None:
        return 2 if op.input.dtype == "float32" else None


#: integer bits of the rescaled input (Q4.27) of LOGISTIC and TANH
_INPUT_BITS = 4


def _fixed_point(op: Op, values: Array) -> tuple[Array, Array]:
    """(Q4.27, side) of stored values: `side` is 1 or -1 where a value is at or beyond the radius that
    Q4.27 can hold, else 0. At a radius of 0, TFLM looks at the lower side first."""
    multiplier, shift = quantize_multiplier(op.input.scale * 2.0 ** (31 - _INPUT_BITS))
    radius = math.floor(((1 << _INPUT_BITS) - 1) * 2.0 ** (31 - _INPUT_BITS) / 2.0**shift)
    data = values.astype(np.int64) - op.input.zero_point
    side = np.where(data <= -radius, -1, np.where(data >= radius, 1, 0))
    return multiply_by_quantized_multiplier(np.where(side == 0, data, 0), multiplier, shift), side


def _output_rule(scale: float, zero_point: int) -> Rule:
    return Rule(
        f"an int8 output's scale is 1/{round(1 / scale)} and its zero point {zero_point}",
        lambda op: (
            op.output
            if op.output.dtype == "int8" and (op.output.scale, op.output.zero_point) != (scale, zero_point)
            else None
        ),
        "that is the range of the function; quantize with a converter that knows it",
    )


_INPUT_RULE = Rule(
    "an int8 input's scale is from 2^-28 to 2^30",
    lambda op: op.input if op.input.dtype == "int8" and not 2.0**-28 <= op.input.scale <= 2.0**30 else None,
)


#: beyond this float32 LOGISTIC is 1
_LOGISTIC_ONE = np.float32(16.619047164916992188)


def logistic_scaling(op: Op) -> tuple[int, int]:
    """(multiplier, right shift) of an int16 LOGISTIC's input."""
    return sigmoid_scaling(op, (0,))


def tanh_scaling(op: Op) -> tuple[int, int]:
    """Return (multiplier, right shift) of an int16 TANH's input."""
    return sigmoid_scaling(op, (0, 1))


class LogisticFamily(UnaryFamily):
    """LOGISTIC: the int8 input, converted to Q4.27, goes through gemmlowp's fixed-point 1 / (1 + exp(-x)). Beyond the
    range of Q4.27 the result saturates."""

    kind = "LOGISTIC"
    computes_uint8 = True
    summary = "1 / (1 + exp(-x))"
    rules = (*unary_rules(*_THREE), _output_rule(1 / 256, -128), _INPUT_RULE, *SIGMOID_RULES)

    def function(self, op: Op, values: Array) -> Array:
        if op.input.dtype == "int16":
            data, size = interpolated(values, *logistic_scaling(op), 9)
            return (np.where(data >= 0, size + (1 << 9), (1 << 25) - size + (1 << 9) - 1) >> 10).astype(np.int16)
        low, high = RANGE["int8"]
        x, side = _fixed_point(op, values)
        positive = one_over_one_plus_x(exp_on_negative_values(-np.abs(x), _INPUT_BITS))
        logistic = np.where(x > 0, positive, INT32_MAX - positive)
        logistic = np.where(x == 0, 1 << 30, logistic)
        result = np.clip(rounding_divide_by_pot(logistic, 31 - 8) + low, low, high)
        return np.where(side == 0, result, np.where(side > 0, high, low)).astype(np.int8)

    def function_of_uint8(self, op: Op, values: Array) -> Array:
        return by_floats(op, values, logistic)

    def real(self, op: Op, x: Floats) -> Floats:
        middle = _ONE / (_ONE + float_math.exp(-x))
        return np.where(x > _LOGISTIC_ONE, _ONE, np.where(x < np.float32(-9), float_math.exp(x), middle))

    def ulp(self, op: Op) -> int | None:
        return 3 if op.input.dtype == "float32" else None


class TanhFamily(UnaryFamily):
    """TANH: gemmlowp's (1 - exp(-2x)) / (1 + exp(-2x)) of the magnitude, with the sign put back."""

    kind = "TANH"
    computes_uint8 = True
    summary = "hyperbolic tangent"
    rules = (*unary_rules(*_THREE), _output_rule(1 / 128, 0), _INPUT_RULE, *SIGMOID_RULES)

    def function(self, op: Op, values: Array) -> Array:
        if op.input.dtype == "int16":
            data, size = interpolated(values, *tanh_scaling(op), 8)
            return (np.where(data >= 0, size - (1 << 23) + 128, (1 << 23) - size + 127) >> 8).astype(np.int16)
        low, high = RANGE["int8"]
        x, side = _fixed_point(op, values)
        # Q4.27 read as Q5.26 is twice the value
        size = one_minus_x_over_one_plus_x(exp_on_negative_values(-np.abs(x), _INPUT_BITS + 1))
        result = np.clip(rounding_divide_by_pot(np.sign(x) * size, 31 - 7), low, high)
        return np.where(side == 0, result, np.where(side > 0, high, low)).astype(np.int8)

    def function_of_uint8(self, op: Op, values: Array) -> Array:
        return by_floats(op, values, math.tanh)

    def real(self, op: Op, x: Floats) -> Floats:
        return float_math.tanh(x)

    def ulp(self, op: Op) -> int | None:
        return 3 if op.input.dtype == "float32" else None
