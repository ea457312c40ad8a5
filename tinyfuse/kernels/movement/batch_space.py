"""Kernels of SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND (runtime_c/tinyfuse_batch_space.h), and of SPACE_TO_BATCH_AT and
BATCH_TO_SPACE_AT, whose blocks the run computes (runtime_c/tinyfuse_batch_space_at.h)."""

from __future__ import annotations

from tinyfuse.ir import ITEM_BYTES, Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Kernel
from tinyfuse.kernels.core.methods import of_operator
from tinyfuse.kernels.core.statements import Call, Expr, Let, Statement, c_array
from tinyfuse.kernels.counts.common import Counts, piece_counts
from tinyfuse.kernels.movement.scatter_gather import IndexKernel
from tinyfuse.ops.movement.batch_space import blocks_of


def _pixel_counts(op: Op) -> Counts:
    """Counts of a copy of single pixels."""
    depth = op.output.shape[-1]
    return piece_counts(1, 0, op.output.elements // depth, depth * ITEM_BYTES[op.output.dtype])


class BatchSpace(Kernel):
    """Kernel of SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND: copies pixels one by one, or whole rows if there is no
    dimension of columns."""

    headers = ("tinyfuse_batch_space.h",)
    counts = of_operator(_pixel_counts)

    def __init__(self, name: str):
        self.name = name

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        b = blocks_of(op)
        fields = {
            "images": b.images, "bytes": b.depth * ITEM_BYTES[op.output.dtype], "dim": c_array((*b.dims, 1)[:2]),
            "count": c_array((*b.counts, 1)[:2]), "block": c_array((*b.block, 1)[:2]), "before": c_array(b.before, 2),
        }  # fmt: skip
        args = ("&p", site.input(0).pointer, site.output.pointer)
        return Let("tinyfuse_blocks", "p", fields), Call(self.name, args)


class BatchSpaceAt(IndexKernel):
    """SPACE_TO_BATCH_AT or BATCH_TO_SPACE_AT. The image is the input (`of_input`) or the output. Blocks that do not
    give the batch's shape end the run with an error."""

    headers = ("tinyfuse_batch_space_at.h",)
    counts = of_operator(_pixel_counts)
    numbers = (1, 2)

    def __init__(self, name: str, of_input: bool):
        self.name, self.of_input = name, of_input

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
