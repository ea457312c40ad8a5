"""Kernels that copy all bytes: RESHAPE as a step of its own, and CONSTANT_OUTPUT (runtime_c/tinyfuse_copy.h)."""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Constant, Kernel
from tinyfuse.kernels.core.methods import counted_by
from tinyfuse.kernels.core.statements import Call, Statement
from tinyfuse.kernels.counts.common import Counts, byte_counts


class Copy(Kernel):
    """Kernel of RESHAPE: copies the input's bytes, unless the planner gave both tensors the same place."""

    name = "tinyfuse_copy"
    headers = ("tinyfuse_copy.h",)
    in_place: tuple[int, ...] = (0,)
    counts = counted_by(byte_counts)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        return (Call(self.name, (site.input(0).pointer, site.output.pointer, op.output.bytes)),)


class CopyConstant(Kernel):
    """Kernel of CONSTANT_OUTPUT: copies a constant's bytes to the output."""

    name, headers = Copy.name, Copy.headers

    def counts(self, op: Op, by_row: bool) -> Counts:
        return {"calls": 1, "inputs": op.output.bytes}

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return (Constant("values", np.ascontiguousarray(op.input.values).reshape(-1).view(np.int8), "int8_t"),)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        return (Call(self.name, (site.constant("values"), site.output.pointer, op.output.bytes)),)
