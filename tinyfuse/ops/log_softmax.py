"""LOG_SOFTMAX, int8, over the last dimension, in TFLM's fixed point."""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import Array, Op, given
from tinyfuse.ir.fixedpoint import (
    INT32_MIN,
    clamp,
    exp_on_negative_values,
    log_of_at_least_one,
    multiply_by_quantized_multiplier,
    rounding_divide_by_pot,
)
from tinyfuse.ops.base import OpFamily, Rule
from tinyfuse.ops.movement import ends
from tinyfuse.ops.softmax_scaling import SCALED_DIFFERENCE_BITS, difference_scaling, reverse_scaling


class LogSoftmaxOperator(OpFamily):
    """Differences to the row's maximum are scaled to Q5.26; the logarithm of the sum of their exps is
    taken off each (TFLM, reference/log_softmax.h)."""

    kind = "LOG_SOFTMAX"
    summary = "logarithm of SOFTMAX, along the last dimension"
    rules = (
        ends(1),
        Rule(
            "input and output are int8",
            lambda op: next((t for t in (op.input, op.output) if t.dtype != "int8"), None),
            "quantize the model to int8 (full integer quantization)",
        ),
        Rule(
            "input and output have one scale and one zero point",
            lambda op: next((t for t in (op.input, op.output) if t.quant is None or t.quant.per_channel), None),
        ),
        Rule(
            "the output's scale is 1/16 and its zero point 127",
            lambda op: op.output if (op.output.scale, op.output.zero_point) != (1 / 16, 127) else None,
            "TensorFlow Lite Micro refuses any other",
        ),
        Rule(
            "input and output have one shape of rank 1 or more, with 1 to 4095 values in the last dimension",
            lambda op: op.input.shape != op.output.shape or not op.input.shape or op.input.shape[-1] > 4095,
        ),
        Rule("the input's scale is above 2^-26", lambda op: op.input if op.input.scale * 2.0**26 <= 1.0 else None),
    )

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        multiplier, left_shift, least = difference_scaling(op.input.scale)
        data = given(inputs[0]).astype(np.int64)
        difference = data - data.max(axis=-1, keepdims=True)
        counts = difference >= least
        scaled = multiply_by_quantized_multiplier(np.where(counts, difference, 0), multiplier, left_shift)
        exps = np.where(counts, exp_on_negative_values(scaled, SCALED_DIFFERENCE_BITS), 0)
        log_sum = log_of_at_least_one(rounding_divide_by_pot(exps, 12).sum(axis=-1, keepdims=True))
        reach = multiply_by_quantized_multiplier(log_sum + INT32_MIN, *reverse_scaling(op.input.scale))
        result = rounding_divide_by_pot(scaled - log_sum, 31 - SCALED_DIFFERENCE_BITS - 4) + 127
        shown = difference > np.maximum(least - 1, reach)
        return (clamp(np.where(shown, result, -128), -128, 127),)
