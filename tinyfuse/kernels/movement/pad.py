"""Kernels of PAD and PADV2 (runtime_c/tinyfuse_pad.h, runtime_c/tinyfuse_pad_wide.h), and of PAD_WITH and
MIRROR_PAD_AT, whose padding the run computes (runtime_c/tinyfuse_pad*_with.h, runtime_c/tinyfuse_mirror_at.h)."""

from __future__ import annotations

from math import prod

import numpy as np

from tinyfuse.ir import ITEM_BYTES, Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Kernel
from tinyfuse.kernels.core.methods import of_calls
from tinyfuse.kernels.core.statements import Call, Expr, Let, Statement, c_array, c_loops
from tinyfuse.kernels.counts.common import Counts, byte_counts
from tinyfuse.kernels.movement.scatter_gather import IndexKernel
from tinyfuse.ops.movement.mirror_pad import border_of
from tinyfuse.ops.movement.pad import pad_value, padded_dimensions

#: maximum rank of MIRROR_PAD_AT
_DIMENSIONS = 6


def _pad_fields(op: Op) -> dict[str, Expr]:
    """Struct fields with the shapes of input and output, and the padding before each dimension."""
    dims = padded_dimensions(op)
    return {
        "in": c_loops([dim.dim for dim in dims], 4, 1),
        "out": c_loops([dim.count for dim in dims], 4, 1),
        "before": c_loops([dim.before for dim in dims], 4, 0),
    }


class Pad(Kernel):
    """PAD of up to four dimensions, for one-byte elements or larger ones (`wide`). A call computes the whole output, or
    one row of an image (`by_row`), which reads the input row that the output row contains."""

    counts = of_calls(byte_counts)

    def __init__(self, wide: bool, by_row: bool):
        self.wide, self.by_row, self.whole, self.rings = wide, by_row, not by_row, by_row
        row = "_row" if by_row else ""
        self.name = f"tinyfuse_pad_wide{row or '_whole'}" if wide else f"tinyfuse_pad{row}_s8"
        self.headers = ("tinyfuse_pad_wide.h" if wide else "tinyfuse_pad.h",)

    def accepts(self, op: Op, context: Context) -> bool:
        return self.wide == (op.output.dtype != "int8")

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        access = site.input(0)
        place = (access.ring_rows, site.output_row) if self.by_row else ()
        return _params(op), Call(self.name, ("&p", access.pointer, *place, site.output.pointer))


def _params(op: Op) -> Let:
    """Definition of the C's parameters."""
    fields, dtype = _pad_fields(op), op.output.dtype
    if dtype == "int8":
        return Let("tinyfuse_pad", "p", {**fields, "value": pad_value(op)})
    bits = int.from_bytes(np.array(pad_value(op), np.dtype(dtype).newbyteorder("<")).tobytes(), "little")
    return Let("tinyfuse_pad_wide", "p", {**fields, "item": ITEM_BYTES[dtype], "value": f"0x{bits:X}u"})


#: kernels of PAD and PADV2, best first
PADS = tuple(Pad(wide, by_row) for wide in (False, True) for by_row in (True, False))


class PadWith(IndexKernel):
    """PAD_WITH of one-byte elements, or of larger ones (`wide`)."""

    status, shapes = None, (1,)
    counts = of_calls(byte_counts)

    def __init__(self, wide: bool):
        self.wide, self.name = wide, "tinyfuse_pad_wide_with" if wide else "tinyfuse_pad_with_s8"
        self.struct = "tinyfuse_pad_wide" if wide else "tinyfuse_pad"
        self.headers = ("tinyfuse_pad_wide_with.h" if wide else "tinyfuse_pad_with.h",)

    def accepts(self, op: Op, context: Context) -> bool:
        return self.wide == (op.output.dtype != "int8")

    def fields(self, op: Op) -> dict[str, Expr]:
        item = {"item": ITEM_BYTES[op.output.dtype]} if self.wide else {}
        return {**_pad_fields(op), **item, "value": "0u" if self.wide else 0}


class MirrorPadAt(IndexKernel):
    """MIRROR_PAD_AT of rank 1 to 6. Padding that reaches outside the input ends the run with an error."""

    name, struct = "tinyfuse_mirror_pad_at", "tinyfuse_mirroring"
    headers = ("tinyfuse_mirror_at.h",)
    numbers = (1,)

    def counts(self, op: Op, by_row: bool) -> Counts:
        elements, item = op.output.elements, ITEM_BYTES[op.output.dtype]
        lines = elements // op.output.shape[-1]
        return {"calls": 1, "lines": lines, "elements": elements, "bytes": elements * item}

    def fields(self, op: Op) -> dict[str, Expr]:
        shape, item = op.input.shape, ITEM_BYTES[op.output.dtype]
        return {
            "rank": len(shape), "item": item, "wide": int(op.operand(1).dtype == "int64"), "border": border_of(op),
            "in": c_array(shape, _DIMENSIONS), "out": c_array(op.output.shape, _DIMENSIONS),
            "step": c_array([item * prod(shape[d + 1 :]) for d in range(len(shape))], _DIMENSIONS),
        }  # fmt: skip
