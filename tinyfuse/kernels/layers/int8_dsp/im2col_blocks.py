"""Convolutions that widen a block of pixels in scratch and read one array of weights, biases and multipliers.

The array lies in the order in which the C reads it. Subclasses declare the bytes of an input in scratch and make the
array.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tinyfuse.ir import Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import AccessOrder, CallSite, Division, Kernel
from tinyfuse.kernels.core.methods import of_operator
from tinyfuse.kernels.core.rows import piece_pointer
from tinyfuse.kernels.core.statements import Call, Expr, Let, Statement
from tinyfuse.kernels.layers.common import params
from tinyfuse.kernels.layers.int8_dsp.lanes import matmul_depth
from tinyfuse.ops.core.convolution import geometry

#: pixels that are computed together
BLOCK = 2


class Widened(Kernel):
    """Base of kernels that convert int8 inputs to a wider dtype in scratch.

    input_bytes  bytes of an input in scratch
    array        name of the constant with weights, biases and multipliers
    """

    input_bytes: int
    array = "pairs"

    def last_arguments(self, op: Op, context: Context) -> tuple[Expr, ...]:
        """Return the arguments of the C function after scratch."""
        return ()


class WidenedConvRow(Widened):
    """Base of int8 convolutions without groups, by im2col of a block of pixels."""

    form_of = "tinyfuse_conv_packed_row_s8"
    by_row, whole, rings = True, False, True
    row_access_orders = of_operator(params.orders_by_pixels, buffered=True)

    def scratch(self, op: Op, context: Context) -> int:
        by_bytes = op.input.shape[3] % 4 != 0
        return matmul_depth(op) * (BLOCK * self.input_bytes + by_bytes) + op.operand(1).shape[1] * params.POINTER_BYTES

    def division(self, op: Op, by_row: bool, context: Context) -> Division | None:
        return Division(op.output.shape[2], together=BLOCK)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        output = piece_pointer(site.output.pointer, site, op.output.shape[3])
        arguments = ("&p", site.input(0).pointer, site.output_row, output, site.constant(self.array), site.scratch)
        return params.conv_params(op, site), Call(self.name, (*arguments, *self.last_arguments(op, context)))


class WidenedPointwise(Widened):
    """Base of 1x1 int8 convolutions with stride 1; a block of pixels is copied to scratch before its outputs are
    written."""

    def pixels(self, op: Op) -> int:
        """Return the pixels of a block."""
        return BLOCK

    def access_orders(self, op: Op) -> Mapping[int, AccessOrder]:
        g = geometry(op)
        return {0: AccessOrder(g.in_c, g.out_c)}  # as if pixel by pixel: a block only reads further ahead

    def scratch(self, op: Op, context: Context) -> int:
        return self.input_bytes * self.pixels(op) * op.input.shape[3]

    def division(self, op: Op, by_row: bool, context: Context) -> Division | None:
        return replace(params.divide_by_pixels(op, by_row, 1), together=BLOCK)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        g = geometry(op)
        pointer, pixels = params.input_pixels(op, site)
        fields = {"in_c": g.in_c, "out_c": g.out_c} | params.output_fields(op) | {"block": self.pixels(op)}
        output = piece_pointer(site.output.pointer, site, g.out_c)
        arguments = ("&p", pointer, pixels, output, site.constant(self.array), site.scratch)
        return Let("tinyfuse_pointwise", "p", fields), Call(self.name, (*arguments, *self.last_arguments(op, context)))
