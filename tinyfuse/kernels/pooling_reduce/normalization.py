"""Kernels of LOG_SOFTMAX and L2_NORMALIZATION (runtime_c/tinyfuse_log_softmax.h, runtime_c/tinyfuse_l2_normalization.h,
runtime_c/tinyfuse_l2_f32.h)."""

from __future__ import annotations

from tinyfuse.ir import Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Kernel
from tinyfuse.kernels.core.statements import Call, Let, Statement
from tinyfuse.ops.pooling_reduce.softmax_scaling import difference_scaling, reverse_scaling


class L2Normalize(Kernel):
    """L2_NORMALIZATION of int8, vector by vector of the last dimension."""

    name = "tinyfuse_l2_normalization_s8"
    headers = ("tinyfuse_l2_normalization.h",)
    in_place = (0,)

    def accepts(self, op: Op, context: Context) -> bool:
        return op.output.dtype == "int8"

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        depth = op.input.shape[-1]
        rows = op.input.elements // depth
        args = (site.input(0).pointer, rows, depth, op.input.zero_point, site.output.pointer)
        return (Call(self.name, args),)


class LogSoftmaxWhole(Kernel):
    """LOG_SOFTMAX of int8, vector by vector of the last dimension."""

    name = "tinyfuse_log_softmax_s8"
    headers = ("tinyfuse_log_softmax.h",)
    in_place = (0,)

    def accepts(self, op: Op, context: Context) -> bool:
        return op.output.dtype == "int8"

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        multiplier, left_shift, least = difference_scaling(op.input.scale)
        depth = op.input.shape[-1]
        fields = {
            "rows": op.input.elements // depth, "depth": depth,
            "multiplier": multiplier, "left_shift": left_shift, "least_difference": least,
        }  # fmt: skip
        args = ("&p", *reverse_scaling(op.input.scale), site.input(0).pointer, site.output.pointer)
        return Let("tinyfuse_softmax", "p", fields), Call(self.name, args)


class NormalizationF32(Kernel):
    """LOG_SOFTMAX or L2_NORMALIZATION of float32."""

    in_place = (0,)

    def __init__(self, name: str, header: str):
        self.name, self.headers = name, (header,)

    def accepts(self, op: Op, context: Context) -> bool:
        return op.output.dtype == "float32"

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        depth = op.input.shape[-1]
        args = (site.input(0).pointer, op.input.elements // depth, depth, site.output.pointer)
        return (Call(self.name, args),)
