"""Our kernels of AVERAGE_POOL_2D and MAX_POOL_2D (runtime_c/tinyfuse_pool.h)."""

from __future__ import annotations

from tinyfuse.ir import Op
from tinyfuse.kernels.base import Call, CallSite, Context, Kernel, Let, Statement
from tinyfuse.kernels.counts import Counts, pool_counts
from tinyfuse.ops.convolution import clamp_range
from tinyfuse.ops.pooling import Pool2D, pool_extents


class PoolRow(Kernel):
    """One output row a call; it reads the rows of that row's window alone."""

    headers = ("tinyfuse_pool.h",)
    by_row, whole, rings = True, False, True

    def __init__(self, sort: str):
        self.name = f"tinyfuse_{sort}_pool_row_s8"

    def counts(self, op: Op, by_row: bool) -> Counts:
        return pool_counts(op, by_row)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        (_, top), (_, left) = pool_extents(op)
        low, high = clamp_range(op)
        pool = op.attributes_as(Pool2D)
        _, in_h, in_w, channels = op.input.shape
        fields = {
            "in_h": in_h, "in_w": in_w, "channels": channels, "in_ring": site.input(0).ring_rows,
            "out_w": op.output.shape[2],
            "filter_h": pool.filter[0], "filter_w": pool.filter[1],
            "stride_h": pool.stride[0], "stride_w": pool.stride[1],
            "pad_top": top, "pad_left": left, "act_min": low, "act_max": high,
        }  # fmt: skip
        call = Call(self.name, ("&p", site.input(0).pointer, site.output_row, site.output.pointer))
        return Let("tinyfuse_pool", "p", fields), call
