"""Kernels of PAD_WITH, MIRROR_PAD_AT, SPACE_TO_BATCH_AT and BATCH_TO_SPACE_AT, whose padding the run computes
(runtime_c/tinyfuse_pad_with.h, runtime_c/tinyfuse_mirror_at.h, runtime_c/tinyfuse_batch_space_at.h)."""

from __future__ import annotations

from math import prod

from tinyfuse.ir import ITEM_BYTES, Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite
from tinyfuse.kernels.core.statements import Call, Expr, Let, Statement, c_array
from tinyfuse.kernels.counts.common import Counts, byte_counts, piece_counts
from tinyfuse.kernels.movement.pad import pad_fields
from tinyfuse.kernels.movement.scatter_gather import IndexKernel
from tinyfuse.ops.movement.mirror_pad import border_of

_DIMENSIONS = 6


class PadWith(IndexKernel):
    """PAD_WITH of one-byte elements, or of larger ones (`wide`)."""

    shapes = (1,)

    def __init__(self, wide: bool):
        self.wide, self.name = wide, "tinyfuse_pad_wide_with" if wide else "tinyfuse_pad_with_s8"
        self.headers = ("tinyfuse_pad_wide_with.h" if wide else "tinyfuse_pad_with.h",)

    def accepts(self, op: Op, context: Context) -> bool:
        return self.wide == (op.output.dtype != "int8")

    def counts(self, op: Op, by_row: bool) -> Counts:
        return byte_counts(op, by_row)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        item = {"item": ITEM_BYTES[op.output.dtype]} if self.wide else {}
        fields = {**pad_fields(op), **item, "value": "0u" if self.wide else 0}
        params = Let("tinyfuse_pad_wide" if self.wide else "tinyfuse_pad", "p", fields)
        return params, Call(self.name, ("&p", *self.pointers(site), site.output.pointer))


class MirrorPadAt(IndexKernel):
    """MIRROR_PAD_AT of rank 1 to 6. Padding that reaches outside the input ends the run with an error."""

    name = "tinyfuse_mirror_pad_at"
    headers = ("tinyfuse_mirror_at.h",)
    numbers = (1,)

    def counts(self, op: Op, by_row: bool) -> Counts:
        elements, item = op.output.elements, ITEM_BYTES[op.output.dtype]
        lines = elements // op.output.shape[-1]
        return {"calls": 1, "lines": lines, "elements": elements, "bytes": elements * item}

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        shape, item = op.input.shape, ITEM_BYTES[op.output.dtype]
        fields = {
            "rank": len(shape), "item": item, "wide": int(op.operand(1).dtype == "int64"), "border": border_of(op),
            "in": c_array(shape, _DIMENSIONS), "out": c_array(op.output.shape, _DIMENSIONS),
            "step": c_array([item * prod(shape[d + 1 :]) for d in range(len(shape))], _DIMENSIONS),
        }  # fmt: skip
        args = ("&p", *self.pointers(site), site.output.pointer)
        return Let("tinyfuse_mirroring", "p", fields), Call(self.name, args, status="0")


class BatchSpaceAt(IndexKernel):
    """SPACE_TO_BATCH_AT or BATCH_TO_SPACE_AT. The image is the input (`of_input`) or the output. Blocks that do not
    give the batch's shape end the run with an error."""

    headers = ("tinyfuse_batch_space_at.h",)
    numbers = (1, 2)

    def __init__(self, name: str, of_input: bool):
        self.name, self.of_input = name, of_input

    def counts(self, op: Op, by_row: bool) -> Counts:
        depth = op.output.shape[-1]
        return piece_counts(1, 0, op.output.elements // depth, depth * ITEM_BYTES[op.output.dtype])

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        image, batch = (op.input, op.output) if self.of_input else (op.output, op.input)
        columns = len(image.shape) == 4
        fields = {
            "images": image.shape[0], "bytes": image.shape[-1] * ITEM_BYTES[image.dtype],
            "dim": c_array((*image.shape[1:-1], 1)[:2], 2), "count": c_array((*batch.shape[1:-1], 1)[:2], 2),
            "block": "{1, 1}", "before": "{0, 0}",
        }  # fmt: skip
        args: tuple[Expr, ...] = ("&p", int(columns), batch.shape[0], *self.pointers(site), site.output.pointer)
        return Let("tinyfuse_blocks", "p", fields), Call(self.name, args, status="0")
