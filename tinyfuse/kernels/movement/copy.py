"""Kernel of RESHAPE as a step of its own (runtime_c/tinyfuse_copy.h)."""

from __future__ import annotations

from tinyfuse.ir import Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Kernel
from tinyfuse.kernels.core.statements import Call, Statement
from tinyfuse.kernels.counts.common import Counts, byte_counts


class Copy(Kernel):
    """Kernel of RESHAPE: copies the input's bytes, unless the planner gave both tensors the same place."""

    name = "tinyfuse_copy"
    headers = ("tinyfuse_copy.h",)
    in_place = (0,)

    def counts(self, op: Op, by_row: bool) -> Counts:
        return byte_counts(op, by_row)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        return (Call(self.name, (site.input(0).pointer, site.output.pointer, op.output.bytes)),)
