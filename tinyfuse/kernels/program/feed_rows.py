"""Kernel of FEED_ROWS (runtime_c/tinyfuse_feed.h)."""

from __future__ import annotations

from tinyfuse.ir import Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, RowKernel
from tinyfuse.kernels.core.statements import Call, Statement
from tinyfuse.kernels.counts.common import Counts

#: arguments of the function of a fed group: the rows that it gets, and the number of rows before them
ROWS, BEFORE = "rows", "before"


class FeedRow(RowKernel):
    """Kernel of FEED_ROWS: copies a row that the caller passes into the ring of rows that are still needed."""

    name = "tinyfuse_feed_row"
    headers = ("tinyfuse_feed.h",)
    costs_as = "tinyfuse_copy"

    def counts(self, op: Op, by_row: bool) -> Counts:
        return {"calls": op.output.shape[1], "inputs": op.output.bytes}

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        size = op.output.bytes // op.output.shape[1]
        return (Call(self.name, (ROWS, f"{site.row} - {BEFORE}", size, site.output.pointer)),)
