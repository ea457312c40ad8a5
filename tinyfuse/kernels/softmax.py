"""Our kernel of SOFTMAX (runtime_c/tinyfuse_softmax.h)."""

from __future__ import annotations

from tinyfuse.ir import Op
from tinyfuse.kernels.base import Call, CallSite, Context, Kernel, Let, Statement
from tinyfuse.ops.softmax_scaling import softmax_scaling


class SoftmaxWhole(Kernel):
    """All rows of the last dimension, one after the other."""

    headers = ("tinyfuse_softmax.h",)

    def __init__(self, out_dtype: str):
        self.out_dtype = out_dtype
        self.name = "tinyfuse_softmax_s8" if out_dtype == "int8" else "tinyfuse_softmax_s8_s16"
        self.in_place = (0,) if out_dtype == "int8" else ()

    def accepts(self, op: Op, context: Context) -> bool:
        return op.output.dtype == self.out_dtype

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        multiplier, left_shift, least = softmax_scaling(op)
        depth = op.input.shape[-1]
        fields = {
            "rows": op.input.elements // depth, "depth": depth,
            "multiplier": multiplier, "left_shift": left_shift, "least_difference": least,
        }  # fmt: skip
        pointers = (site.input(0).pointer, site.output.pointer)
        return Let("tinyfuse_softmax", "p", fields), Call(self.name, ("&p", *pointers))
