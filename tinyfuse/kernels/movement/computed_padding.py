"""Kernels of PAD_WITH and MIRROR_PAD_AT, whose padding the run computes (runtime_c/tinyfuse_pad_with.h,
runtime_c/tinyfuse_mirror_at.h)."""

from __future__ import annotations

from math import prod

from tinyfuse.ir import ITEM_BYTES, Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.statements import Expr, c_array
from tinyfuse.kernels.counts.common import Counts, byte_counts
from tinyfuse.kernels.movement.pad import pad_fields
from tinyfuse.kernels.movement.scatter_gather import IndexKernel
from tinyfuse.ops.movement.mirror_pad import border_of

_DIMENSIONS = 6


class PadWith(IndexKernel):
    """PAD_WITH of one-byte elements, or of larger ones (`wide`)."""

    status, shapes = None, (1,)

    def __init__(self, wide: bool):
        self.wide, self.name = wide, "tinyfuse_pad_wide_with" if wide else "tinyfuse_pad_with_s8"
        self.struct = "tinyfuse_pad_wide" if wide else "tinyfuse_pad"
        self.headers = ("tinyfuse_pad_wide_with.h" if wide else "tinyfuse_pad_with.h",)

    def accepts(self, op: Op, context: Context) -> bool:
        return self.wide == (op.output.dtype != "int8")

    def counts(self, op: Op, by_row: bool) -> Counts:
        return byte_counts(op, by_row)

    def fields(self, op: Op) -> dict[str, Expr]:
        item = {"item": ITEM_BYTES[op.output.dtype]} if self.wide else {}
        return {**pad_fields(op), **item, "value": "0u" if self.wide else 0}


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
