"""CONV_2D, int8, int16 and float32: any kernel, stride, dilation and padding, grouped or not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tinyfuse.ir import Array, Op, Tensor, given
from tinyfuse.ops.core.convolution import (
    Conv2D,
    conv_of_rows,
    conv_options,
    conv_with_axes_swapped,
    geometry,
    im2col,
    quantized,
    requantize_channels,
    windows,
    with_bias,
)
from tinyfuse.ops.core.convolution_rules import (
    QUANTIZATION_RULES,
    SHAPE_RULES,
    TENSOR_RULES,
    ZERO_POINT_RULE,
    weights_scale_rule,
)
from tinyfuse.ops.core.family import RowWindow, Rule
from tinyfuse.ops.core.images import ImageFamily
from tinyfuse.ops.core.real import real_outputs


def _bad_channels(op: Op) -> Tensor | None:
    out_c, filter_c = op.operand(1).shape[0], op.operand(1).shape[3]
    in_c = op.input.shape[3]
    good = in_c % filter_c == 0 and out_c % (in_c // filter_c) == 0 and op.output.shape[3] == out_c
    return None if good else op.operand(1)


class Conv2DFamily(ImageFamily):
    """CONV_2D. Weights are [out_c, kernel_h, kernel_w, in_c / groups]; with groups > 1, output channel c reads the
    input channels of group c // (out_c / groups)."""

    kind = "CONV_2D"
    zero_scales = (1,)
    computes_uint8 = True
    options_table = "Conv2DOptions"
    data_and_weights, channel_axis, convolution = (0, 1), 0, True
    summary = "convolution over rows and columns: any kernel, stride, dilation, padding, groups"
    rules = (
        *TENSOR_RULES,
        ZERO_POINT_RULE,
        *SHAPE_RULES,
        Rule("input channels are filter channels * groups, output channels a multiple of groups",
             _bad_channels),
        weights_scale_rule(axis=channel_axis),
        *QUANTIZATION_RULES,
    )  # fmt: skip

    def attributes(self, options: Mapping[str, Any]) -> Conv2D:
        return Conv2D(**conv_options(options))

    def image(self, op: Op, *inputs: Array | None) -> Array:
        return (self._function if quantized(op) else self._real)(with_bias(op, inputs), *inputs)

    def _function(self, op: Op, *inputs: Array | None) -> Array:
        """Output of a layer of integers."""
        g = geometry(op)
        weights = given(inputs[1]).astype(np.float64)
        filter_c, filters = g.in_c // g.groups, g.out_c // g.groups
        total = np.empty((g.out_h, g.out_w, g.out_c))
        for rows, read in im2col(op, given(inputs[0])):
            for group in range(g.groups):
                outs = slice(group * filters, (group + 1) * filters)
                ins = slice(group * filter_c, (group + 1) * filter_c)
                total[rows, :, outs] = np.tensordot(read[..., ins], weights[outs], ([2, 3, 4], [1, 2, 3]))
        return requantize_channels(op, total.astype(np.int64))[None]

    def _real(self, op: Op, *inputs: Array | None) -> Array:
        """Output of a float32 layer: every product and sum is rounded, in TFLM's order."""
        g, weights = geometry(op), given(inputs[1])
        filter_c = g.in_c // g.groups
        group = np.arange(g.out_c) // (g.out_c // g.groups)
        total = np.zeros((g.out_h, g.out_w, g.out_c), np.float32)
        with np.errstate(all="ignore"):
            for ky, kx, values, inside in windows(op, given(inputs[0])[0]):
                for i in range(filter_c):
                    product = values[..., group * filter_c + i] * weights[:, ky, kx, i]
                    total = np.where(inside, total + product, total)
        return real_outputs(op, total)[None]

    def sums_channels(self, op: Op) -> bool:
        return geometry(op).groups == 1

    def macs(self, op: Op) -> int:
        _, kernel_h, kernel_w, filter_c = op.operand(1).shape
        return op.output.elements * kernel_h * kernel_w * filter_c

    def window(self, op: Op) -> RowWindow:
        return geometry(op).window

    def of_rows(
        self, op: Op, inputs: tuple[Tensor | None, ...], output: Tensor, first: int, above: int, below: int
    ) -> Op | None:
        return conv_of_rows(op, inputs, output, above, below)

    def with_axes_swapped(self, op: Op, inputs: tuple[Tensor | None, ...]) -> Op | None:
        return conv_with_axes_swapped(op, inputs)
