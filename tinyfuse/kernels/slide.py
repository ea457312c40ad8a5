"""Our kernels of what sliding windows keep (runtime_c/tinyfuse_ring.h, tinyfuse_await.h)."""

from __future__ import annotations

from tinyfuse.ir import Op
from tinyfuse.kernels.base import Call, CallSite, Context, Kernel, Statement
from tinyfuse.kernels.counts import Counts
from tinyfuse.ops.ring_rows import RingRows


class CopyRingRows(Kernel):
    """Copies rows of the ring, in one piece or two."""

    name = "tinyfuse_ring_rows"
    headers = ("tinyfuse_ring.h",)
    costs_as = "tinyfuse_copy"

    def counts(self, op: Op, by_row: bool) -> Counts:
        return {"inputs": op.output.bytes}

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        cursor, pointer = (site.input(i).pointer for i in range(2))
        ring, count, first = op.operand(1), op.output.shape[1], op.attributes_as(RingRows).first
        height = ring.shape[1]
        return (Call(self.name, (pointer, height, ring.bytes // height, cursor, first, count, site.output.pointer)),)


class AwaitWindow(Kernel):
    """Counts the steps until the window is full."""

    name = "tinyfuse_await_window"
    headers = ("tinyfuse_await.h",)
    costs_as = "tinyfuse_copy"

    def counts(self, op: Op, by_row: bool) -> Counts:
        return {"inputs": op.input.bytes}

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        return (Call(self.name, (site.input(0).pointer,), status="0", awaits=True),)
