"""TRANSPOSE_CONV, int8, int16 and float32: every input pixel adds its kernel to the output, a stride apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tinyfuse.ir import Array, Op, Tensor, given
from tinyfuse.ops.core.convolution import Requantized, quantized, requantize_channels, windows_along, with_bias
from tinyfuse.ops.core.convolution_rules import (
    QUANTIZATION_RULES,
    SHAPE_RULES,
    TENSOR_RULES,
    ZERO_POINT_RULE,
    weights_scale_rule,
)
from tinyfuse.ops.core.family import RowWindow, Rule
from tinyfuse.ops.core.images import ImageFamily
from tinyfuse.ops.core.movement import shape_constant
from tinyfuse.ops.core.real import real_outputs


@dataclass(frozen=True)
class TransposeConv(Requantized):
    """Attributes of TRANSPOSE_CONV.

    padding     "SAME" or "VALID"; or (rows on top, columns on the left) that are cut off, if rewrites left the operator
                only some rows
    stride      (rows, columns)
    activation  one of ACTIVATIONS
    clamp       (low, high) in stored units, if a rewrite narrowed it
    """

    padding: str | tuple[int, int] = "SAME"
    stride: tuple[int, int] = (0, 0)
    activation: str = "NONE"
    clamp: tuple[int, int] | tuple[float, float] | None = None


def as_convolution(op: Op) -> Op:
    """The operator with its inputs in the order of a convolution: data, weights, bias. The file has the output's shape
    first, then weights and data."""
    return replace(op, inputs=(op.operand(2), op.operand(1), *op.inputs[3:]))


def paddings(op: Op) -> tuple[int, int]:
    """(rows on top, columns on the left) that are cut off the output. They are the padding of the convolution from
    output to input, whose transpose this operator is."""
    a, (_, height, width, _), (_, kernel_h, kernel_w, _) = (
        op.attributes_as(TransposeConv),
        op.output.shape,
        op.operand(1).shape,
    )
    if isinstance(a.padding, tuple):
        return a.padding
    rows = windows_along(height, kernel_h, a.stride[0], 1, a.padding)
    columns = windows_along(width, kernel_w, a.stride[1], 1, a.padding)
    return rows[1], columns[1]


def _bad_channels(op: Op) -> bool:
    data, weights = op.operand(2), op.operand(1)
    return (weights.shape[3], weights.shape[0]) != (data.shape[3], op.output.shape[3])


def _on_convolution(rule: Rule) -> Rule:
    return Rule(rule.text, lambda op: rule.broken(as_convolution(op)), rule.hint)


class TransposeConvFamily(ImageFamily):
    """TRANSPOSE_CONV. Weights are [out_c, kernel_h, kernel_w, in_c]. Sums, bias and requantization are those of CONV_2D
    (TFLM, reference/integer_ops/transpose_conv.h)."""

    kind = "TRANSPOSE_CONV"
    zero_scales = (1,)
    options_table = "TransposeConvOptions"
    data_and_weights = (2, 1)
    image_input = 2
    summary = "transposed convolution over rows and columns: any kernel, stride, padding"
    rules = (
        Rule(
            "three or four inputs and one output",
            lambda op: not 3 <= len(op.inputs) <= 4 or None in op.inputs[:3] or len(op.outputs) != 1,
        ),
        Rule(
            "the output's shape is constant int32",
            lambda op: None if op.operand(0).is_constant and op.operand(0).dtype == "int32" else op.operand(0),
            "convert the model with fixed shapes",
        ),
        *map(_on_convolution, (*TENSOR_RULES[1:], ZERO_POINT_RULE, SHAPE_RULES[0])),
        Rule(
            "the strides are from 1 to 32767",
            lambda op: not all(1 <= s <= 32767 for s in op.attributes_as(TransposeConv).stride),
        ),
        Rule("input and output have the same batch size", lambda op: op.operand(2).shape[0] != op.output.shape[0]),
        Rule("weights are [output channels, rows, columns, input channels]", _bad_channels),
        *map(_on_convolution, (weights_scale_rule(axis=0), *QUANTIZATION_RULES)),
    )

    def instead(self, op: Op) -> Mapping[int, Tensor]:
        """Constant for input 0, the output's shape, if a run computes it: TFLM reads the shape of the output tensor
        instead."""
        shape = op.inputs[0] if op.inputs and op.outputs else None
        if shape is None or shape.is_constant or (shape.dtype, shape.elements) != ("int32", len(op.output.shape)):
            return {}
        return {0: shape_constant(shape, op.output)}

    def attributes(self, options: Mapping[str, Any]) -> TransposeConv:
        return TransposeConv(
            options.get("padding", "SAME"),
            (options.get("stride_h", 0), options.get("stride_w", 0)),
            options.get("fused_activation_function", "NONE"),
        )

    def image(self, op: Op, *inputs: Array | None) -> Array:
        result: Array = (self._function if quantized(op) else self._real)(with_bias(op, inputs, 3), *inputs)[None]
        return result

    def _function(self, op: Op, *inputs: Array | None) -> Array:
        """Output of a layer of integers, [H, W, C]."""
        weights = given(inputs[1]).astype(np.float64)
        values = given(inputs[2])[0].astype(np.float64) - op.operand(2).zero_point
        total = _everything(op, np.float64)  # float64 holds every sum exactly
        for ky, kx, rows, columns in _reached(op):
            total[rows, columns] += values @ weights[:, ky, kx].T
        return requantize_channels(as_convolution(op), _kept(op, total).astype(np.int64))

    def _real(self, op: Op, *inputs: Array | None) -> Array:
        """Output of a float32 layer, [H, W, C]. Every product and sum is rounded, in TFLM's order: that of the input's
        rows, columns and channels, so the last tap comes first."""
        weights, values = given(inputs[1]), given(inputs[2])[0]
        total = _everything(op, np.float32)
        with np.errstate(all="ignore"):
            for ky, kx, rows, columns in reversed(list(_reached(op))):
                for i in range(values.shape[2]):
                    total[rows, columns] += values[..., i, None] * weights[:, ky, kx, i]
        return real_outputs(as_convolution(op), _kept(op, total))

    def macs(self, op: Op) -> int:
        weights, data = op.operand(1), op.operand(2)
        return data.shape[0] * data.shape[1] * data.shape[2] * weights.elements

    def window(self, op: Op) -> RowWindow:
        kernel = op.operand(1).shape[1]
        return RowWindow(kernel, 1, kernel - 1 - paddings(op)[0], op.attributes_as(TransposeConv).stride[0])

    def of_rows(
        self, op: Op, inputs: tuple[Tensor | None, ...], output: Tensor, first: int, above: int, below: int
    ) -> Op | None:
        top, left = paddings(op)
        a, window = op.attributes_as(TransposeConv), self.row_window(op, 2)
        if window is None:
            return None
        before = max(0, window.reach(first)[0]) * a.stride[0]  # rows of the output that the first input row begins with
        shape = replace(op.operand(0), shape=(4,), data=np.array(output.shape, np.int32), index=-1)
        attributes = replace(a, padding=(first + top - before, left))
        return replace(op, inputs=(shape, *inputs[1:]), outputs=(output,), attributes=attributes)

    def with_axes_swapped(self, op: Op, inputs: tuple[Tensor | None, ...]) -> Op | None:
        weights, shape = op.operand(1), op.operand(0)
        data, (batch, height, width, channels) = weights.values.swapaxes(1, 2), op.output.shape
        new_shape = replace(shape, shape=(4,), data=np.array([batch, width, height, channels], np.int32), index=-1)
        a = op.attributes_as(TransposeConv)
        padding = a.padding if isinstance(a.padding, str) else a.padding[::-1]
        attributes = replace(a, stride=a.stride[::-1], padding=padding)
        filters = replace(weights, shape=data.shape, data=data)
        return replace(op, inputs=(new_shape, filters, inputs[2], *op.inputs[3:]), attributes=attributes)


def _everything(op: Op, dtype: type) -> Array:
    """Zeros [H, W, C] for all output elements that any input pixel adds to, those that are cut off included."""
    (_, in_h, in_w, _), (_, kernel_h, kernel_w, _) = op.operand(2).shape, op.operand(1).shape
    (_, out_h, out_w, out_c), (stride_h, stride_w) = op.output.shape, op.attributes_as(TransposeConv).stride
    top, left = paddings(op)
    height = max((in_h - 1) * stride_h + kernel_h, out_h + top)
    width = max((in_w - 1) * stride_w + kernel_w, out_w + left)
    return np.zeros((height, width, out_c), dtype)


def _reached(op: Op) -> Iterator[tuple[int, int, slice, slice]]:
    """Yields (kernel row, kernel column, rows, columns): those of `_everything` that a tap adds to."""
    (_, in_h, in_w, _), (_, kernel_h, kernel_w, _) = op.operand(2).shape, op.operand(1).shape
    stride_h, stride_w = op.attributes_as(TransposeConv).stride
    for ky in range(kernel_h):
        for kx in range(kernel_w):
            rows = slice(ky, ky + (in_h - 1) * stride_h + 1, stride_h)
            yield ky, kx, rows, slice(kx, kx + (in_w - 1) * stride_w + 1, stride_w)


def _kept(op: Op, total: Array) -> Array:
    """Return the part of the result of `_everything` that the output keeps."""
    (_, out_h, out_w, _), (top, left) = op.output.shape, paddings(op)
    return total[top : top + out_h, left : left + out_w]
