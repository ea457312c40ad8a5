"""Kernels of any int16 layer with int8 weights, in portable C (runtime_c/tinyfuse_*_s16.h)."""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import Op
from tinyfuse.ir.fixedpoint import reduced_multiplier
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Constant, Kernel, RowKernel
from tinyfuse.kernels.core.methods import of_calls, of_operator
from tinyfuse.kernels.core.rows import vectors
from tinyfuse.kernels.core.statements import Call, Statement
from tinyfuse.kernels.counts.common import Counts
from tinyfuse.kernels.counts.layers import layer_counts
from tinyfuse.kernels.counts.transpose_conv import transposed_counts
from tinyfuse.kernels.counts.windows import inner_window_counts, window_counts
from tinyfuse.kernels.layers.common import params
from tinyfuse.kernels.layers.int8_dsp.transpose_conv import transpose_conv_call
from tinyfuse.ops.core.convolution import accumulator, bias_values, channel_multipliers
from tinyfuse.ops.layers.transpose_conv import as_convolution

#: layout of the C struct tinyfuse_requant_s16
REQUANT_S16 = np.dtype([("bias", "<i8"), ("multiplier", "<i4"), ("shift", "<i4")])


def sums(op: Op) -> str:
    """Return the layer's constant of the C's enum tinyfuse_sums, the type of its sums."""
    return "TINYFUSE_SUMS_S64" if accumulator(op) == "int64" else "TINYFUSE_SUMS_S32"


def channels_s16(op: Op) -> Constant:
    """Return the constant "channels": bias, multiplier and shift of each output channel for the type of the sums."""
    channels = np.zeros(op.output.shape[-1], REQUANT_S16)
    multipliers, shifts = channel_multipliers(op)
    channels["bias"] = bias_values(op)
    if accumulator(op) == "int64":
        multipliers, shifts = reduced_multiplier(multipliers), 15 - shifts
    channels["multiplier"], channels["shift"] = multipliers, shifts
    return Constant("channels", channels, "tinyfuse_requant_s16", align=8)


def window_counts_s16(op: Op, by_row: bool) -> Counts:
    """Return the counts of a convolution, with `wide_outputs`, the outputs whose sums are int64.

    int32 sums are requantized faster. Nothing is requantized where the clamp leaves a single value.
    """
    found = window_counts(op, by_row)
    return {**found, "wide_outputs": found.get("outputs", 0) * (accumulator(op) == "int64")}


class _Layer(RowKernel):
    """Base of int16 layers that compute one output row a call from rings. A call reads only the input rows of its row's
    own window."""

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return params.plain_weights(op), channels_s16(op)


class ConvRowS16(_Layer):
    """Convolution of int16 data of any kernel size, stride and padding, in portable C, a row at a time."""

    name = "tinyfuse_conv_row_s16"
    no_inline = True
    headers = ("tinyfuse_conv_s16.h",)
    row_access_orders = of_operator(params.orders_by_pixels)
    counts = of_calls(window_counts_s16)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        return params.conv_row_call(self, op, site, sums(op))


class DepthwiseRowS16(_Layer):
    """Depthwise convolution of int16 data of any kernel size, stride and padding, in portable C, a row at a time."""

    name = "tinyfuse_depthwise_row_s16"
    no_inline = True
    headers = ("tinyfuse_conv_s16.h",)
    row_access_orders = of_operator(params.orders_by_pixels)
    counts = of_calls(inner_window_counts)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        return params.conv_row_call(self, op, site)


class TransposeConvRowS16(_Layer):
    """Transposed convolution of int16 data in portable C, a row at a time."""

    name = "tinyfuse_transpose_conv_row_s16"
    headers = ("tinyfuse_transpose_conv_s16.h",)
    counts = of_calls(transposed_counts)

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return params.plain_weights(op), channels_s16(as_convolution(op))

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        return transpose_conv_call(self, op, site)


class FullyConnectedS16(Kernel):
    """Fully connected layer of int16 data, with or without zero points."""

    name = "tinyfuse_fully_connected_s16"
    headers = ("tinyfuse_fully_connected_s16.h",)
    by_row, rings = True, True
    access_orders = of_operator(params.orders_by_batches, buffered=False)
    counts = of_calls(layer_counts)

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return params.plain_weights(op), channels_s16(op)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        pointer, batches = vectors(op, site)
        args = ("&p", pointer, site.output.pointer, site.constant("weights"), site.constant("channels"), sums(op))
        return params.fully_connected_params(op, site, batches), Call(self.name, args)
