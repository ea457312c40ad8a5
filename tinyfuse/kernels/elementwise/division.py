"""Kernels of int8 DIV (runtime_c/tinyfuse_division.h)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tinyfuse.ir import Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Constant, Kernel
from tinyfuse.kernels.core.statements import Let, Statement
from tinyfuse.kernels.elementwise.binary import Broadcast, EqualShapes, Fields
from tinyfuse.ops.core.convolution import clamp_range
from tinyfuse.ops.elementwise.division import div_multiplier, reciprocals


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
        params, *rest = super().call(op, site, context)  # type: ignore[safe-super]
        assert isinstance(params, Let)
        assert isinstance(params.value, Mapping)
        return replace(params, value={"reciprocals": site.constant("reciprocals"), **params.value}), *rest


class _DivEqual(_WithReciprocals, EqualShapes):
    pass


class _DivBroadcast(_WithReciprocals, Broadcast):
    pass


def int8_div_kernels() -> tuple[Kernel, ...]:
    """Kernels of int8 DIV."""
    return tuple(sort("DIV", "int8", _div_parameters, "tinyfuse_division.h") for sort in (_DivEqual, _DivBroadcast))
