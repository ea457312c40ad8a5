"""TRANSPOSE_CONV of int16 and float32, computed as one convolution for each phase.

Outputs whose rows and columns have the same remainder by the strides are a phase: the same taps of the kernel reach
them (runtime_c/tinyfuse_transpose_conv_phases.h).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tinyfuse.ir import Array, Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Constant, RowKernel, require_proven
from tinyfuse.kernels.core.methods import of_calls
from tinyfuse.kernels.core.statements import Statement
from tinyfuse.kernels.counts.transpose_conv import phase_counts, transposed_counts
from tinyfuse.kernels.layers.common.params import POINTER_BYTES
from tinyfuse.kernels.layers.float32.portable import biases, weights_by_eight
from tinyfuse.kernels.layers.int8_dsp.lanes import block_pixels
from tinyfuse.kernels.layers.int8_dsp.transpose_conv import transpose_conv_call
from tinyfuse.kernels.layers.int16.dsp import form_s16, matmul_s16, packed_s16, path_s16
from tinyfuse.ops.core.real import real_clamp
from tinyfuse.ops.layers.transpose_conv import TransposeConv, as_convolution


def _phases(op: Op) -> Iterator[Array]:
    """Yield the weights [out_c, terms] of each phase, by rows and then by columns; the last tap comes first."""
    weights, (stride_h, stride_w) = op.operand(1).values, op.attributes_as(TransposeConv).stride
    for row in range(stride_h):
        for column in range(stride_w):
            taps = weights[:, row::stride_h, column::stride_w]
            yield taps[:, ::-1, ::-1].reshape(len(weights), -1)


class _TransposeConvPhasesRow(RowKernel):
    """Base of transposed convolutions of int16 and float32. A call computes one output row from the input rows that
    reach it."""

    def accepts(self, op: Op, context: Context) -> bool:
        (stride_h, stride_w), kernel = op.attributes_as(TransposeConv).stride, op.operand(1).shape[1:3]
        return stride_h <= kernel[0] and stride_w <= kernel[1]


class TransposeConvPhasesRowS16(_TransposeConvPhasesRow):
    """Transposed convolution of int16 data whose sums are proven to stay within int32."""

    name = "tinyfuse_transpose_conv_phases_row_s16"
    headers = ("tinyfuse_transpose_conv_phases_s16.h",)
    counts = of_calls(phase_counts)

    def accepts(self, op: Op, context: Context) -> bool:
        return super().accepts(op, context) and matmul_s16(as_convolution(op)) is not None

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        packed = np.concatenate([packed_s16(weights) for weights in _phases(op)])
        return Constant("weights", packed, "int8_t"), require_proven(matmul_s16(as_convolution(op))).constant

    def scratch(self, op: Op, context: Context) -> int:
        _, kernel_h, kernel_w, in_c = op.operand(1).shape
        stride_h, stride_w = op.attributes_as(TransposeConv).stride
        rows, columns = -(-kernel_h // stride_h), -(-kernel_w // stride_w)
        depth = -(-rows * columns * in_c // 4) * 4
        return rows * POINTER_BYTES + 2 * depth * (block_pixels(context) + (in_c % 4 != 0))

    def path(self, op: Op, by_row: bool, context: Context) -> str:
        return path_s16(as_convolution(op))

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        return transpose_conv_call(self, op, site, site.scratch, block_pixels(context), form_s16(as_convolution(op)))


class TransposeConvPhasesRowF32(_TransposeConvPhasesRow):
    """Transposed convolution of float32, eight output channels at a time."""

    name = "tinyfuse_transpose_conv_phases_row_f32"
    headers = ("tinyfuse_transpose_conv_phases_f32.h",)
    counts = of_calls(transposed_counts)

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return weights_by_eight([*_phases(op)]), biases(as_convolution(op))

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        return transpose_conv_call(self, op, site, *real_clamp(op), channels="biases")
