"""RELU, RELU6 and LOGISTIC, int8, where they stand alone."""

from __future__ import annotations

import math

import numpy as np

from tinyfuse.fixedpoint import (
    INT32_MAX,
    RANGE,
    activation_range,
    exp_on_negative_values,
    multiply_by_quantized_multiplier,
    one_over_one_plus_x,
    quantize_multiplier,
    rounding_divide_by_pot,
)
from tinyfuse.ir import Op, Tensor
from tinyfuse.kernels.activation import Clamp, Lookup
from tinyfuse.ops.base import SAME_ROW, Operator, RowWindow, Rule


def _unquantized(op: Op) -> Tensor | None:
    return next((t for t in (op.input, op.output) if t.quant is None or t.quant.per_channel), None)


_RULES = (
    Rule("one input and one output", lambda op: len(op.inputs) != 1 or len(op.outputs) != 1 or None in op.inputs),
    Rule(
        "input and output are int8",
        lambda op: next((t for t in (op.input, op.output) if t.dtype != "int8"), None),
        "quantize the model to int8 (full integer quantization)",
    ),
    Rule("input and output have one scale and one zero point", _unquantized),
    Rule("input and output have one shape", lambda op: op.output if op.input.shape != op.output.shape else None),
)


class _Activation(Operator):
    kernels = (Clamp(), Lookup())

    def reference(self, op: Op, *inputs: np.ndarray | None) -> tuple[np.ndarray, ...]:
        return (self.function(op, inputs[0]),)

    def function(self, op: Op, values: np.ndarray) -> np.ndarray:
        """The stored results of stored values, element by element."""
        raise NotImplementedError

    def row_window(self, op: Op, index: int) -> RowWindow | None:
        return SAME_ROW if len(op.output.shape) == 4 and op.output.shape[0] == 1 else None


def relu_scale(op: Op) -> float:
    """The real multiplier from input to output; TFLM divides the scales in float32."""
    return float(np.float32(op.input.scale) / np.float32(op.output.scale))


class ReluOperator(_Activation):
    """Rescales to the output's quantization, then clamps at its zero point."""

    kind = "RELU"
    summary = "max(x, 0)"
    rules = (
        *_RULES,
        Rule("the input's scale is below 2^21 times the output's", lambda op: op.input.scale / op.output.scale >= 2.0**21),
    )

    def function(self, op: Op, values: np.ndarray) -> np.ndarray:
        rescaled = multiply_by_quantized_multiplier(
            values.astype(np.int64) - op.input.zero_point, *quantize_multiplier(relu_scale(op))
        )
        low, high = activation_range("RELU", op.output.scale, op.output.zero_point)
        return np.clip(rescaled + op.output.zero_point, low, high).astype(np.int8)


class Relu6Operator(_Activation):
    """Clamps stored values between the input's 0 and 6. TFLM never looks at the output's
    quantization, so here too a different one changes nothing."""

    kind = "RELU6"
    summary = "min(max(x, 0), 6)"
    rules = (
        *_RULES,
        Rule("the input's scale is above 2^-28", lambda op: op.input if op.input.scale <= 2.0**-28 else None),
    )

    def function(self, op: Op, values: np.ndarray) -> np.ndarray:
        return np.clip(values, *activation_range("RELU6", op.input.scale, op.input.zero_point))


#: integer bits of LOGISTIC's rescaled input (Q4.27)
_INPUT_BITS = 4


class LogisticOperator(_Activation):
    """The input in Q4.27 goes through gemmlowp's fixed-point 1 / (1 + exp(-x)); beyond the radius
    that Q4.27 can hold, the result saturates."""

    kind = "LOGISTIC"
    summary = "1 / (1 + exp(-x))"
    rules = (
        *_RULES,
        Rule(
            "the output's scale is 1/256 and its zero point -128",
            lambda op: op.output if (op.output.scale, op.output.zero_point) != (1 / 256, -128) else None,
            "that is the range of a logistic function; quantize with a converter that knows it",
        ),
        Rule(
            "the input's scale is from 2^-28 to 2^30",
            lambda op: op.input if not 2.0**-28 <= op.input.scale <= 2.0**30 else None,
        ),
    )

    def function(self, op: Op, values: np.ndarray) -> np.ndarray:
        low, high = RANGE["int8"]
        multiplier, shift = quantize_multiplier(op.input.scale * 2.0 ** (31 - _INPUT_BITS))
        radius = math.floor(((1 << _INPUT_BITS) - 1) * 2.0 ** (31 - _INPUT_BITS) / 2.0**shift)
        data = values.astype(np.int64) - op.input.zero_point
        inside = np.abs(data) < radius
        x = multiply_by_quantized_multiplier(np.where(inside, data, 0), multiplier, shift)
        positive = one_over_one_plus_x(exp_on_negative_values(-np.abs(x), _INPUT_BITS))
        logistic = np.where(x > 0, positive, INT32_MAX - positive)
        logistic = np.where(x == 0, 1 << 30, logistic)
        result = np.clip(rounding_divide_by_pot(logistic, 31 - 8) + low, low, high)
        # at a radius of 0, the lower side comes first
        result = np.where(data >= radius, high, result)
        return np.where(data <= -radius, low, result).astype(np.int8)
