"""Kernel of GATHER (runtime_c/tinyfuse_gather.h)."""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import ITEM_BYTES, Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Constant, Kernel
from tinyfuse.kernels.core.statements import Call, Let, Statement
from tinyfuse.kernels.counts.common import Counts, piece_counts
from tinyfuse.ops.movement.gather import gather_shape


class GatherSlices(Kernel):
    """GATHER of constant or computed data and indexes. An index outside the data ends the run with an error."""

    name = "tinyfuse_gather"
    headers = ("tinyfuse_gather.h",)

    def counts(self, op: Op, by_row: bool) -> Counts:
        e = gather_shape(op)
        slices = e.batches * e.outer * e.indexes
        return piece_counts(1, e.batches * e.outer, slices, op.output.bytes // max(1, slices))

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        found = []
        for name, tensor in zip(("data", "indexes"), op.operands, strict=True):
            if tensor.is_constant:
                values = np.ascontiguousarray(tensor.data).reshape(-1)
                values = values.astype(np.int32) if name == "indexes" else values.view(np.int8)
                found.append(Constant(name, values, "int32_t" if name == "indexes" else "int8_t"))
        return tuple(found)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        e = gather_shape(op)
        fields = {
            "batches": e.batches, "outer": e.outer, "slices": e.slices,
            "bytes": e.inner * ITEM_BYTES[op.output.dtype], "indexes": e.indexes,
        }  # fmt: skip
        data, indexes = (
            site.constant(name) if access is None else access.pointer
            for name, access in zip(("data", "indexes"), site.inputs, strict=True)
        )
        args = ("&p", data, indexes, site.output.pointer)
        return Let("tinyfuse_gathering", "p", fields), Call(self.name, args, status="0")
