"""Convolutions of int8 data with int16 weights, which uint8 models have (runtime_c/tinyfuse_*_w16.h).

A uint8 weight less its zero point has 9 bits. Less another offset, all weights of a layer fit a byte.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from tinyfuse.ir import Array, Op
from tinyfuse.kernels.core.c_constants import c_constant
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Constant, RowKernel, require_proven
from tinyfuse.kernels.core.methods import of_calls, of_operator
from tinyfuse.kernels.core.statements import Statement
from tinyfuse.kernels.counts.im2col import packed_counts, packed_depthwise_counts
from tinyfuse.kernels.counts.layers import layer_counts
from tinyfuse.kernels.counts.windows import window_counts
from tinyfuse.kernels.layers.common.params import POINTER_BYTES, conv_row_call, general_channels, orders_by_pixels
from tinyfuse.kernels.layers.common.taps import packed_taps, taps_scratch
from tinyfuse.kernels.layers.int8_dsp import lanes
from tinyfuse.kernels.layers.int8_dsp.conv import kind_of_windows
from tinyfuse.kernels.requantize.layer_facts import layer_facts
from tinyfuse.kernels.requantize.single_rounding import single_rounding
from tinyfuse.kernels.requantize.two_roundings import REQUANT, bounded
from tinyfuse.ops.core.convolution import channel_multipliers, geometry
from tinyfuse.ops.weight_sums import channel_weights

#: groups of four inputs whose bytes one int16 sum holds
_GROUPS_TO_SUM = c_constant("tinyfuse_conv_bytes_w16.h", "TINYFUSE_W16_GROUPS")


class ConvRowW16(RowKernel):
    """Convolution of uint8 data with int16 weights in portable C; a depthwise one is computed as one with groups."""

    name = "tinyfuse_conv_row_w16"
    no_inline = True
    headers = ("tinyfuse_conv_w16.h",)
    row_access_orders = of_operator(orders_by_pixels)
    counts = of_calls(window_counts)

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        weights = np.ascontiguousarray(channel_weights(op)).reshape(-1)
        return Constant("weights", weights, "int16_t"), general_channels(op)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        return conv_row_call(self, op, site)


def _in_bytes(weights: Array, offsets: Array) -> Array | None:
    """Return int8 [out_c, terms], the weights less their channel's offset; None where one doesn't fit."""
    less = weights.astype(np.int64) - offsets[:, None]
    return less.astype(np.int8) if less.min() >= -128 and less.max() <= 127 else None


def _nearest_offsets(least: Array, most: Array) -> Array:
    """Return the offsets of at least -127 nearest to 0 that bring least..most into -127..127, or if need be
    -128..127."""
    low = np.where((most - least < 255) & (least > -255), least + 127, least + 128)
    nearest: Array = np.minimum(np.maximum(0, most - 127), low)
    return nearest


@lru_cache(maxsize=512)
def _by_channel(op: Op) -> tuple[Array, Array] | None:
    """Return (int8 weights [out_c, terms], offsets -127..127 [out_c]) of a convolution of one group.

    None where the layer has groups or no bounded form, or a channel's weights span more than a byte.
    """
    if geometry(op).groups != 1 or bounded(op) is None:
        return None
    weights = require_proven(bounded(op)).weights
    offsets = _nearest_offsets(weights.min(axis=1).astype(np.int64), weights.max(axis=1).astype(np.int64))
    less = _in_bytes(weights, offsets)
    return None if less is None or offsets.max() > 127 else (less, offsets)


def _less_one_offset(weights: Array) -> tuple[Array, int] | None:
    """Return (int8 weights [out_c, terms], offset -127..128), where one offset is subtracted from all weights; None if
    the weights span more than a byte."""
    wide = weights.astype(np.int64)
    offset = _nearest_offsets(wide.min(keepdims=True)[0], wide.max(keepdims=True)[0])
    less = _in_bytes(wide, offset)
    return None if less is None else (less, int(offset[0]))


@lru_cache(maxsize=512)
def _by_layer(op: Op) -> tuple[Array, int] | None:
    """Return the weights of the bounded form, as `_less_one_offset` does; None if the layer has no such form."""
    layer = bounded(op)
    return None if layer is None else _less_one_offset(layer.weights)


@lru_cache(maxsize=512)
def _unproven_by_layer(op: Op) -> tuple[Array, int] | None:
    """Return `_less_one_offset` of a layer's own weights, whether or not the layer has a bounded form."""
    return _less_one_offset(channel_weights(op))


class PackedConvRowW16(RowKernel):
    """Convolution of uint8 data without groups, by im2col and int16 weights, for cores with the DSP extension."""

    name = "tinyfuse_conv_packed_row_w16"
    weights = "unpacked"
    headers = ("tinyfuse_conv_w16.h",)
    row_access_orders = of_operator(orders_by_pixels, buffered=True)
    counts = of_calls(layer_counts)

    def accepts(self, op: Op, context: Context) -> bool:
        if context.target.mve or not context.target.dsp:
            return False
        asked = context.weights in ("auto", self.weights) or _by_channel(op) is None
        return asked and geometry(op).groups == 1 and bounded(op) is not None

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        layer = require_proven(bounded(op))
        channels = lanes.split_even_odd(lanes.padded(op, lanes.in_columns(op, layer.weights)).astype("<i2"))
        even = len(channels) // 2 * 2
        pairs = channels[:even].reshape(-1, 2, *channels.shape[1:]).transpose(0, 2, 3, 1, 4)
        weights = np.concatenate([pairs.reshape(-1), channels[even:].reshape(-1)])
        return (
            Constant("weights", weights.view(np.int8), "int8_t"),
            Constant("channels", layer.channels, "tinyfuse_requant"),
        )

    def scratch(self, op: Op, context: Context) -> int:
        by_bytes = op.input.shape[3] % 4 != 0
        rows = op.operand(1).shape[1] * POINTER_BYTES
        return lanes.matmul_depth(op) * (2 * lanes.block_pixels(context) + by_bytes) + rows

    def path(self, op: Op, by_row: bool, context: Context) -> str:
        return f"blocks of {lanes.block_pixels(context)}"

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        return conv_row_call(self, op, site, site.scratch, lanes.block_pixels(context))


class BytesConvRowW16(RowKernel):
    """Convolution of uint8 data without groups, by im2col and int8 weights less an offset, for cores with the DSP
    extension.

    Columns also hold the sums of their inputs, which are multiplied by the offsets.
    """

    name = "tinyfuse_conv_bytes_row_w16"
    costs_as = "tinyfuse_conv_packed_row_s8"
    headers = ("tinyfuse_conv_bytes_w16.h",)
    row_access_orders = of_operator(orders_by_pixels, buffered=True)
    counts = of_calls(packed_counts)

    def accepts(self, op: Op, context: Context) -> bool:
        return context.target.dsp and not context.target.mve and _by_channel(op) is not None

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return lanes.matmul_constants(_packed_layer(op))

    def scratch(self, op: Op, context: Context) -> int:
        depth, rows = lanes.matmul_depth(op), op.operand(1).shape[1] * POINTER_BYTES
        by_bytes = depth if op.input.shape[3] % 4 != 0 else 0
        return 2 * lanes.block_pixels(context) * (depth + 4 * _sum_groups(op)) + by_bytes + rows

    def path(self, op: Op, by_row: bool, context: Context) -> str:
        form, block = lanes.form_name(_packed_layer(op).form), lanes.block_pixels(context)
        return f"{form}, blocks of {block}{kind_of_windows(op, own=False)}"

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        return conv_row_call(self, op, site, site.scratch, lanes.block_pixels(context), _packed_layer(op).form)


def _sum_groups(op: Op) -> int:
    """Return the number of groups of four sums that follow the inputs of a column."""
    return 2 * -(-lanes.matmul_depth(op) // 4 // _GROUPS_TO_SUM)


def _weights_of_sums(offsets: Array, signs: list[int]) -> Array:
    """Return int8 [out_c, len(signs)]: each channel's offset times each of `signs`."""
    weights: Array = (offsets[:, None] * np.array(signs)).astype(np.int8)
    return weights


@lru_cache(maxsize=512)
def _packed_layer(op: Op) -> lanes.Matmul:
    """Return the layer for cores with the DSP extension. Its weights include extra columns that compute sums of
    inputs."""
    layer, line = require_proven(bounded(op)), single_rounding(op)
    weights, offsets = require_proven(_by_channel(op))
    in_bytes = lanes.padded(op, lanes.in_columns(op, weights))
    sums, inputs = _sum_groups(op), lanes.matmul_depth(op)
    in_lanes, extra = lanes.weights_in_lanes(in_bytes)
    if in_lanes is None or (line is None and not layer.fits_lanes):
        # a stored sum exceeds the true one by 128 for each of its inputs
        of_sums = _weights_of_sums(offsets, [1, 0, 1, 0] * sums)
        channels = layer.channels.copy()
        channels["bias"] = (channels["bias"].astype(np.int64) - 128 * offsets * inputs).astype(np.int32)
        return lanes.Matmul(lanes.WIDE, lambda: (np.concatenate([in_bytes, of_sums], axis=1), channels))
    # a lane of weights v, 0 multiplies by -256 v. The first sums are stored as 127 less inputs, the others as 128 more
    sum_lanes, _ = lanes.weights_in_lanes(_weights_of_sums(offsets, [1, 0, 1, 0, -1, 0, -1, 0] * (sums // 2)))
    packed = np.concatenate([in_lanes, require_proven(sum_lanes)], axis=1)
    extra = extra - 256 * offsets * (inputs // 2)
    if line is not None:
        return lanes.Matmul(lanes.SINGLE_ROUNDING, lambda: (packed, line.channels(extra)))
    return lanes.Matmul(lanes.LANES, lambda: (packed, lanes.in_256ths(layer.channels, extra)))


class DotsConvRowW16(RowKernel):
    """Convolution of uint8 data without groups, pixel by pixel, from products of bytes, for cores without the DSP
    extension or with Helium."""

    name = "tinyfuse_conv_dots_row_w16"
    headers = ("tinyfuse_conv_dots_w16.h",)
    row_access_orders = of_operator(orders_by_pixels, buffered=True)
    counts = of_calls(layer_counts)

    def accepts(self, op: Op, context: Context) -> bool:
        fits = geometry(op).groups == 1 and _by_layer(op) is not None
        return fits and (context.target.mve or not context.target.dsp)

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        weights, _ = require_proven(_by_layer(op))
        return (
            Constant("weights", np.ascontiguousarray(weights).reshape(-1), "int8_t"),
            Constant("channels", require_proven(bounded(op)).channels, "tinyfuse_requant"),
        )

    def scratch(self, op: Op, context: Context) -> int:
        return int(channel_weights(op).shape[1])

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        _, offset = require_proven(_by_layer(op))
        return conv_row_call(self, op, site, site.scratch, offset)


class PackedDepthwiseRowW16(RowKernel):
    """Depthwise convolution of uint8 data, depth multiplier 1, at least four channels, two taps at a time."""

    name = "tinyfuse_depthwise_packed_row_w16"
    headers = ("tinyfuse_depthwise_w16.h",)
    scratch = of_operator(taps_scratch)
    counts = of_calls(packed_depthwise_counts)

    def accepts(self, op: Op, context: Context) -> bool:
        g = geometry(op)
        return g.in_c == g.out_c >= 4 and _by_layer(op) is not None

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        weights, offset = require_proven(_by_layer(op))
        even = np.pad(weights, ((0, 0), (0, weights.shape[1] % 2)), constant_values=-offset)
        return (
            Constant("weights", packed_taps(even), "int8_t"),
            Constant("channels", require_proven(bounded(op)).channels, "tinyfuse_requant"),
        )

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        _, offset = require_proven(_by_layer(op))
        return conv_row_call(self, op, site, site.scratch, offset)


class DepthwiseRowW16(RowKernel):
    """Depthwise convolution of uint8 data with int16 weights and depth multiplier 1, a row at a time."""

    name = "tinyfuse_depthwise_row_w16"
    no_inline = True
    headers = ("tinyfuse_depthwise_w16.h",)
    scratch = of_operator(taps_scratch)
    counts = of_calls(window_counts)

    def accepts(self, op: Op, context: Context) -> bool:
        g = geometry(op)
        return g.in_c == g.out_c and layer_facts(op).biases_fit and _unproven_by_layer(op) is not None

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        channels = np.zeros(op.output.shape[-1], REQUANT)
        channels["bias"] = layer_facts(op).bias
        channels["multiplier"], channels["shift"] = channel_multipliers(op)
        weights, _ = require_proven(_unproven_by_layer(op))
        return Constant("weights", weights.T.reshape(-1), "int8_t"), Constant("channels", channels, "tinyfuse_requant")

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        _, offset = require_proven(_unproven_by_layer(op))
        return conv_row_call(self, op, site, site.scratch, offset)
