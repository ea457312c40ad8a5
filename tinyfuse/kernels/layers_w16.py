"""Our kernels of int8 convolutions with int16 weights, those of uint8 models (runtime_c/tinyfuse_*_w16.h)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tinyfuse.ir import Array, Op
from tinyfuse.kernels.base import AccessOrder, CallSite, Constant, Context, Kernel, proven
from tinyfuse.kernels.convolution_counts import layer_counts
from tinyfuse.kernels.counts import Counts
from tinyfuse.kernels.depthwise import packed_taps, taps_scratch
from tinyfuse.kernels.depthwise_counts import depthwise_counts
from tinyfuse.kernels.matmul import block_pixels, halves, in_columns, matmul_depth, padded
from tinyfuse.kernels.packing import (
    POINTER_BYTES,
    REQUANT,
    bounded,
    conv_row_call,
    folded_bias,
    general_channels,
    orders_by_pixels,
)
from tinyfuse.kernels.statements import Statement
from tinyfuse.kernels.window_counts import window_counts
from tinyfuse.ops.convolution import channel_multipliers, geometry
from tinyfuse.ops.weight_sums import channel_weights


class _Layer(Kernel):
    """One output row a call, of rings; it reads only the input rows of the row's own window."""

    by_row, whole, rings = True, False, True


def _constant(weights: Array) -> Constant:
    return Constant("weights", np.ascontiguousarray(weights).reshape(-1), "int16_t")


class ConvRowW16(_Layer):
    """Any convolution, depthwise ones as those of groups, in portable C."""

    name = "tinyfuse_conv_row_w16"
    spills = True
    headers = ("tinyfuse_conv_w16.h",)

    def row_access_orders(self, op: Op) -> Mapping[int, AccessOrder]:
        return orders_by_pixels(op)

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return _constant(channel_weights(op)), general_channels(op)

    def counts(self, op: Op, by_row: bool) -> Counts:
        return window_counts(op, by_row)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        return conv_row_call(self, op, site)


class PackedConvRowW16(_Layer):
    """Convolution of one group by im2col and a loop over weights of int16."""

    name = "tinyfuse_conv_packed_row_w16"
    headers = ("tinyfuse_conv_w16.h",)

    def accepts(self, op: Op, context: Context) -> bool:
        return geometry(op).groups == 1 and bounded(op) is not None

    def row_access_orders(self, op: Op) -> Mapping[int, AccessOrder]:
        return orders_by_pixels(op, buffered=True)

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        layer = proven(bounded(op))
        of_channels = halves(padded(op, in_columns(op, layer.weights)).astype("<i2"))
        even = len(of_channels) // 2 * 2
        pairs = of_channels[:even].reshape(-1, 2, *of_channels.shape[1:]).transpose(0, 2, 3, 1, 4)
        weights = np.concatenate([pairs.reshape(-1), of_channels[even:].reshape(-1)])
        return (
            Constant("weights", weights.view(np.int8), "int8_t"),
            Constant("channels", layer.channels, "tinyfuse_requant"),
        )

    def scratch(self, op: Op, context: Context) -> int:
        by_bytes = op.input.shape[3] % 4 != 0
        rows = op.operand(1).shape[1] * POINTER_BYTES
        return matmul_depth(op) * (2 * block_pixels(context) + by_bytes) + rows

    def path(self, op: Op, by_row: bool, context: Context) -> str:
        return f"blocks of {block_pixels(context)}"

    def counts(self, op: Op, by_row: bool) -> Counts:
        return layer_counts(op, by_row)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        return conv_row_call(self, op, site, site.scratch, block_pixels(context))


class PackedDepthwiseRowW16(_Layer):
    """Depthwise convolution with depth multiplier 1 and at least four channels by the loop of int8 weights: two of
    them make up one."""

    name = "tinyfuse_depthwise_packed_row_w16"
    headers = ("tinyfuse_depthwise_w16.h",)

    def accepts(self, op: Op, context: Context) -> bool:
        g = geometry(op)
        return g.in_c == g.out_c >= 4 and bounded(op) is not None and bool((op.operand(1).values < 255).all())

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        layer = proven(bounded(op))
        less = layer.weights >> 1
        both = np.stack([less, layer.weights - less], axis=2).reshape(len(less), -1).astype(np.int8)
        return (
            Constant("weights", packed_taps(both), "int8_t"),
            Constant("channels", layer.channels, "tinyfuse_requant"),
        )

    def scratch(self, op: Op, context: Context) -> int:
        g = geometry(op)
        return taps_scratch(op) + 2 * g.kernel_h * g.kernel_w * POINTER_BYTES

    def counts(self, op: Op, by_row: bool) -> Counts:
        return depthwise_counts(op, by_row)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        return conv_row_call(self, op, site, site.scratch)


class DepthwiseRowW16(_Layer):
    """Depthwise convolution with depth multiplier 1."""

    name = "tinyfuse_depthwise_row_w16"
    spills = True
    headers = ("tinyfuse_depthwise_w16.h",)

    def accepts(self, op: Op, context: Context) -> bool:
        g = geometry(op)
        return g.in_c == g.out_c and bool((np.abs(folded_bias(op)) < 2**31).all())

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        channels = np.zeros(op.output.shape[-1], REQUANT)
        channels["bias"] = folded_bias(op)
        channels["multiplier"], channels["shift"] = channel_multipliers(op)
        return _constant(op.operand(1).values), Constant("channels", channels, "tinyfuse_requant")

    def scratch(self, op: Op, context: Context) -> int:
        return taps_scratch(op)

    def counts(self, op: Op, by_row: bool) -> Counts:
        return window_counts(op, by_row)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        return conv_row_call(self, op, site, site.scratch)
