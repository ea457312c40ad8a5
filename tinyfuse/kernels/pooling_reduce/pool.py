"""Kernels of AVERAGE_POOL_2D, MAX_POOL_2D and L2_POOL_2D (runtime_c/tinyfuse_pool.h and its forms for other dtypes)."""

from __future__ import annotations

from tinyfuse.ir import Op
from tinyfuse.kernels.core.c_types import SUFFIX
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Kernel
from tinyfuse.kernels.core.rows import piece_pointer
from tinyfuse.kernels.core.statements import Call, Expr, Let, Statement
from tinyfuse.kernels.counts.common import Counts, pool_counts
from tinyfuse.kernels.layers.common.params import left_of_piece
from tinyfuse.ops.core.convolution import clamp_range
from tinyfuse.ops.core.real import real_clamp
from tinyfuse.ops.pooling_reduce.pooling import Pool2D, pool_output_and_padding


class _PoolRow(Kernel):
    """Base of kernels of poolings; a call computes one output row and reads only the rows of its window."""

    by_row, whole, rings = True, False, True
    columns = 1

    def counts(self, op: Op, by_row: bool) -> Counts:
        return pool_counts(op, by_row)


class PoolRow(_PoolRow):
    """Pooling of int8. `up`: averages round halves up (`Pool2D.halves_up`)."""

    headers = ("tinyfuse_pool.h",)

    def __init__(self, sort: str, up: bool = False):
        self.name, self.up = f"tinyfuse_{sort}_pool_{'up_' if up else ''}row_s8", up
        if up:
            self.headers = ("tinyfuse_pool_up.h",)

    def accepts(self, op: Op, context: Context) -> bool:
        return op.output.dtype == "int8" and op.attributes_as(Pool2D).halves_up == self.up

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        low, high = clamp_range(op)
        fields = _shape(op, site) | {"act_min": low, "act_max": high}
        call = Call(self.name, ("&p", site.input(0).pointer, site.output_row, _output(op, site)))
        return Let("tinyfuse_pool", "p", fields), call


class WidePoolRow(_PoolRow):
    """Pooling of int16 or float32."""

    def __init__(self, sort: str, dtype: str, header: str | None = None):
        self.suffix, self.dtype = SUFFIX[dtype], dtype
        self.name = f"tinyfuse_{sort}_pool_row_{self.suffix}"
        self.headers = (header or f"tinyfuse_pool_{self.suffix}.h",)

    def accepts(self, op: Op, context: Context) -> bool:
        return op.output.dtype == self.dtype

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        low, high = real_clamp(op) if self.dtype == "float32" else clamp_range(op)
        fields = {"shape": _shape(op, site), "act_min": low, "act_max": high}
        call = Call(self.name, ("&p", site.input(0).pointer, site.output_row, _output(op, site)))
        return Let(f"tinyfuse_pool_{self.suffix}", "p", fields), call


def _output(op: Op, site: CallSite) -> str:
    """C pointer to the first pixel that the call writes."""
    return piece_pointer(site.output.pointer, site, op.output.shape[3])


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
