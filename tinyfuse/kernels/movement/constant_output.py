"""Kernel of CONSTANT_OUTPUT (runtime_c/tinyfuse_copy.h)."""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Constant, Kernel
from tinyfuse.kernels.core.statements import Call, Statement
from tinyfuse.kernels.counts.common import Counts
from tinyfuse.kernels.movement.copy import Copy


class CopyConstant(Kernel):
    """Kernel of CONSTANT_OUTPUT: copies a constant's bytes to the output."""

    name, headers = Copy.name, Copy.headers

    def counts(self, op: Op, by_row: bool) -> Counts:
        return {"calls": 1, "inputs": op.output.bytes}

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return (Constant("values", np.ascontiguousarray(op.input.values).reshape(-1).view(np.int8), "int8_t"),)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        return (Call(self.name, (site.constant("values"), site.output.pointer, op.output.bytes)),)
