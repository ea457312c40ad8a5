"""Our kernel of ARG_MAX and ARG_MIN (runtime_c/tinyfuse_arg_extreme.h)."""

from __future__ import annotations

from math import prod

from tinyfuse.ir import Op
from tinyfuse.kernels.base import Call, CallSite, Context, Kernel, Statement
from tinyfuse.ops.arg_extreme import reduced_axis


class ArgExtreme(Kernel):
    """Any dimension, whole."""

    name = "tinyfuse_arg_extreme_s8"
    headers = ("tinyfuse_arg_extreme.h",)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        shape, axis = op.input.shape, reduced_axis(op)
        dims = (prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :]))
        flip = -1 if op.kind == "ARG_MIN" else 0
        return (Call(self.name, (site.input(0).pointer, *dims, flip, site.output.pointer)),)
