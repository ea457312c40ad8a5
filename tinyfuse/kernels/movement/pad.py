"""Kernels of PAD and PADV2 (runtime_c/tinyfuse_pad.h, runtime_c/tinyfuse_pad_wide.h)."""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import ITEM_BYTES, Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Kernel
from tinyfuse.kernels.core.statements import Call, Expr, Let, Statement, c_loops
from tinyfuse.kernels.counts.common import Counts, byte_counts
from tinyfuse.ops.movement.pad import pad_value, padded_dimensions


def pad_fields(op: Op) -> dict[str, Expr]:
    """Struct fields with the shapes of input and output, and the padding before each dimension."""
    dims = padded_dimensions(op)
    return {
        "in": c_loops([dim.dim for dim in dims], 4, 1),
        "out": c_loops([dim.count for dim in dims], 4, 1),
        "before": c_loops([dim.before for dim in dims], 4, 0),
    }


def _params(op: Op) -> Let:
    """Definition of the C's parameters."""
    fields, dtype = pad_fields(op), op.output.dtype
    if dtype == "int8":
        return Let("tinyfuse_pad", "p", {**fields, "value": pad_value(op)})
    bits = int.from_bytes(np.array(pad_value(op), np.dtype(dtype).newbyteorder("<")).tobytes(), "little")
    return Let("tinyfuse_pad_wide", "p", {**fields, "item": ITEM_BYTES[dtype], "value": f"0x{bits:X}u"})


class _Pad(Kernel):
    """Base of kernels of PAD for one-byte elements, or for larger ones (`wide`)."""

    def __init__(self, wide: bool, name: str):
        self.wide, self.name = wide, name
        self.headers = ("tinyfuse_pad_wide.h" if wide else "tinyfuse_pad.h",)

    def counts(self, op: Op, by_row: bool) -> Counts:
        return byte_counts(op, by_row)

    def accepts(self, op: Op, context: Context) -> bool:
        return self.wide == (op.output.dtype != "int8")


class Pad(_Pad):
    """PAD of up to four dimensions, the whole output."""

    def __init__(self, wide: bool = False):
        super().__init__(wide, "tinyfuse_pad_wide_whole" if wide else "tinyfuse_pad_s8")

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        return _params(op), Call(self.name, ("&p", site.input(0).pointer, site.output.pointer))


class PadRow(_Pad):
    """PAD of an image, one row a call, which reads the input row that the output row contains."""

    by_row, whole, rings = True, False, True

    def __init__(self, wide: bool = False):
        super().__init__(wide, "tinyfuse_pad_wide_row" if wide else "tinyfuse_pad_row_s8")

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        access = site.input(0)
        args = ("&p", access.pointer, access.ring_rows, site.output_row, site.output.pointer)
        return _params(op), Call(self.name, args)
