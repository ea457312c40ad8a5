"""Kernels of operators that read each dimension at indexes from a table (runtime_c/tinyfuse_indexed.h)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tinyfuse.ir import ITEM_BYTES, Array, Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Constant, Kernel
from tinyfuse.kernels.core.statements import Call, Let, Statement, c_array
from tinyfuse.kernels.counts.common import Counts, piece_counts
from tinyfuse.ops.movement.mirror_pad import Indexed, indexed_dimensions

#: returns, for each dimension of the output, the input index (below 65536) of every output index; None: the same index
Indexes = Callable[[Op], tuple[Array | None, ...]]


class IndexedCopy(Kernel):
    """Kernel that copies by tables of indexes, which `indexes` returns. A call computes the whole output, or one row of
    an image (`by_row`)."""

    headers = ("tinyfuse_indexed.h",)

    def __init__(self, indexes: Indexes, by_row: bool):
        self.indexes, self.by_row, self.whole, self.rings = indexes, by_row, not by_row, by_row
        self.name = "tinyfuse_indexed_row" if by_row else "tinyfuse_indexed_copy"

    def dimensions(self, op: Op) -> list[Indexed]:
        """The output's dimensions with leading ones, four in all."""
        dims = indexed_dimensions(op, self.indexes(op))
        return [Indexed(1, 1, None)] * (4 - len(dims)) + dims

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return tuple(
            Constant(f"index{axis}", dim.index.astype(np.uint16), "uint16_t")
            for axis, dim in enumerate(self.dimensions(op))
            if dim.index is not None
        )

    def counts(self, op: Op, by_row: bool) -> Counts:
        dims, item = self.dimensions(op), ITEM_BYTES[op.output.dtype]
        whole_pixels = dims[3].index is None
        run = item * (dims[3].count if whole_pixels else 1)
        pixels = op.output.elements // dims[3].count
        pieces = pixels if whole_pixels else op.output.elements
        return piece_counts(op.output.shape[1] if by_row else 1, pixels // dims[2].count, pieces, run)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        dims = self.dimensions(op)
        tables, count = [dim.index for dim in dims], [dim.count for dim in dims]
        step, run = [0] * 4, ITEM_BYTES[op.output.dtype]
        size = run
        for axis in reversed(range(4)):
            step[axis] = size
            size *= dims[axis].dim
        if tables[3] is None:  # whole pixels
            run, count[3], step[3] = run * count[3], 1, 0
        symbols = ["NULL" if t is None else site.constant(f"index{i}") for i, t in enumerate(tables)]
        fields = {"count": c_array(count), "step": c_array(step), "index": c_array(symbols), "run": run}
        source = site.input(0)
        place = (source.ring_rows, site.output_row) if self.by_row else ()
        args = ("&p", source.pointer, *place, site.output.pointer)
        return Let("tinyfuse_indexed", "p", fields), Call(self.name, args)
