"""LOG_SOFTMAX over the last dimension: int8 in TFLM's fixed point, float32."""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import Array, Op, Tensor, float_math, given
from tinyfuse.ir.fixedpoint import (
    INT32_MIN,
    clamp,
    exp_on_negative_values,
    log_of_at_least_one,
    multiply_by_quantized_multiplier,
    rounding_divide_by_pot,
)
from tinyfuse.ops.core.dtypes import ONE_QUANTIZATION, computed_dtype
from tinyfuse.ops.core.family import OpFamily, Rule
from tinyfuse.ops.core.movement import ends
from tinyfuse.ops.core.permute import Order
from tinyfuse.ops.core.real import greatest, sum_in_order
from tinyfuse.ops.pooling_reduce.softmax_scaling import SCALED_DIFFERENCE_BITS, difference_scaling, reverse_scaling


def _bad_output(op: Op) -> Tensor | None:
    if op.output.dtype == "float32":
        return None
    return op.output if (op.output.scale, op.output.zero_point) != (1 / 16, 127) else None


def _bad_input(op: Op) -> Tensor | None:
    return op.input if op.input.dtype == "int8" and op.input.scale * 2.0**26 <= 1.0 else None


class LogSoftmaxFamily(OpFamily):
    """LOG_SOFTMAX: differences to the row's maximum (int8: scaled to Q5.26) minus the logarithm of the sum of their
    exponentials (TFLM, reference/log_softmax.h)."""

    kind = "LOG_SOFTMAX"
    summary = "logarithm of SOFTMAX, along the last dimension"
    rules = (
        ends(1),
        computed_dtype("int8", "float32"),
        ONE_QUANTIZATION,
        Rule(
            "an int8 output's scale is 1/16 and its zero point 127",
            _bad_output,
            "TensorFlow Lite Micro refuses any other",
        ),
        Rule(
            "input and output have the same shape, of rank 1 or more, with 1 to 4095 values in the last dimension",
            lambda op: op.input.shape != op.output.shape or not op.input.shape or op.input.shape[-1] > 4095,
        ),
        Rule("an int8 input's scale is above 2^-26", _bad_input),
    )

    ulp_of = 1.0  # if one exp outweighs the others, the logarithm of the sum depends on the sum's last bits

    def by_vectors(self, op: Op) -> bool:
        return True

    def ulp(self, op: Op) -> int | None:
        # the sum of n exps has a relative error of up to (n + 1) 2^-23 (softmax.py). Its logarithm is off by as many
        # units in the last place of 1, plus one of its own. The result's magnitude is no less than the logarithm's, and
        # its rounding adds one
        return op.input.shape[-1] + 3 if op.input.dtype == "float32" else None

    def permuted(self, op: Op, order: Order) -> Op | None:
        return op if order[-1] == len(order) - 1 else None

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        if op.input.dtype == "float32":
            return (self.real(given(inputs[0])),)
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

    def real(self, data: Array) -> Array:
        """Compute LOG_SOFTMAX in float32, adding the exps in memory order."""
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            difference = data - greatest(data)
            total = sum_in_order(np.moveaxis(float_math.exp(difference), -1, 0))
            result: Array = difference - float_math.log(total)[..., None]
        return result
