"""Kernels of LOG_SOFTMAX and L2_NORMALIZATION (runtime_c/tinyfuse_log_softmax.h, runtime_c/tinyfuse_l2_normalization.h,
runtime_c/tinyfuse_l2_f32.h)."""

from __future__ import annotations

from tinyfuse.ir import Op
from tinyfuse.kernels.core.c_types import SUFFIX
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Kernel
from tinyfuse.kernels.core.statements import Call, Let, Statement
from tinyfuse.ops.pooling_reduce.softmax_scaling import difference_scaling, reverse_scaling


class Normalization(Kernel):
    """L2_NORMALIZATION, or LOG_SOFTMAX of float32, vector by vector of the last dimension."""

    in_place = (0,)

    def __init__(self, function: str, dtype: str, header: str):
        self.dtype, self.name, self.headers = dtype, f"tinyfuse_{function}_{SUFFIX[dtype]}", (header,)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        depth = op.input.shape[-1]
        scaling = (op.input.zero_point,) if self.dtype == "int8" else ()
        args = (site.input(0).pointer, op.input.elements // depth, depth, *scaling, site.output.pointer)
        return (Call(self.name, args),)


class LogSoftmaxWhole(Kernel):
    """LOG_SOFTMAX of int8, vector by vector of the last dimension."""

    name, dtype = "tinyfuse_log_softmax_s8", "int8"
    headers = ("tinyfuse_log_softmax.h",)
    in_place = (0,)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        multiplier, left_shift, least = difference_scaling(op.input.scale)
        depth = op.input.shape[-1]
        fields = {
            "rows": op.input.elements // depth, "depth": depth,
            "multiplier": multiplier, "left_shift": left_shift, "least_difference": least,
        }  # fmt: skip
        args = ("&p", *reverse_scaling(op.input.scale), site.input(0).pointer, site.output.pointer)
        return Let("tinyfuse_softmax", "p", fields), Call(self.name, args)
