"""CUMSUM: sums up to each element along a dimension."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tinyfuse.ir import Array, Op, given
from tinyfuse.ir.fixedpoint import clamp, multiply_by_quantized_multiplier, quantize_multiplier
from tinyfuse.ops.core.axes import AlongAxes, AxesOperand
from tinyfuse.ops.core.dtypes import ONE_QUANTIZATION, computed_dtype
from tinyfuse.ops.core.family import Rule
from tinyfuse.ops.core.movement import axis_of, constant_axis, ends

#: bits that stored values are shifted left by before they are added
CUMSUM_SHIFT = 20


@dataclass(frozen=True)
class Cumsum:
    """Attributes of CUMSUM. exclusive: an element's sum does not include the element; reverse: sums start at the last
    element."""

    exclusive: bool = False
    reverse: bool = False


def cumsum_axis(op: Op) -> int:
    """The dimension along which sums run, from 0."""
    return axis_of(op.operand(1), len(op.input.shape))


def output_multiplier(op: Op) -> tuple[int, int]:
    """(multiplier, shift) from sums, in 2^-20ths of twice the input's scale, to the output."""
    return quantize_multiplier(2.0 * op.input.scale / ((1 << CUMSUM_SHIFT) * op.output.scale))


def _bad_scale(op: Op) -> bool:
    if op.output.dtype != "int8":
        return False
    ratio = 2.0 * op.input.scale / op.output.scale
    return not 0.0 < ratio < 1 << CUMSUM_SHIFT or output_multiplier(op)[1] > 0


#: the axis may be any dimension: the output always has the input's shape
_AXIS = AxesOperand(lambda op, axes: op.input.shape)


class CumsumFamily(AlongAxes):
    """CUMSUM. For int8, the sum starts with the stored value 0, not with the zero point, and wraps at 32 bits, both as
    in TFLM (reference/cumsum.h); each sum is requantized to an output element."""

    kind = "CUMSUM"
    axes = _AXIS
    options_table = "CumsumOptions"
    summary = "sums up to each element along a dimension"
    rules = (
        ends(2),
        computed_dtype("int8", "float32"),
        ONE_QUANTIZATION,
        Rule(
            "input and output have the same shape, of rank 1 or more and no empty dimension",
            lambda op: op.input.shape != op.output.shape or not op.input.shape or min(op.input.shape) < 1,
        ),
        *_AXIS.rules(
            Rule(
                "the axis is an int32, a dimension of the input",
                lambda op: None if constant_axis(op.operand(1), len(op.input.shape)) else op.operand(1),
            )
        ),
        Rule(
            "the input's scale is below 2^19 times the output's",
            _bad_scale,
            "TensorFlow Lite Micro stops at any other",
        ),
    )

    def attributes(self, options: Mapping[str, Any]) -> Cumsum:
        return Cumsum(bool(options.get("exclusive", False)), bool(options.get("reverse", False)))

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        a, axis = op.attributes_as(Cumsum), cumsum_axis(_AXIS.chosen(op, inputs[1]))
        terms = np.moveaxis(given(inputs[0]), axis, 0)
        terms = terms[::-1] if a.reverse else terms
        sums = _float_sums(terms) if op.output.dtype == "float32" else _stored_sums(op, terms)
        sums = sums[:-1] if a.exclusive else sums[1:]
        sums = np.moveaxis(sums[::-1] if a.reverse else sums, 0, axis)
        if op.output.dtype == "float32":
            return (np.ascontiguousarray(sums),)
        scaled = multiply_by_quantized_multiplier(sums, *output_multiplier(op)) + op.output.zero_point
        return (np.ascontiguousarray(clamp(scaled, -128, 127)),)


def _float_sums(terms: Array) -> Array:
    """[n, ...] -> [n + 1, ...]: 0, then every sum rounded to float32."""
    with np.errstate(over="ignore", invalid="ignore"):
        return _sums_after(np.zeros((1, *terms.shape[1:]), np.float32), terms)


def _stored_sums(op: Op, terms: Array) -> Array:
    """Return running sums of stored values, int32, shifted left by CUMSUM_SHIFT - 1: in twice the scale."""
    zeros = np.zeros((1, *terms.shape[1:]), np.int64)
    start, scaled = ((t.astype(np.int64) - op.input.zero_point) << (CUMSUM_SHIFT - 1) for t in (zeros, terms))
    return _sums_after(start, scaled).astype(np.int32)


def _sums_after(start: Array, terms: Array) -> Array:
    sums: Array = np.add.accumulate(np.concatenate([start, terms]), axis=0)
    return sums
