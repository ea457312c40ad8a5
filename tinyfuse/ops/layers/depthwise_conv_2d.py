"""DEPTHWISE_CONV_2D, int8, int16 and float32: any kernel, stride, dilation, padding and depth multiplier."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tinyfuse.ir import Array, Op, Tensor, given
from tinyfuse.ops.core.convolution import (
    DepthwiseConv2D,
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
    out_c = op.input.shape[3] * op.attributes_as(DepthwiseConv2D).depth_multiplier
    good = op.operand(1).shape[0] == 1 and op.operand(1).shape[3] == op.output.shape[3] == out_c
    return None if good else op.operand(1)


class DepthwiseConv2DFamily(ImageFamily):
    """DEPTHWISE_CONV_2D. Weights are [1, kernel_h, kernel_w, out_c] with out_c = in_c * depth_multiplier."""

    kind = "DEPTHWISE_CONV_2D"
    zero_scales = (1,)
    computes_uint8 = True
    options_table = "DepthwiseConv2DOptions"
    data_and_weights, channel_axis, convolution, depthwise = (0, 1), 3, True, True
    summary = "convolution of each channel by itself: any kernel, stride, dilation, padding, depth multiplier"
    rules = (
        *TENSOR_RULES,
        ZERO_POINT_RULE,
        *SHAPE_RULES,
        Rule("weight and output channels are input channels * depth multiplier", _bad_channels),
        weights_scale_rule(axis=channel_axis),
        *QUANTIZATION_RULES,
    )

    def attributes(self, options: Mapping[str, Any]) -> DepthwiseConv2D:
        multiplier = options.get("depth_multiplier", 0)
        return DepthwiseConv2D(**conv_options(options), depth_multiplier=multiplier)

    def image(self, op: Op, *inputs: Array | None) -> Array:
        return (self._function if quantized(op) else self._real)(with_bias(op, inputs), *inputs)

    def _function(self, op: Op, *inputs: Array | None) -> Array:
        """Output of a layer of integers."""
        g = geometry(op)
        # [kernel rows, kernel columns, input channels, outputs of each]
        weights = given(inputs[1])[0].reshape(g.kernel_h, g.kernel_w, g.in_c, -1).astype(np.float64)
        total = np.empty((g.out_h, g.out_w, g.out_c))
        for rows, read in im2col(op, given(inputs[0])):
            total[rows] = np.einsum("hwyxc,yxcm->hwcm", read, weights).reshape(-1, g.out_w, g.out_c)
        return requantize_channels(op, total.astype(np.int64))[None]

    def _real(self, op: Op, *inputs: Array | None) -> Array:
        """Output of a float32 layer: every product and sum is rounded, in TFLM's order."""
        g, weights = geometry(op), given(inputs[1])
        total = np.zeros((g.out_h, g.out_w, g.out_c), np.float32)
        with np.errstate(all="ignore"):
            for ky, kx, values, inside in windows(op, given(inputs[0])[0]):
                product = np.repeat(values, g.out_c // g.in_c, axis=2) * weights[0, ky, kx]
                total = np.where(inside, total + product, total)
        return real_outputs(op, total)[None]

    def passes_channels(self, op: Op) -> bool:
        return op.attributes_as(DepthwiseConv2D).depth_multiplier == 1 and op.input.shape[3] == op.output.shape[3]

    def macs(self, op: Op) -> int:
        _, kernel_h, kernel_w, _ = op.operand(1).shape
        return op.output.elements * kernel_h * kernel_w

    def window(self, op: Op) -> RowWindow:
        return geometry(op).window

    def of_rows(
        self, op: Op, inputs: tuple[Tensor | None, ...], output: Tensor, first: int, above: int, below: int
    ) -> Op | None:
        return conv_of_rows(op, inputs, output, above, below)

    def with_axes_swapped(self, op: Op, inputs: tuple[Tensor | None, ...]) -> Op | None:
        return conv_with_axes_swapped(op, inputs)
