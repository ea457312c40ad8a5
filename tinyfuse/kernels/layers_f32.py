"""Our kernels of layers of float32 (runtime_c/tinyfuse_*_f32.h)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tinyfuse.ir import Op
from tinyfuse.kernels.base import AccessOrder, Call, CallSite, Constant, Context, Kernel, Statement
from tinyfuse.kernels.counts import Counts, depthwise_counts, layer_counts
from tinyfuse.kernels.fully_connected import pace_of_batches
from tinyfuse.kernels.packing import conv_params, plain_weights
from tinyfuse.kernels.transpose_conv import transpose_conv_params
from tinyfuse.ops.convolution import real_bias, real_clamp_range
from tinyfuse.ops.transpose_conv import as_convolution


def _biases(op: Op) -> Constant:
    return Constant("biases", np.ascontiguousarray(real_bias(op), "<f4"), "float")


class _Layer(Kernel):
    """One output row a call, of rings; it reads only the input rows of the row's own window."""

    by_row, whole, rings = True, False, True

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return plain_weights(op), _biases(op)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        return conv_params(op, site), Call(
            self.name,
            ("&p", site.input(0).pointer, site.output_row, site.output.pointer,
             site.constant("weights"), site.constant("biases"), *real_clamp_range(op)),
        )  # fmt: skip


class ConvRowF32(_Layer):
    """Any convolution."""

    name = "tinyfuse_conv_row_f32"
    headers = ("tinyfuse_conv_f32.h",)

    def counts(self, op: Op, by_row: bool) -> Counts:
        return layer_counts(op, by_row)


class DepthwiseRowF32(_Layer):
    """Any depthwise convolution."""

    name = "tinyfuse_depthwise_row_f32"
    headers = ("tinyfuse_conv_f32.h",)

    def counts(self, op: Op, by_row: bool) -> Counts:
        return depthwise_counts(op, by_row)


class TransposeConvRowF32(_Layer):
    """Any transposed convolution."""

    name = "tinyfuse_transpose_conv_row_f32"
    headers = ("tinyfuse_transpose_conv_f32.h",)

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return plain_weights(op), _biases(as_convolution(op))

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        return transpose_conv_params(op, site), Call(
            self.name,
            ("&p", site.input(2).pointer, site.output_row, site.output.pointer,
             site.constant("weights"), site.constant("biases"), *real_clamp_range(op)),
        )  # fmt: skip


class FullyConnectedF32(Kernel):
    """Any fully connected layer."""

    name = "tinyfuse_fully_connected_f32"
    headers = ("tinyfuse_fully_connected_f32.h",)

    def access_orders(self, op: Op) -> Mapping[int, AccessOrder]:
        return pace_of_batches(op, buffered=False)

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return plain_weights(op), _biases(op)

    def counts(self, op: Op, by_row: bool) -> Counts:
        return layer_counts(op, by_row)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        out_c, in_c = op.operand(1).shape
        return (Call(
            self.name,
            (site.input(0).pointer, site.output.pointer, site.constant("weights"), site.constant("biases"),
             op.output.elements // out_c, in_c, out_c, *real_clamp_range(op)),
        ),)  # fmt: skip
