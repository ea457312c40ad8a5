"""Kernels of AVERAGE_POOL_2D, MAX_POOL_2D and L2_POOL_2D (runtime_c/tinyfuse_pool.h and its forms for other dtypes)."""

from __future__ import annotations

from tinyfuse.ir import Op
from tinyfuse.kernels.core.c_types import SUFFIX
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, RowKernel
from tinyfuse.kernels.core.methods import counted_by
from tinyfuse.kernels.core.rows import piece_pointer
from tinyfuse.kernels.core.statements import Call, Expr, Let, Statement
from tinyfuse.kernels.counts.common import pool_counts
from tinyfuse.kernels.layers.common.params import left_of_piece
from tinyfuse.ops.core.convolution import clamp_range
from tinyfuse.ops.core.real import real_clamp
from tinyfuse.ops.pooling_reduce.pooling import Pool2D, pool_output_and_padding


class PoolRow(RowKernel):
    """Pooling of one dtype; a call computes one output row and reads only the rows of its window. `up`: averages of
    int8 round halves up (`Pool2D.halves_up`)."""

    columns = 1
    counts = counted_by(pool_counts)

    def __init__(self, sort: str, dtype: str = "int8", header: str = "", up: bool = False):
        self.dtype, self.up = dtype, up
        self.struct = "tinyfuse_pool" if dtype == "int8" else f"tinyfuse_pool_{SUFFIX[dtype]}"
        self.name = f"tinyfuse_{sort}_pool_{'up_' if up else ''}row_{SUFFIX[dtype]}"
        self.headers = (header or f"{self.struct}.h",)

    def accepts(self, op: Op, context: Context) -> bool:
        rounds_so = self.dtype != "int8" or op.attributes_as(Pool2D).halves_up == self.up
        return super().accepts(op, context) and rounds_so

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        low, high = real_clamp(op) if self.dtype == "float32" else clamp_range(op)
        shape = _shape(op, site)
        fields = {**(shape if self.dtype == "int8" else {"shape": shape}), "act_min": low, "act_max": high}
        output = piece_pointer(site.output.pointer, site, op.output.shape[3])
        call = Call(self.name, ("&p", site.input(0).pointer, site.output_row, output))
        return Let(self.struct, "p", fields), call


def _shape(op: Op, site: CallSite) -> dict[str, Expr]:
    """Fields of the rows and columns of the windows, which all pools' parameters have."""
    (_, top), (_, left) = pool_output_and_padding(op)
    pool = op.attributes_as(Pool2D)
    _, in_h, in_w, channels = op.input.shape
    return {
        "in_h": in_h, "in_w": in_w, "channels": channels, "in_ring": site.input(0).ring_rows,
        "out_w": site.piece.count if site.piece else op.output.shape[2],
        "filter_h": pool.filter[0], "filter_w": pool.filter[1],
        "stride_h": pool.stride[0], "stride_w": pool.stride[1],
        "pad_top": top, "pad_left": left_of_piece(left, pool.stride[1], site),
    }  # fmt: skip
