"""Kernel of int8 TRANSPOSE_CONV in portable C (runtime_c/tinyfuse_transpose_conv.h)."""

from __future__ import annotations

from tinyfuse.ir import Op
from tinyfuse.kernels.core.kernel import CallSite, Constant, Context, Kernel
from tinyfuse.kernels.core.statements import Call, Let, Statement
from tinyfuse.kernels.counts.common import Counts
from tinyfuse.kernels.counts.transpose_conv import transposed_counts
from tinyfuse.kernels.layers.common.params import general_channels, input_zero_point, output_fields, plain_weights
from tinyfuse.ops.layers.transpose_conv import TransposeConv, as_convolution, paddings


class TransposeConvRow(Kernel):
    """Any transposed convolution, one output row a call, which reads the input rows whose kernels reach it."""

    name = "tinyfuse_transpose_conv_row_s8"
    no_inline = True
    headers = ("tinyfuse_transpose_conv.h",)
    by_row, whole, rings = True, False, True

    def counts(self, op: Op, by_row: bool) -> Counts:
        return transposed_counts(op, by_row)

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return plain_weights(op), general_channels(as_convolution(op))

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        args = (
            "&p", site.input(2).pointer, site.output_row, site.output.pointer,
            site.constant("weights"), site.constant("channels"),
        )  # fmt: skip
        return transpose_conv_params(op, site), Call(self.name, args)


def transpose_conv_params(op: Op, site: CallSite) -> Let:
    """Return the declaration `const tinyfuse_transpose_conv p`, geometry and quantization."""
    source, (stride_h, stride_w) = site.input(2), op.attributes_as(TransposeConv).stride
    _, in_h, in_w, in_c = source.tensor.shape
    out_c, kernel_h, kernel_w, _ = op.operand(1).shape
    pad_top, pad_left = paddings(op)
    fields = {
        "in_h": in_h, "in_w": in_w, "in_c": in_c, "in_ring": source.ring_rows,
        "out_w": op.output.shape[2], "out_c": out_c, "kernel_h": kernel_h, "kernel_w": kernel_w,
        "stride_h": stride_h, "stride_w": stride_w,
        "pad_top": pad_top, "pad_left": pad_left, "in_zero_point": input_zero_point(source.tensor),
    }  # fmt: skip
    return Let("tinyfuse_transpose_conv", "p", fields | output_fields(op))
