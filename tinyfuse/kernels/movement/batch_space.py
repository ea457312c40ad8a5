"""Kernels of SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND (runtime_c/tinyfuse_batch_space.h)."""

from __future__ import annotations

from tinyfuse.ir import ITEM_BYTES, Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Kernel
from tinyfuse.kernels.core.statements import Call, Let, Statement, c_array
from tinyfuse.kernels.counts.common import Counts, piece_counts
from tinyfuse.ops.movement.batch_space import blocks_of


class BatchSpace(Kernel):
    """Kernel of SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND: copies pixels one by one, or whole rows if there is no
    dimension of columns."""

    headers = ("tinyfuse_batch_space.h",)

    def __init__(self, name: str):
        self.name = name

    def counts(self, op: Op, by_row: bool) -> Counts:
        depth = op.output.shape[-1]
        return piece_counts(1, 0, op.output.elements // depth, depth * ITEM_BYTES[op.output.dtype])

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        b = blocks_of(op)
        fields = {
            "images": b.images, "bytes": b.depth * ITEM_BYTES[op.output.dtype], "dim": c_array((*b.dims, 1)[:2]),
            "count": c_array((*b.counts, 1)[:2]), "block": c_array((*b.block, 1)[:2]), "before": c_array(b.before, 2),
        }  # fmt: skip
        args = ("&p", site.input(0).pointer, site.output.pointer)
        return Let("tinyfuse_blocks", "p", fields), Call(self.name, args)
