"""SOFTMAX over the last dimension, int8 to int8 or int16, in TFLM's fixed point."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from tinyfuse.ir import Array, Op, Tensor, given
from tinyfuse.ir.fixedpoint import (
    RANGE,
    exp_on_negative_values,
    leading_zeros,
    one_over_one_plus_x,
    rounding_divide_by_pot,
    saturating_rounding_doubling_high_mul,
)
from tinyfuse.ops.base import OpFamily, Rule
from tinyfuse.ops.softmax_scaling import SCALED_DIFFERENCE_BITS, Softmax, softmax_scaling

#: stored (scale, zero point) that TFLM asks of an output
_OUTPUTS = {"int8": (1 / 256, -128), "int16": (1 / 65536, -32768)}


def _bad_output(op: Op) -> Tensor | None:
    scale, zero_point = _OUTPUTS[op.output.dtype]
    tolerance = 0.0 if op.output.dtype == "int8" else 0.001 * scale
    good = abs(op.output.scale - scale) <= tolerance and op.output.zero_point == zero_point
    return None if good else op.output


def _bad_beta(op: Op) -> bool:
    beta = op.attributes_as(Softmax).beta
    return not math.isfinite(beta) or beta * op.input.scale * 2.0**26 <= 1.0


class SoftmaxOperator(OpFamily):
    """Differences to the row's maximum are scaled to Q5.26; their exps are summed in Q12.19, and each
    is multiplied by the sum's reciprocal (TFLM, reference/softmax.h).

    Where exps add up to 512 or more, which takes a row of over 511 values, TFLM aborts for an int8
    output; here every probability, 1/512 at the most, becomes the lowest value.
    """

    kind = "SOFTMAX"
    options_table = "SoftmaxOptions"
    summary = "exp over the sum of exps, along the last dimension"
    rules = (
        Rule("one input and one output", lambda op: len(op.inputs) != 1 or len(op.outputs) != 1 or None in op.inputs),
        Rule(
            "the input is int8, the output int8 or int16",
            lambda op: op.input if op.input.dtype != "int8" else op.output if op.output.dtype not in _OUTPUTS else None,
            "quantize the model to int8 (full integer quantization)",
        ),
        Rule(
            "input and output have one scale and one zero point",
            lambda op: next((t for t in (op.input, op.output) if t.quant is None or t.quant.per_channel), None),
        ),
        Rule("the output's scale is 1/256 and its zero point -128 (int16: 1/65536, -32768)", _bad_output),
        Rule(
            "input and output have one shape of rank 1 to 4, with 1 to 4095 values in the last dimension",
            lambda op: (
                op.input.shape != op.output.shape
                or not 1 <= len(op.input.shape) <= 4
                or not 1 <= op.input.shape[-1] <= 4095
            ),
        ),
        Rule(
            "beta * input scale is above 2^-26 and finite",
            _bad_beta,
        ),
    )

    def attributes(self, options: Mapping[str, Any]) -> Softmax:
        return Softmax(float(options.get("beta", 0.0)))

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        multiplier, left_shift, least = softmax_scaling(op)
        data = given(inputs[0]).astype(np.int64)
        difference = data - data.max(axis=-1, keepdims=True)
        counts = difference >= least
        scaled = saturating_rounding_doubling_high_mul(np.where(counts, difference, 0) << left_shift, multiplier)
        exps = np.where(counts, exp_on_negative_values(scaled, SCALED_DIFFERENCE_BITS), 0)
        total = rounding_divide_by_pot(exps, 12).sum(axis=-1, keepdims=True)
        headroom = leading_zeros(total)
        reciprocal = one_over_one_plus_x((total << headroom) - (1 << 31))
        low, high = RANGE[op.output.dtype]
        exponent = 12 - headroom + 31 - (8 if op.output.dtype == "int8" else 16)
        scaled_exps = saturating_rounding_doubling_high_mul(reciprocal, exps)
        result = np.minimum(rounding_divide_by_pot(scaled_exps, exponent) + low, high)
        return (np.where(counts, result, low).astype(op.output.dtype),)
