"""SOFTMAX over the last dimension: int8 to int8 or int16 in TFLM's fixed point, int16 by its tables, float32."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from tinyfuse.ir import Array, Int64s, Op, Tensor, float_math, given
from tinyfuse.ir.fixedpoint import (
    RANGE,
    clamp,
    exp_on_negative_values,
    leading_zeros,
    multiply_by_quantized_multiplier,
    one_over_one_plus_x,
    rounding_divide_by_pot,
    saturating_rounding_doubling_high_mul,
)
from tinyfuse.ops.core.dtypes import ONE_QUANTIZATION
from tinyfuse.ops.core.family import SAME_ROW, OpFamily, RowWindow, Rule
from tinyfuse.ops.core.permute import Order
from tinyfuse.ops.core.real import greatest, sum_in_order
from tinyfuse.ops.pooling_reduce.softmax_scaling import SCALED_DIFFERENCE_BITS, Softmax, int16_scaling, softmax_scaling
from tinyfuse.ops.pooling_reduce.softmax_tables import exp_table, looked_up, reciprocal_table

#: (scale, zero point) that TFLM requires of an output, by the dtypes of input and output
_OUTPUTS = {
    ("int8", "int8"): (1 / 256, -128),
    ("int8", "int16"): (1 / 65536, -32768),
    ("int16", "int16"): (1 / 32768, 0),
}
_FLOATS = ("float32", "float32")


def _dtypes(op: Op) -> tuple[str, str]:
    return op.input.dtype, op.output.dtype


def _bad_dtypes(op: Op) -> Tensor | None:
    if _dtypes(op) in _OUTPUTS or _dtypes(op) == _FLOATS:
        return None
    return op.output if any(op.input.dtype == source for source, _ in (*_OUTPUTS, _FLOATS)) else op.input


def _bad_output(op: Op) -> Tensor | None:
    if _dtypes(op) == _FLOATS:
        return None
    scale, zero_point = _OUTPUTS[_dtypes(op)]
    tolerance = 0.0 if op.output.dtype == "int8" else 0.001 * scale
    good = abs(op.output.scale - scale) <= tolerance and op.output.zero_point == zero_point
    return None if good else op.output


def _bad_beta(op: Op) -> bool:
    beta = op.attributes_as(Softmax).beta
    if op.input.dtype != "int8":
        return False
    return not math.isfinite(beta) or beta * op.input.scale * 2.0**26 <= 1.0


def _bad_int16_beta(op: Op) -> bool:
    beta = op.attributes_as(Softmax).beta
    if op.input.dtype != "int16":
        return False
    return not (math.isfinite(beta) and beta >= 0.0) or int16_scaling(op)[1] > 15


def _exps(op: Op, difference: Int64s) -> Int64s:
    """Exponentials of differences of stored int8 values to the greatest value, Q0.31; 0 for differences so small that
    they count as zero."""
    multiplier, left_shift, least = softmax_scaling(op)
    counts = difference >= least
    scaled = saturating_rounding_doubling_high_mul(np.where(counts, difference, 0) << left_shift, multiplier)
    return np.where(counts, exp_on_negative_values(scaled, SCALED_DIFFERENCE_BITS), 0)


def exps_of_differences(op: Op) -> Array:
    """int32, of an int8 SOFTMAX: the exps, Q0.31, of the differences 0, -1, -2, ... to the greatest value that don't
    count as zero."""
    _, _, least = softmax_scaling(op)
    return _exps(op, -np.arange(min(-least + 1, 256), dtype=np.int64)).astype(np.int32)


class SoftmaxFamily(OpFamily):
    """SOFTMAX: differences to the row's maximum are scaled to Q5.26; their exponentials are summed in Q12.19, and each
    is multiplied by the sum's reciprocal (TFLM, reference/softmax.h).

    If exponentials add up to 512 or more, which takes a row of more than 511 values, TFLM aborts for an int8 output;
    here every probability, at most 1/512, becomes the lowest value.
    """

    kind = "SOFTMAX"
    computes_uint8 = True
    options_table = "SoftmaxOptions"
    summary = "exp over the sum of exps, along the last dimension"
    rules = (
        Rule("one input and one output", lambda op: len(op.inputs) != 1 or len(op.outputs) != 1 or None in op.inputs),
        Rule(
            "the input is int8 and the output int8 or int16, or both are int16 or float32",
            _bad_dtypes,
            "TensorFlow Lite Micro takes no others",
        ),
        ONE_QUANTIZATION,
        Rule(
            "the output's scale is 1/256 and its zero point -128 (int16: 1/65536, -32768; from int16: 1/32768, 0)",
            _bad_output,
        ),
        Rule(
            "the zero point of an int16 input is 0",
            lambda op: op.input if op.input.dtype == "int16" and op.input.zero_point != 0 else None,
            "TensorFlow Lite Micro refuses any other",
        ),
        Rule(
            "input and output have the same shape, of rank 1 to 6, with 1 to 4095 values in the last dimension",
            lambda op: (
                op.input.shape != op.output.shape
                or not 1 <= len(op.input.shape) <= 6
                or not 1 <= op.input.shape[-1] <= 4095
            ),
        ),
        Rule(
            "beta * an int8 input's scale is above 2^-26 and finite",
            _bad_beta,
        ),
        Rule(
            "of an int16 input, beta is not negative and beta * scale is below 5",
            _bad_int16_beta,
            "larger ones overflow in TensorFlow Lite Micro too",
        ),
        Rule("beta is finite", lambda op: not math.isfinite(op.attributes_as(Softmax).beta)),
    )

    def by_vectors(self, op: Op) -> bool:
        return True

    def row_window(self, op: Op, index: int) -> RowWindow | None:
        return SAME_ROW if op.output.is_image else None

    def attributes(self, options: Mapping[str, Any]) -> Softmax:
        return Softmax(float(options.get("beta", 0.0)))

    def permuted(self, op: Op, order: Order) -> Op | None:
        return op if order[-1] == len(order) - 1 else None

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        if op.input.dtype == "int16":
            return (self.by_tables(op, given(inputs[0]).astype(np.int64)),)
        if op.input.dtype == "float32":
            return (self.real(op, given(inputs[0])),)
        _, _, least = softmax_scaling(op)
        data = given(inputs[0]).astype(np.int64)
        difference = data - data.max(axis=-1, keepdims=True)
        counts, exps = difference >= least, _exps(op, difference)
        total = rounding_divide_by_pot(exps, 12).sum(axis=-1, keepdims=True)
        headroom = leading_zeros(total)
        reciprocal = one_over_one_plus_x((total << headroom) - (1 << 31))
        low, high = RANGE[op.output.dtype]
        exponent = 12 - headroom + 31 - (8 if op.output.dtype == "int8" else 16)
        scaled_exps = saturating_rounding_doubling_high_mul(reciprocal, exps)
        result = np.minimum(rounding_divide_by_pot(scaled_exps, exponent) + low, high)
        return (np.where(counts, result, low).astype(op.output.dtype),)

    def ulp(self, op: Op) -> int | None:
        # each of the n exps, and each partial sum, may be off by a unit in the last place: together the sum has a
        # relative error of up to (n + 1) 2^-23. With an exp's own 2^-23, the quotient is off by up to 2 (n + 2) units,
        # and its rounding adds one
        return 2 * op.input.shape[-1] + 5 if op.input.dtype == "float32" else None

    def real(self, op: Op, data: Array) -> Array:
        """Compute SOFTMAX in float32: exps of differences to the maximum, over their sum in memory order."""
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            exps = float_math.exp((data - greatest(data)) * np.float32(op.attributes_as(Softmax).beta))
            shares: Array = exps / sum_in_order(np.moveaxis(exps, -1, 0))[..., None]
        return shares

    def by_tables(self, op: Op, data: Int64s) -> Array:
        """Compute int16 SOFTMAX from tables: exps, and the reciprocal of their sum shifted into 16 bits."""
        low, high = RANGE["int16"]
        difference = data - data.max(axis=-1, keepdims=True)
        scaled = multiply_by_quantized_multiplier(difference, *int16_scaling(op)) + high
        exps = looked_up(np.clip(scaled, low, high), exp_table())
        total = exps.sum(axis=-1, keepdims=True)
        headroom = leading_zeros(total)
        shifted = ((total << (headroom - 1)) + (1 << 13)) >> 14
        reciprocal = looked_up(np.clip(shifted - (1 << 15) - (1 << 16), low, high), reciprocal_table())
        right = 31 - headroom
        result = (exps * reciprocal + (np.int64(1) << (right - 1))) >> right
        return clamp(result, 0, high, "int16")
