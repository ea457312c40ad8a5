"""Kernel of CIRCULAR_BUFFER (runtime_c/tinyfuse_circular_buffer.h)."""

from __future__ import annotations

from tinyfuse.ir import Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Kernel
from tinyfuse.kernels.core.statements import Call, Statement
from tinyfuse.kernels.counts.common import Counts
from tinyfuse.ops.sequence.circular_buffer import cycles


class CircularBufferKernel(Kernel):
    """Kernel of CIRCULAR_BUFFER: moves the frames by one and, if the run continues, copies them to the output."""

    name = "tinyfuse_circular_buffer"
    headers = ("tinyfuse_circular_buffer.h",)
    costs_as = "tinyfuse_copy"

    def counts(self, op: Op, by_row: bool) -> Counts:
        """Counts of a run that continues."""
        return {"calls": 2, "inputs": 2 * op.output.bytes}

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        frame, frames, awaited = (site.input(i).pointer for i in range(3))
        sizes = (op.output.shape[1], op.input.elements, cycles(op))
        arguments = (frame, frames, awaited, site.output.pointer, *sizes)
        return (Call(self.name, arguments, status="0", awaits=True),)
