"""MEAN, SUM, REDUCE_MAX, REDUCE_MIN and REDUCE_ALL over any dimensions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

import numpy as np

from tinyfuse.ir import Array, Op, Tensor, given
from tinyfuse.ir.fixedpoint import RANGE
from tinyfuse.ops.core.axes import AlongAxes, AxesOperand
from tinyfuse.ops.core.convolution import TWO_ROUNDINGS
from tinyfuse.ops.core.dtypes import ONE_QUANTIZATION, computed_dtype
from tinyfuse.ops.core.family import SAME_ROW, RowWindow, Rule
from tinyfuse.ops.core.movement import ends
from tinyfuse.ops.core.permute import Order, with_constant
from tinyfuse.ops.core.real import FLOAT_MAX, sum_in_order
from tinyfuse.ops.pooling_reduce.reduce_scaling import (
    outputs_of_totals,
    reduced_axes,
    reduced_count,
    reduction_runs,
    sum_scaling,
)
from tinyfuse.ops.pooling_reduce.row_macs import PartOfLayer


@dataclass(frozen=True)
class Reducer:
    """Attributes of a reduction.

    keep_dims  whether a reduced dimension stays, with size 1
    rounding   of an int8 MEAN, one of ROUNDINGS, by which sums become outputs
    """

    keep_dims: bool = False
    rounding: str = TWO_ROUNDINGS


def _bad_axes(op: Op) -> Tensor | None:
    tensor, rank = op.operand(1), len(op.input.shape)
    good = (
        tensor.is_constant
        and tensor.dtype == "int32"
        and tensor.elements > 0
        and bool(((tensor.values >= -rank) & (tensor.values < rank)).all())
    )
    return None if good else tensor


def _shape_along(op: Op, axes: tuple[int, ...]) -> tuple[int, ...]:
    shape = enumerate(op.input.shape)
    if op.attributes_as(Reducer).keep_dims:
        return tuple(1 if axis in axes else dim for axis, dim in shape)
    return tuple(dim for axis, dim in shape if axis not in axes)


_AXES = AxesOperand(_shape_along, several=True)


def _bad_shape(op: Op) -> Tensor | None:
    return None if op.output.shape == _shape_along(op, reduced_axes(op)) else op.output


def _overflows(op: Op) -> bool:
    if op.input.dtype == "float32":
        return False
    if not isfinite(op.input.scale / op.output.scale):
        return True
    low, high = RANGE[op.input.dtype]
    # for int8, a bound that holds for every zero point
    reach = 255 if op.input.dtype == "int8" else max(high - op.input.zero_point, op.input.zero_point - low)
    return reach * reduced_count(op) << max(0, sum_scaling(op)[1]) >= 1 << 30


def _requantized(op: Op) -> Tensor | None:
    return op.output if op.output.dtype == "int8" and op.input.quant != op.output.quant else None


def _many_axes(op: Op) -> bool:
    return op.input.dtype == "float32" and op.operand(1).elements > 4


def _rules(*dtypes: str) -> tuple[Rule, ...]:
    return (
        ends(2),
        computed_dtype(*dtypes),
        ONE_QUANTIZATION,
        Rule(
            "the input has rank 1 to 6 and no empty dimension",
            lambda op: op.input if not 1 <= len(op.input.shape) <= 6 or min(op.input.shape) < 1 else None,
        ),
        *_AXES.rules(
            Rule("the axes are int32, each one of the input's", _bad_axes),
            Rule("the output has the input's shape without the reduced dimensions", _bad_shape),
            Rule(
                "the reduced dimensions are at most two runs of neighbours (dimensions of size 1 count to any)",
                lambda op: len(reduction_runs(op).reduced) > 2,
                "reduce dimensions that are not neighbours by one operator each",
            ),
        ),
    )


class _Reduce(AlongAxes):
    axes = _AXES
    options_table = "ReducerOptions"
    reduces = True

    def attributes(self, options: Mapping[str, Any]) -> Reducer:
        return Reducer(bool(options.get("keep_dims", False)))

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        op, output = _AXES.chosen(op, inputs[1]), op.output
        axes, data = reduced_axes(op), given(inputs[0])
        kept = [axis for axis in range(data.ndim) if axis not in axes]
        terms = data.transpose(*axes, *kept).reshape(reduced_count(op), -1)
        result = self.real(op, terms) if op.output.dtype == "float32" else self.function(op, terms)
        return (result.reshape(output.shape),)

    def permuted(self, op: Op, order: Order) -> Op | None:
        # for floats, the order of the terms matters
        if not op.attributes_as(Reducer).keep_dims or op.input.dtype == "float32":
            return None
        return with_constant(op, 1, np.array(sorted(order.index(axis) for axis in reduced_axes(op)), np.int32))

    def passes_channels(self, op: Op) -> bool:
        return len(op.input.shape) - 1 not in reduced_axes(op)

    def row_window(self, op: Op, index: int) -> RowWindow | None:
        images = op.input.is_image and op.output.is_image
        return SAME_ROW if index == 0 and images and 1 not in reduced_axes(op) else None

    def of_rows(
        self, op: Op, inputs: tuple[Tensor | None, ...], output: Tensor, first: int, above: int, below: int
    ) -> Op | None:
        return replace(op, inputs=inputs, outputs=(output,)) if self.row_window(op, 0) is not None else None

    def function(self, op: Op, terms: Array) -> Array:
        """Return the stored outputs of stored values [n, outputs], reduced in memory order."""
        raise NotImplementedError

    def real(self, op: Op, terms: Array) -> Array:
        """Return the float32 outputs of float32 values [n, outputs], reduced in memory order."""
        raise NotImplementedError


class _Sum(_Reduce):
    """Base of MEAN and SUM: the int32 sum of the stored values less the zero point, requantized. The multiplier of a
    MEAN includes 1 / count (TFLM, reference/reduce.h, QuantizedMeanOrSum). Floats are added in the order of memory."""

    sums = True
    rules: tuple[Rule, ...] = (
        *_rules("int8", "int16", "float32"),
        _AXES.each(
            Rule(
                "the sum fits 30 bits, also where the output's scale is finer than the input's",
                _overflows,
                "TensorFlow Lite Micro would overflow too",
            )
        ),
    )

    def function(self, op: Op, terms: Array) -> Array:
        return outputs_of_totals(op, (terms.astype(np.int64) - op.input.zero_point).sum(axis=0, dtype=np.int64))

    def real(self, op: Op, terms: Array) -> Array:
        return sum_in_order(terms)

    def of_sums(self, op: Op, sums: Tensor, output: Tensor) -> Op | None:
        if op.output.dtype == "float32" or not op.input.is_image:
            return None
        axes, (_, _, width, channels) = reduced_axes(op), op.input.shape
        # element i of a row belongs to sum i modulo the number of sums, unless channels are reduced and columns are not
        if 1 not in axes or (3 in axes and 2 not in axes and width > 1 and channels > 1):
            return None
        return Op("MEAN_OF_SUM", (sums,), (output,), PartOfLayer(op), index=op.index)


class MeanFamily(_Sum):
    """MEAN: int8, int16 or float32 [...] -> the same dtype, the shape without the axes."""

    kind = "MEAN"
    computes_uint8 = True
    summary = "mean over any dimensions"
    rules = (
        *_Sum.rules,
        Rule(
            "a mean of floats names at most four axes",
            _many_axes,
            "TensorFlow Lite Micro writes more of them beyond its memory",
        ),
    )

    def real(self, op: Op, terms: Array) -> Array:
        mean: Array = sum_in_order(terms) / np.float32(len(terms))
        return mean


class SumFamily(_Sum):
    """SUM over the given axes: int8, int16 or float32 [...] -> the same dtype, without these axes."""

    kind = "SUM"
    computes_uint8 = True
    summary = "sum over any dimensions"


class _Extreme(_Reduce):
    rules: tuple[Rule, ...] = (
        *_rules("int8", "float32"),
        Rule("int8 input and output have the same quantization", _requantized, "TensorFlow Lite Micro refuses it too"),
    )

    def function(self, op: Op, terms: Array) -> Array:
        reduce = np.min if op.kind == "REDUCE_MIN" else np.max
        extremes: Array = reduce(terms, axis=0)
        return extremes

    def real(self, op: Op, terms: Array) -> Array:
        # of equal values (zeros), the first one stays; NaN is neither greater nor less than anything
        sign = np.float32(-1 if op.kind == "REDUCE_MIN" else 1)
        most = np.full(terms.shape[1:], -sign * np.float32(FLOAT_MAX), np.float32)
        for term in terms:
            most = np.where(sign * most < sign * term, term, most)
        return most


class ReduceMaxFamily(_Extreme):
    """REDUCE_MAX: int8 or float32 [...] -> the same dtype, the shape without the axes."""

    kind = "REDUCE_MAX"
    extreme = "MAXIMUM"
    computes_uint8 = True
    summary = "greatest value over any dimensions"


class ReduceMinFamily(_Extreme):
    """REDUCE_MIN: int8 or float32 [...] -> the same dtype, the shape without the axes."""

    kind = "REDUCE_MIN"
    extreme = "MINIMUM"
    computes_uint8 = True
    summary = "least value over any dimensions"


class ReduceProdFamily(_Reduce):
    """REDUCE_PROD: int32 [...] -> int32, the shape without the axes. It has no kernel: converters compute shapes with
    it, and rewrite/fold_constants.py replaces these by constants."""

    kind = "REDUCE_PROD"
    summary = "product over any dimensions, as a constant"
    in_tflm = False
    folded = True
    rules = (
        *_rules("int32"),
        Rule("the input follows from constants", lambda op: None if op.input.is_constant else op.input),
    )

    def function(self, op: Op, terms: Array) -> Array:
        product: Array = np.multiply.reduce(terms, axis=0, dtype=np.int32)
        return product


class ReduceAllFamily(_Reduce):
    """REDUCE_ALL: bool [...] -> bool, the shape without the axes."""

    kind = "REDUCE_ALL"
    summary = "whether all are true over any dimensions"
    rules = _rules("bool")

    def function(self, op: Op, terms: Array) -> Array:
        every: Array = np.logical_and.reduce(terms, axis=0)
        return every
