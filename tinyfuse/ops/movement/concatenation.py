"""CONCATENATION along any axis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tinyfuse.ir import Array, Op, Tensor, all_given
from tinyfuse.ops.core.family import SAME_ROW, OpFamily, Part, RowWindow, Rule
from tinyfuse.ops.core.movement import one_dtype, side_by_side
from tinyfuse.ops.core.permute import Order


@dataclass(frozen=True)
class Concatenation:
    """Attributes of CONCATENATION: `axis`, counted from the end if negative, and `activation`, as in the file."""

    axis: int = 0
    activation: str = "NONE"


def _requantized(op: Op) -> Tensor | None:
    """First int8 input whose scale or zero point differs from the output's; None if there is none. TFLM compares these
    only for int8; for int16 the zero points are 0."""

    def parameters(tensor: Tensor) -> tuple[tuple[float, ...], tuple[int, ...]] | None:
        return (tensor.quant.scale, tensor.quant.zero_point) if tensor.quant is not None else None

    if op.output.dtype == "int8":
        return next((t for t in op.operands if parameters(t) != parameters(op.output)), None)
    if op.output.dtype == "int16":
        return next((t for t in (*op.operands, op.output) if t.quant and any(t.quant.zero_point)), None)
    return None


def _bad_shape(op: Op) -> Tensor | None:
    axis = op.attributes_as(Concatenation).axis % len(op.output.shape)
    total = 0
    for tensor in op.operands:
        if len(tensor.shape) != len(op.output.shape):
            return tensor
        rest = zip(tensor.shape, op.output.shape, strict=True)
        if any(a != b for i, (a, b) in enumerate(rest) if i != axis):
            return tensor
        total += tensor.shape[axis]
    return None if total == op.output.shape[axis] else op.output


class ConcatenationFamily(OpFamily):
    """CONCATENATION: any number of tensors of the same dtype, whose shapes differ only in the axis, in their order."""

    kind = "CONCATENATION"
    computes_uint8 = True
    rows_alike = True
    options_table = "ConcatenationOptions"
    summary = "tensors side by side along any dimension"
    rules = (
        Rule("inputs and one output", lambda op: not op.inputs or None in op.inputs or len(op.outputs) != 1),
        one_dtype(("int8", "int16", "int32", "int64", "float32", "bool")),
        Rule(
            "the inputs have the same dtype",
            lambda op: next((t for t in op.operands if t.dtype != op.output.dtype), None),
        ),
        Rule(
            "int8 inputs have the output's scale and zero point, int16 ones zero point 0",
            _requantized,
            "TensorFlow Lite Micro refuses it too; quantize with shared ranges, as the converter does",
        ),
        Rule("no fused activation", lambda op: op.attributes_as(Concatenation).activation != "NONE"),
        Rule(
            "the axis is one of the output's",
            lambda op: not -len(op.output.shape) <= op.attributes_as(Concatenation).axis < len(op.output.shape),
        ),
        Rule("shapes agree but for the axis", _bad_shape),
    )

    def attributes(self, options: Mapping[str, Any]) -> Concatenation:
        return Concatenation(options.get("axis", 0), options.get("fused_activation_function", "NONE"))

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        return (np.concatenate(all_given(inputs), axis=op.attributes_as(Concatenation).axis),)

    def moves(self, op: Op) -> tuple[int, ...]:
        return tuple(range(len(op.inputs)))

    def parts(self, op: Op) -> tuple[Part, ...]:
        return side_by_side(op, op.attributes_as(Concatenation).axis % len(op.output.shape))

    def row_window(self, op: Op, index: int) -> RowWindow | None:
        image = len(op.output.shape) == 4 and op.output.shape[0] == 1
        return SAME_ROW if image and op.attributes_as(Concatenation).axis % 4 >= 2 else None

    def permuted(self, op: Op, order: Order) -> Op | None:
        if any(t.is_constant for t in op.operands):
            return None
        a = op.attributes_as(Concatenation)
        return replace(op, attributes=replace(a, axis=order.index(a.axis % len(order))))
