"""Kernel of ARG_MAX and ARG_MIN (runtime_c/tinyfuse_arg_extreme.h and its float32 form)."""

from __future__ import annotations

from math import prod

from tinyfuse.ir import Op
from tinyfuse.kernels.core.c_types import SUFFIX
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Kernel
from tinyfuse.kernels.core.statements import Call, Statement
from tinyfuse.ops.pooling_reduce.arg_max import reduced_axis


class ArgExtreme(Kernel):
    """ARG_MAX or ARG_MIN along any dimension, the whole output."""

    def __init__(self, dtype: str):
        self.dtype, self.name = dtype, f"tinyfuse_arg_extreme_{SUFFIX[dtype]}"
        self.headers = ("tinyfuse_arg_extreme.h" if dtype == "int8" else "tinyfuse_arg_extreme_f32.h",)

    def accepts(self, op: Op, context: Context) -> bool:
        return op.input.dtype == self.dtype

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        shape, axis = op.input.shape, reduced_axis(op)
        dims = (prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :]))
        least = op.kind == "ARG_MIN"
        flip = -int(least) if self.dtype == "int8" else int(least)
        return (Call(self.name, (site.input(0).pointer, *dims, flip, site.output.pointer)),)
