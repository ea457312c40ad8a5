"""MEAN, SUM, REDUCE_MAX and REDUCE_MIN, int8, over any dimensions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite, prod
from typing import Any

import numpy as np

from tinyfuse.ir import Array, Op, Tensor, given
from tinyfuse.ir.fixedpoint import clamp, multiply_by_quantized_multiplier
from tinyfuse.ops.base import OpFamily, Rule
from tinyfuse.ops.movement import ends
from tinyfuse.ops.reduce_scaling import reduced_axes, sum_scaling


@dataclass(frozen=True)
class Reducer:
    """keep_dims: whether a reduced dimension stays, with size 1."""

    keep_dims: bool = False


def _bad_axes(op: Op) -> Tensor | None:
    tensor, rank = op.operand(1), len(op.input.shape)
    good = (
        tensor.is_constant
        and tensor.dtype == "int32"
        and tensor.elements > 0
        and bool(((tensor.values >= -rank) & (tensor.values < rank)).all())
    )
    return None if good else tensor


def _bad_shape(op: Op) -> Tensor | None:
    axes, shape = reduced_axes(op), op.input.shape
    if op.attributes_as(Reducer).keep_dims:
        expected = tuple(1 if axis in axes else dim for axis, dim in enumerate(shape))
    else:
        expected = tuple(dim for axis, dim in enumerate(shape) if axis not in axes)
    return None if op.output.shape == expected else op.output


def _overflows(op: Op) -> bool:
    if not isfinite(op.input.scale / op.output.scale):
        return True
    count = prod(op.input.shape[axis] for axis in reduced_axes(op))
    return 255 * count << max(0, sum_scaling(op)[1]) >= 1 << 30


def _requantized(op: Op) -> Tensor | None:
    return op.output if op.input.quant != op.output.quant else None


class _Reduce(OpFamily):
    options_table = "ReducerOptions"
    rules: tuple[Rule, ...] = (
        ends(2),
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
            "the input has rank 1 to 4 and no empty dimension",
            lambda op: op.input if not 1 <= len(op.input.shape) <= 4 or min(op.input.shape) < 1 else None,
        ),
        Rule("the axes are constant int32, each one of the input's", _bad_axes),
        Rule("the output has the input's shape without the reduced dimensions", _bad_shape),
    )

    def attributes(self, options: Mapping[str, Any]) -> Reducer:
        return Reducer(bool(options.get("keep_dims", False)))


class _Sum(_Reduce):
    """The int32 sum of the stored values less the zero point, requantized; the multiplier of a MEAN
    holds 1 / count (TFLM, reference/reduce.h, QuantizedMeanOrSum)."""

    rules: tuple[Rule, ...] = (
        *_Reduce.rules,
        Rule(
            "the sum fits 30 bits, also where the output's scale is finer than the input's",
            _overflows,
            "TensorFlow Lite Micro would overflow too",
        ),
    )

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        centred = given(inputs[0]).astype(np.int64) - op.input.zero_point
        total = centred.sum(axis=reduced_axes(op), dtype=np.int64)
        scaled = multiply_by_quantized_multiplier(total, *sum_scaling(op))
        return (clamp(scaled + op.output.zero_point, -128, 127).reshape(op.output.shape),)


class MeanOperator(_Sum):
    """int8 [...] -> int8, the shape without the axes."""

    kind = "MEAN"
    summary = "mean over any dimensions"


class SumOperator(_Sum):
    """int8 [...] -> int8, the shape without the axes."""

    kind = "SUM"
    summary = "sum over any dimensions"


class _Extreme(_Reduce):
    rules: tuple[Rule, ...] = (
        *_Reduce.rules,
        Rule("input and output have the same quantization", _requantized, "TensorFlow Lite Micro refuses it too"),
    )

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        reduce = np.min if op.kind == "REDUCE_MIN" else np.max
        return (reduce(given(inputs[0]), axis=reduced_axes(op)).reshape(op.output.shape),)


class ReduceMaxOperator(_Extreme):
    """int8 [...] -> int8, the shape without the axes."""

    kind = "REDUCE_MAX"
    summary = "greatest value over any dimensions"


class ReduceMinOperator(_Extreme):
    """int8 [...] -> int8, the shape without the axes."""

    kind = "REDUCE_MIN"
    summary = "least value over any dimensions"
