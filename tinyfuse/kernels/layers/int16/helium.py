"""Helium kernels of int16 layers (runtime_c/tinyfuse_mve_s16.h).

They serve layers whose sums are int64 in TensorFlow Lite Micro and are proven to stay within int32.
"""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import Array, Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Constant, Kernel, RowKernel, require_proven
from tinyfuse.kernels.core.methods import of_calls, of_operator
from tinyfuse.kernels.core.rows import vectors
from tinyfuse.kernels.core.statements import Call, Let, Statement
from tinyfuse.kernels.counts.depthwise import depthwise_counts
from tinyfuse.kernels.counts.layers import int16_2x4_counts, layer_counts
from tinyfuse.kernels.layers.common.params import POINTER_BYTES, conv_row_call, orders_by_two_pixels, pointwise_input
from tinyfuse.kernels.layers.common.taps import group_starts, taps_scratch
from tinyfuse.kernels.layers.int16.dsp import SCALE_S16, has_zero_points, matmul_s16
from tinyfuse.ops.core.convolution import clamp_range, geometry, is_plain_pointwise
from tinyfuse.ops.weight_sums import channel_weights


def _fits(op: Op, context: Context) -> bool:
    """Return whether the core has Helium and the layer is proven exact with int32 sums and one rounding."""
    found = matmul_s16(op) if context.target.mve else None
    return found is not None and found.channels.dtype == SCALE_S16


def _scales(op: Op) -> tuple[Array, Array]:
    """Return (biases, multipliers) of the channels, int32 [out_c] each."""
    channels = require_proven(matmul_s16(op)).channels
    return channels["bias"], channels["multiplier"]


def _matmul_constants(op: Op) -> tuple[Constant, ...]:
    weights = channel_weights(op)
    (out_c, depth), groups = weights.shape, -(-len(weights) // 4)
    padded = np.zeros((4 * groups, -(-depth // 8) * 8), np.int8)
    padded[:out_c, :depth] = weights
    packed = padded.reshape(groups, 4, -1, 8).transpose(0, 2, 1, 3)
    channels = np.zeros((2, 4 * groups), np.int32)
    channels[:, :out_c] = _scales(op)
    quads = channels.reshape(2, groups, 4).transpose(1, 0, 2)
    return (
        Constant("weights", np.ascontiguousarray(packed).reshape(-1), "int8_t"),
        Constant("channels", np.ascontiguousarray(quads).reshape(-1), "int32_t"),
    )


def _matmul_call(
    kernel: Kernel, op: Op, site: CallSite, pointer: str, pixels: int, depth: int
) -> tuple[Statement, ...]:
    low, high = clamp_range(op)
    fields = {"depth": depth, "out_c": op.output.shape[-1], "act_min": low, "act_max": high}
    args = ("&p", pointer, pixels, site.output.pointer, site.constant("weights"), site.constant("channels"))
    return Let("tinyfuse_matmul_mve_s16", "p", fields), Call(kernel.name, args)


class MvePointwiseS16(Kernel):
    """1x1 convolution of int16 data with stride 1, for Helium, two pixels at a time."""

    name = "tinyfuse_pointwise_mve_s16"
    headers = ("tinyfuse_mve_s16.h",)
    by_row, rings = True, True
    constants = of_operator(_matmul_constants)
    counts = of_calls(int16_2x4_counts)
    access_orders = of_operator(orders_by_two_pixels)

    def accepts(self, op: Op, context: Context) -> bool:
        return is_plain_pointwise(op) and _fits(op, context)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        return _matmul_call(self, op, site, *pointwise_input(op, site), geometry(op).in_c)


class MveDenseS16(MvePointwiseS16):
    """Fully connected layer of int16 data without zero points, for Helium, computed as a pointwise convolution of
    batches."""

    def accepts(self, op: Op, context: Context) -> bool:
        return not has_zero_points(op) and _fits(op, context)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        return _matmul_call(self, op, site, *vectors(op, site), op.operand(1).shape[1])


class _MveRow(RowKernel):
    """Base of Helium layers of int16 data that are computed by rows."""

    headers = ("tinyfuse_mve_s16.h",)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        return conv_row_call(self, op, site, site.scratch)


class MveConvRowS16(_MveRow):
    """Convolution of int16 data without groups, for Helium, by im2col of two pixels."""

    name = "tinyfuse_conv_mve_row_s16"
    constants = of_operator(_matmul_constants)
    counts = of_calls(layer_counts)

    def accepts(self, op: Op, context: Context) -> bool:
        return geometry(op).groups == 1 and _fits(op, context)

    def scratch(self, op: Op, context: Context) -> int:
        rows, terms = op.operand(1).shape[1], int(channel_weights(op).shape[1])
        return rows * POINTER_BYTES + 2 * 2 * (-(-terms // 8) * 8)


class MveDepthwiseRowS16(_MveRow):
    """Depthwise convolution of int16 data with depth multiplier 1, at least eight channels, for Helium, eight at a
    time."""

    name = "tinyfuse_depthwise_mve_row_s16"
    scratch = of_operator(taps_scratch, 2)
    counts = of_calls(depthwise_counts)

    def accepts(self, op: Op, context: Context) -> bool:
        g = geometry(op)
        return g.in_c == g.out_c >= 8 and _fits(op, context)

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        weights = channel_weights(op)
        starts = group_starts(len(weights), 8)
        packed = np.array([weights[start : start + 8].T for start in starts])
        fields = [field[start + odd : start + 8 : 2] for start in starts for field in _scales(op) for odd in (0, 1)]
        return (
            Constant("weights", packed.reshape(-1), "int8_t"),
            Constant("channels", np.concatenate(fields), "int32_t"),
        )
