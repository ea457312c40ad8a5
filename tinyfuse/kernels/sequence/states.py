"""Kernels of operators on states: variables (runtime_c/tinyfuse_copy.h, tinyfuse_copy_once.h), sliding windows
(tinyfuse_ring.h, tinyfuse_move_sum.h, tinyfuse_await.h), and CIRCULAR_BUFFER (tinyfuse_circular_buffer.h)."""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import Op
from tinyfuse.kernels.core.c_types import SUFFIX
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Constant, Kernel
from tinyfuse.kernels.core.statements import Call, Statement
from tinyfuse.kernels.counts.common import Counts
from tinyfuse.kernels.movement.copies import Copy
from tinyfuse.ops.sequence.circular_buffer import cycles
from tinyfuse.ops.sequence.move_sum import MoveSum
from tinyfuse.ops.sequence.ring_rows import RingRows


class ReadVariable(Copy):
    """Kernel of READ_VARIABLE: copies the state's bytes to the output."""

    in_place = ()

    def counts(self, op: Op, by_row: bool) -> Counts:
        return {"calls": 1, "inputs": op.output.bytes}


class AssignVariable(Kernel):
    """Kernel of ASSIGN_VARIABLE: copies the value's bytes, which may be constant, to the state."""

    name = "tinyfuse_copy"
    headers = ("tinyfuse_copy.h",)

    def counts(self, op: Op, by_row: bool) -> Counts:
        return {"calls": 1, "inputs": op.input.bytes}

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        value = op.operand(1)
        if not value.is_constant:
            return ()
        return (Constant("value", np.ascontiguousarray(value.values).reshape(-1).view(np.uint8), "uint8_t"),)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        value = site.input(1).pointer if site.inputs[1] is not None else site.constant("value")
        return (Call(self.name, (value, site.input(0).pointer, op.input.bytes)),)


class AssignOnce(AssignVariable):
    """Kernel of ASSIGN_ONCE: copies the value's bytes to the state in the first inference only. A second state is the
    flag for that."""

    name = "tinyfuse_copy_once"
    headers = ("tinyfuse_copy_once.h",)
    costs_as = "tinyfuse_copy"

    def counts(self, op: Op, by_row: bool) -> Counts:
        """Counts of every inference but the first."""
        return {"calls": 1}

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        state, done = (site.input(i).pointer for i in (0, 2))
        return (Call(self.name, (site.constant("value"), state, op.input.bytes, done)),)


class RingPush(Kernel):
    """Kernel of RING_PUSH: overwrites the oldest rows of the ring."""

    name = "tinyfuse_ring_push"
    headers = ("tinyfuse_ring.h",)
    costs_as = "tinyfuse_copy"

    def counts(self, op: Op, by_row: bool) -> Counts:
        return {"inputs": op.input.bytes}

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        rows, ring, cursor = (site.input(i).pointer for i in range(3))
        height = op.operand(1).shape[1]
        row_bytes = op.operand(1).bytes // height
        return (Call(self.name, (rows, op.input.bytes // row_bytes, ring, height, row_bytes, cursor)),)


class CopyRingRows(Kernel):
    """Kernel of RING_ROWS: copies rows of a ring, from one place or from several."""

    name = "tinyfuse_ring_rows"
    headers = ("tinyfuse_ring.h",)
    costs_as = "tinyfuse_copy"

    def counts(self, op: Op, by_row: bool) -> Counts:
        return {"inputs": op.output.bytes}

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        cursor, pointer = (site.input(i).pointer for i in range(2))
        ring, count, rows = op.operand(1), op.output.shape[1], op.attributes_as(RingRows)
        height = ring.shape[1]
        arguments = (pointer, height, ring.bytes // height, cursor, rows.first, count)
        if not rows.left:
            return (Call(self.name, (*arguments, site.output.pointer)),)
        places = (rows.left, rows.pushed, rows.between)
        return (Call("tinyfuse_ring_rows_apart", (*arguments, *places, site.output.pointer)),)


class MoveSums(Kernel):
    """Kernel of MOVE_SUM: adds rows to sums, or subtracts them."""

    costs_as = "tinyfuse_row_sum_s8"

    def __init__(self, dtype: str):
        self.dtype, self.name = dtype, f"tinyfuse_move_sum_{SUFFIX[dtype]}"
        self.headers = ("tinyfuse_move_sum.h",)

    def accepts(self, op: Op, context: Context) -> bool:
        return op.operand(1).dtype == self.dtype

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        added, channels, result = op.attributes_as(MoveSum).added, op.output.elements, site.output.pointer
        calls, sums = [], site.input(0).pointer
        for i, rows in enumerate(op.operands[1:], 1):
            source, pixels = site.input(i).pointer, rows.elements // channels
            sign = 1 if i <= added else -1
            calls.append(Call(self.name, (source, pixels, channels, sign, sums, result)))
            sums = result
        return tuple(calls)


class AwaitWindow(Kernel):
    """Kernel of AWAIT_WINDOW: counts steps until the window is full; until then the run ends without a result."""

    name = "tinyfuse_await_window"
    headers = ("tinyfuse_await.h",)
    costs_as = "tinyfuse_copy"

    def counts(self, op: Op, by_row: bool) -> Counts:
        return {"inputs": op.input.bytes}

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        return (Call(self.name, (site.input(0).pointer,), status="0", awaits=True),)


class AwaitRows(AwaitWindow):
    """Kernel of AWAIT_ROWS: counts the rows of a step; until all are there, the run ends without a result."""

    name = "tinyfuse_await_rows"

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        rows = int(op.input.initial_values[0])
        return (Call(self.name, (site.input(0).pointer, rows), status="0", awaits=True),)


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
