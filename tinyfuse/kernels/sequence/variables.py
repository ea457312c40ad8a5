"""Kernels of operators on states (runtime_c/tinyfuse_copy.h, tinyfuse_copy_once.h, tinyfuse_ring.h)."""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Constant, Kernel
from tinyfuse.kernels.core.statements import Call, Statement
from tinyfuse.kernels.counts.common import Counts
from tinyfuse.kernels.movement.copy import Copy


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
    """Kernel of ASSIGN_ONCE: copies the value's bytes to the state in the first inference. A second state tells whether
    that is done."""

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
