"""Kernels of int8 DIV, FLOOR_DIV and FLOOR_MOD (runtime_c/tinyfuse_division.h)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tinyfuse.ir import Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Constant, Kernel
from tinyfuse.kernels.core.statements import Let, Statement
from tinyfuse.kernels.elementwise.binary import Broadcast, EqualShapes, Fields, binary_kernels
from tinyfuse.ops.core.convolution import clamp_range
from tinyfuse.ops.elementwise.division import div_multiplier, reciprocals

_HEADER = "tinyfuse_division.h"


def _div_parameters(op: Op) -> Fields:
    """Parameters of int8 DIV."""
    multiplier, shift = div_multiplier(op)
    low, high = clamp_range(op)
    return "tinyfuse_div", {
        "a_zero_point": op.operand(0).zero_point, "b_zero_point": op.operand(1).zero_point,
        "out_zero_point": op.output.zero_point, "multiplier": multiplier, "shift": shift,
        "act_min": low, "act_max": high,
    }  # fmt: skip


class _WithReciprocals(Kernel):
    """Mixin that adds the table of reciprocals to a kernel's constants and parameters."""

    indivisible = True

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        table = Constant("reciprocals", reciprocals().astype(np.int32), "int32_t")
        return *super().constants(op, context), table

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        statements = super().call(op, site, context)  # type: ignore[safe-super]
        table = {"reciprocals": site.constant("reciprocals")}
        return tuple(
            replace(s, value={**table, **s.value})
            if isinstance(s, Let) and s.name == "p" and not isinstance(s.value, int | float | str)
            else s
            for s in statements
        )


class _DivEqual(_WithReciprocals, EqualShapes):
    pass


class _DivBroadcast(_WithReciprocals, Broadcast):
    pass


def int8_div_kernels() -> tuple[Kernel, ...]:
    """Kernels of int8 DIV."""
    return tuple(sort("DIV", "int8", _div_parameters, _HEADER) for sort in (_DivEqual, _DivBroadcast))


def floor_kernels(kind: str) -> tuple[Kernel, ...]:
    """Kernels of FLOOR_DIV or FLOOR_MOD."""
    return binary_kernels(kind, "float32", None, _HEADER)
