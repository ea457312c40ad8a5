"""Kernels of float32 layers (runtime_c/tinyfuse_*_f32.h)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyfuse.ir import Array, Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Constant, Kernel, RowKernel
from tinyfuse.kernels.core.methods import of_calls, of_operator
from tinyfuse.kernels.core.rows import vectors
from tinyfuse.kernels.core.statements import Call, Statement
from tinyfuse.kernels.counts.depthwise import depthwise_counts
from tinyfuse.kernels.counts.layers import conv_1x8_counts, dense_eight_counts
from tinyfuse.kernels.counts.transpose_conv import transposed_counts
from tinyfuse.kernels.counts.windows import window_counts
from tinyfuse.kernels.layers.common.params import conv_row_call, orders_by_batches, orders_by_pixels, plain_weights
from tinyfuse.kernels.layers.common.taps import group_starts, taps_scratch
from tinyfuse.kernels.layers.int8_dsp.transpose_conv import transpose_conv_call
from tinyfuse.ops.core.convolution import geometry
from tinyfuse.ops.core.real import real_bias, real_clamp
from tinyfuse.ops.layers.transpose_conv import as_convolution
from tinyfuse.ops.weight_sums import channel_weights


def biases(op: Op) -> Constant:
    """Return the constant "biases", float [out_c]."""
    return Constant("biases", np.ascontiguousarray(real_bias(op), "<f4"), "float")


class _Layer(RowKernel):
    """Base of layers that compute one output row a call from rings. A call reads only the input rows of its row's own
    window."""

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return plain_weights(op), biases(op)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        return conv_row_call(self, op, site, *real_clamp(op), arrays=("weights", "biases"))


class _PixelByPixel(_Layer):
    """float32 layer that is computed by rows, one output pixel after another."""

    row_access_orders = of_operator(orders_by_pixels)


class ConvRowF32(_PixelByPixel):
    """float32 convolution of any kernel size, stride and padding, a row at a time."""

    name = "tinyfuse_conv_row_f32"
    no_inline = True
    headers = ("tinyfuse_conv_f32.h",)
    counts = of_calls(window_counts)


class DepthwiseRowF32(ConvRowF32):
    """float32 depthwise convolution of any kernel size, stride and padding, a row at a time."""

    name = "tinyfuse_depthwise_row_f32"


def weights_by_eight(layers: Sequence[Array]) -> Constant:
    """Return the constant "weights" of layers [out_c, terms], one after another.

    A layer is [terms, 8] for each eight output channels, then [terms, rest] for those that are left. Zeros follow the
    last layer's rest: the C always loads eight weights.
    """
    parts = [part.T.reshape(-1) for weights in layers for part in np.split(weights, range(8, len(weights), 8))]
    unfilled = np.zeros(-len(layers[-1]) % 8)
    return Constant("weights", np.concatenate([*parts, unfilled]).astype("<f4"), "float")


class PackedConvRowF32(_PixelByPixel):
    """float32 convolution of any kernel size, eight output channels of a group at a time, with packed weights."""

    name = "tinyfuse_conv_packed_row_f32"
    headers = ("tinyfuse_conv_packed_f32.h",)
    counts = of_calls(conv_1x8_counts)

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return weights_by_eight(np.split(channel_weights(op), geometry(op).groups)), biases(op)


class PackedDepthwiseRowF32(_PixelByPixel):
    """float32 depthwise convolution with depth multiplier 1, eight channels at a time."""

    name = "tinyfuse_depthwise_packed_row_f32"
    scratch = of_operator(taps_scratch, 4)
    headers = ("tinyfuse_conv_packed_f32.h",)
    counts = of_calls(depthwise_counts)

    def accepts(self, op: Op, context: Context) -> bool:
        g = geometry(op)
        return g.in_c == g.out_c >= 8 and bool(np.isfinite(op.operand(1).values).all())

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        weights = channel_weights(op)
        packed = np.array([weights[start : start + 8].T for start in group_starts(len(weights), 8)], "<f4")
        return Constant("weights", packed.reshape(-1), "float"), biases(op)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        return conv_row_call(self, op, site, site.scratch, *real_clamp(op), arrays=("weights", "biases"))


class TransposeConvRowF32(_Layer):
    """Transposed convolution of float32 with any kernel size, stride and padding, a row at a time."""

    name = "tinyfuse_transpose_conv_row_f32"
    no_inline = True
    headers = ("tinyfuse_transpose_conv_f32.h",)
    counts = of_calls(transposed_counts)

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return plain_weights(op), biases(as_convolution(op))

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        return transpose_conv_call(self, op, site, *real_clamp(op), channels="biases")


class DenseF32(Kernel):
    """float32 fully connected layer, eight outputs at a time."""

    name = "tinyfuse_dense_f32"
    headers = ("tinyfuse_conv_packed_f32.h",)
    by_row, rings = True, True
    access_orders = of_operator(orders_by_batches, buffered=False)
    counts = of_calls(dense_eight_counts)

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return weights_by_eight([channel_weights(op)]), biases(op)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        out_c, in_c = op.operand(1).shape
        pointer, batches = vectors(op, site)
        constants = site.constant("weights"), site.constant("biases")
        args = (pointer, site.output.pointer, *constants, batches, in_c, out_c, *real_clamp(op))
        return (Call(self.name, args),)
