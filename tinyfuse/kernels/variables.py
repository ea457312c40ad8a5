"""Our kernels of READ_VARIABLE and ASSIGN_VARIABLE (runtime_c/tinyfuse_copy.h)."""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import Op
from tinyfuse.ops.base import Call, Constant, Context, Kernel, Site, Statement


class ReadVariable(Kernel):
    name = "tinyfuse_copy"
    headers = ("tinyfuse_copy.h",)

    def call(self, op: Op, site: Site, context: Context) -> tuple[Statement, ...]:
        return (Call(self.name, (site.inputs[0].pointer, site.outputs[0].pointer, op.output.bytes)),)


class AssignVariable(Kernel):
    name = "tinyfuse_copy"
    headers = ("tinyfuse_copy.h",)

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        value = op.inputs[1]
        if not value.is_constant:
            return ()
        return (Constant("value", np.ascontiguousarray(value.data).reshape(-1).view(np.uint8), "uint8_t"),)

    def call(self, op: Op, site: Site, context: Context) -> tuple[Statement, ...]:
        value = site.inputs[1].pointer if site.inputs[1] is not None else site.constant("value")
        return (Call(self.name, (value, site.inputs[0].pointer, op.input.bytes)),)
