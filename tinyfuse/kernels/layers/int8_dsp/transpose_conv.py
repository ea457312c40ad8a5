"""Kernels of int8 TRANSPOSE_CONV: as a 1x1 convolution, or in portable C (runtime_c/tinyfuse_transpose_conv.h)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

import numpy as np

from tinyfuse.errors import InternalFault
from tinyfuse.ir import Array, Op, Quant, Tensor
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Constant, Kernel, RowKernel
from tinyfuse.kernels.core.methods import of_calls
from tinyfuse.kernels.core.statements import Call, Expr, Let, Statement
from tinyfuse.kernels.core.wrapper import Wrapper
from tinyfuse.kernels.counts.common import Counts
from tinyfuse.kernels.counts.transpose_conv import transposed_counts
from tinyfuse.kernels.layers.common.params import general_channels, input_zero_point, output_fields, plain_weights
from tinyfuse.ops.core.convolution import Conv2D
from tinyfuse.ops.layers.transpose_conv import TransposeConv, as_convolution, paddings


class TransposeConvPointwiseRow(Wrapper):
    """Transposed convolution of int8 whose kernels do not overlap, one output row a call, as a 1x1 convolution by
    `kernel`.

    With strides (s, t), input row y makes the output rows from s * y to s * y + s - 1. Neighbouring pixels of an
    output row are t * out_c channels of one pixel, so each of these rows is a 1x1 convolution of the input row. Its
    constants are a part of those of all s rows: `kernel` must keep them in the order of pairs of channels.

    A call for row y reads only input row y / s, and writes only its output row, which must not overlap it.
    """

    #: several output rows read an input row, so none may overwrite it
    access_orders, row_access_orders = Kernel.access_orders, Kernel.row_access_orders
    indivisible = True

    def inner(self, op: Op) -> Op:
        return _pointwise(op)

    def accepts(self, op: Op, context: Context) -> bool:
        return _is_pointwise(op) and super().accepts(op, context)

    def counts(self, op: Op, by_row: bool) -> Counts:
        return self.kernel.counts(_pointwise_rows(op), by_row)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        rows, row = op.attributes_as(TransposeConv).stride[0], site.output_row
        sizes = {constant.name: constant.data.size // rows for constant in self.constants(op, context)}

        def constant(name: str) -> str:
            symbol = site.constant(name)
            return symbol if rows == 1 else f"({symbol} + ({row}) % {rows} * {sizes[name]})"

        source = row if rows == 1 else f"(({row}) / {rows})"
        inner = CallSite((site.input(2),), (site.output,), source, site.scratch, constant, site.module)
        let, call = self.kernel.call(_pointwise(op), inner, context)
        if not isinstance(let, Let) or not isinstance(let.value, Mapping):
            raise InternalFault("a transposed convolution", f"{self.kernel.name} declares no parameters")
        return replace(let, value={**let.value, "out_c": _pointwise_rows(op).output.shape[3]}), call


def _is_pointwise(op: Op) -> bool:
    """Tell whether each output pixel of the transposed convolution depends on at most one input pixel, and no input
    pixel's window is cut off, so that it is one matrix product per pixel."""
    weights, (stride_h, stride_w) = op.operand(1), op.attributes_as(TransposeConv).stride
    (out_c, kernel_h, kernel_w, _), (_, in_h, in_w, _) = weights.shape, op.operand(2).shape
    return (
        weights.is_constant
        and kernel_h <= stride_h
        and kernel_w <= stride_w
        and op.output.shape[1:3] == (in_h * stride_h, in_w * stride_w)
        and paddings(op) == (0, 0)
        and (stride_h == 1 or stride_w * out_c % 2 == 0)
    )


@lru_cache(maxsize=512)
def _pointwise(op: Op) -> Op:
    """Return the 1x1 CONV_2D with the channels of all output rows and columns that an input pixel makes.

    They are ordered by row, column and channel. Rows and columns that the kernel lacks have zero weights.
    """
    stride, weights, data = op.attributes_as(TransposeConv).stride, op.operand(1).values, op.operand(2)
    beyond = [(0, step - taps) for step, taps in zip(stride, weights.shape[1:3], strict=True)]
    every = np.pad(weights, ((0, 0), *beyond, (0, 0))).transpose(1, 2, 0, 3)
    return _convolution(op, data, every.reshape(-1, 1, 1, data.shape[3]))


@lru_cache(maxsize=512)
def _pointwise_rows(op: Op) -> Op:
    """Return a 1x1 CONV_2D that takes as many calls as `op`, each with the work of one of its output rows."""
    every, (stride_h, _) = _pointwise(op).operand(1).values, op.attributes_as(TransposeConv).stride
    _, in_h, in_w, in_c = op.operand(2).shape
    data = replace(op.operand(2), shape=(1, in_h * stride_h, in_w, in_c))
    return _convolution(op, data, every[: len(every) // stride_h])


def _convolution(op: Op, data: Tensor, weights: Array) -> Op:
    """Return the 1x1 CONV_2D of `data` whose channels repeat the requantization of `op`'s channels."""
    a, filters, times = op.attributes_as(TransposeConv), op.operand(1), len(weights) // op.operand(1).shape[0]
    attributes = Conv2D("VALID", (1, 1), activation=a.activation, clamp=a.clamp, rounding=a.rounding)
    quant = _repeat(filters.quantization, times)
    operands: list[Tensor | None] = [data, replace(filters, shape=weights.shape, data=weights, quant=quant)]
    for bias in op.inputs[3:]:
        if bias is not None:
            values = np.tile(bias.values, times)
            bias = replace(bias, shape=values.shape, data=values, quant=bias.quant and _repeat(bias.quant, times))
        operands.append(bias)
    output = replace(op.output, shape=(*data.shape[:3], len(weights)))
    return replace(op, kind="CONV_2D", inputs=tuple(operands), outputs=(output,), attributes=attributes)


def _repeat(quant: Quant, times: int) -> Quant:
    """Return the quantization of channels that are repeated; one scale for all channels stays one."""
    if not quant.per_channel:
        return quant
    return replace(quant, scale=quant.scale * times, zero_point=quant.zero_point * times)


class TransposeConvRow(RowKernel):
    """Transposed convolution of int8 of any kernel size, stride and padding, one output row a call, in portable C. A
    call reads the input rows whose kernels reach its row."""

    name = "tinyfuse_transpose_conv_row_s8"
    no_inline = True
    headers = ("tinyfuse_transpose_conv.h",)
    counts = of_calls(transposed_counts)

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return plain_weights(op), general_channels(as_convolution(op))

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        return transpose_conv_call(self, op, site)


def transpose_conv_call(
    kernel: Kernel, op: Op, site: CallSite, *more: Expr, channels: str = "channels"
) -> tuple[Statement, ...]:
    """Return the call of a kernel that computes a row of a transposed convolution.

    Its arguments are geometry and quantization, the input, the output row's number, the output, the weights, the
    constant named `channels`, and then `more`.
    """
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
    pointers = source.pointer, site.output_row, site.output.pointer, site.constant("weights"), site.constant(channels)
    params = Let("tinyfuse_transpose_conv", "p", fields | output_fields(op))
    return params, Call(kernel.name, ("&p", *pointers, *more))
