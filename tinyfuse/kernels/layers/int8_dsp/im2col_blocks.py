"""Bases of int8 convolutions that compute blocks of pixels from their inputs in scratch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tinyfuse.ir import Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import AccessOrder, CallSite, Division, Kernel
from tinyfuse.kernels.core.methods import of_operator
from tinyfuse.kernels.core.statements import Expr, Statement
from tinyfuse.kernels.layers.common import params
from tinyfuse.kernels.layers.int8_dsp.lanes import matmul_depth
from tinyfuse.ops.core.convolution import geometry, is_plain_pointwise


class InBlocks(Kernel):
    """Base of kernels that bring the inputs of a block of pixels into scratch, in the form that the C multiplies.

    arrays  names of the constants that the C function takes, in the order in which it reads them
    """

    arrays: tuple[str, ...] = ("pairs",)

    def block(self, op: Op, context: Context) -> int:
        """Return the pixels that are computed together."""
        return 2

    def input_bytes(self, context: Context) -> int:
        """Return the bytes that an input takes in scratch, at most: those of int16."""
        return 2

    def last_arguments(self, op: Op, context: Context) -> tuple[Expr, ...]:
        """Return the arguments of the C function after scratch."""
        return ()


class Im2colRow(InBlocks):
    """Base of int8 convolutions without groups, by im2col of a block of pixels, a row at a time."""

    form_of: str | None = "tinyfuse_conv_packed_row_s8"
    by_row, whole, rings = True, False, True
    #: as if pixel by pixel: a block's windows are in scratch before its outputs are written
    row_access_orders = of_operator(params.orders_by_pixels, buffered=True)

    def accepts(self, op: Op, context: Context) -> bool:
        return geometry(op).groups == 1 and super().accepts(op, context)

    def scratch(self, op: Op, context: Context) -> int:
        by_bytes, rows = op.input.shape[3] % 4 != 0, op.operand(1).shape[1] * params.POINTER_BYTES
        return matmul_depth(op) * (self.block(op, context) * self.input_bytes(context) + by_bytes) + rows

    def division(self, op: Op, by_row: bool, context: Context) -> Division | None:
        return Division(op.output.shape[2], together=self.block(op, context))

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        more = self.last_arguments(op, context)
        return params.conv_row_call(self, op, site, site.scratch, *more, arrays=self.arrays)


class PointwiseInBlocks(InBlocks):
    """Base of 1x1 int8 convolutions with stride 1; a block of pixels is brought into scratch before its outputs are
    written."""

    form_of: str | None = "tinyfuse_pointwise_s8"

    def accepts(self, op: Op, context: Context) -> bool:
        return is_plain_pointwise(op) and op.input.shape[3] % 4 == 0 and super().accepts(op, context)

    def access_orders(self, op: Op) -> Mapping[int, AccessOrder]:
        g = geometry(op)
        return {0: AccessOrder(g.in_c, g.out_c)}  # as if pixel by pixel: a block only reads further ahead

    def scratch(self, op: Op, context: Context) -> int:
        return self.input_bytes(context) * self.block(op, context) * op.input.shape[3]

    def division(self, op: Op, by_row: bool, context: Context) -> Division | None:
        return replace(params.divide_by_pixels(op, by_row, 1), together=self.block(op, context))

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        g, more = geometry(op), self.last_arguments(op, context)
        fields = {"in_c": g.in_c, "out_c": g.out_c} | params.output_fields(op) | {"block": self.block(op, context)}
        return params.pointwise_call(
            self, op, site, "tinyfuse_pointwise", fields, site.scratch, *more, arrays=self.arrays
        )
