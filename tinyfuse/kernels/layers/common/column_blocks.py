"""Convolutions of single-column images, [1, H, 1, C], several rows a call.

Models of sequences have them: their rows are steps of time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from tinyfuse.ir import Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Kernel, TensorAccess
from tinyfuse.kernels.core.methods import always
from tinyfuse.kernels.core.statements import Let, Statement
from tinyfuse.kernels.core.wrapper import WholeWrapper
from tinyfuse.kernels.counts.common import KNOWN, Counts
from tinyfuse.kernels.counts.layers import PALETTE_COUNTS
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.core.convolution import geometry

#: fewest rows that a call computes: a multiple of 2, 3 and 4, the kernels' pixel blocks. 24 rows saved an audio network
#: 2 % of its instructions, and doubled the bytes of its rings
ROWS = 12


@lru_cache(maxsize=8192)
def columns_as_rows(op: Op) -> Op | None:
    """Return the operator with its images [1, H, 1, C] seen as rows [1, 1, H, C].

    None where an image has another width, where the output has one row, or where the operator has states or several
    outputs.
    """
    tensors = (*op.activations, *op.outputs)
    if op.states or len(op.outputs) != 1 or not all(t.is_image and t.shape[2] == 1 for t in tensors):
        return None
    if op.output.shape[1] == 1:
        return None
    rows = {t: replace(t, shape=(1, 1, t.shape[1], t.shape[3])) for t in tensors}
    found = FAMILIES[op.kind].with_axes_swapped(op, tuple(t if t is None else rows.get(t, t) for t in op.inputs))
    return None if found is None else replace(found, outputs=(rows[op.output],))


class ColumnBlocks(WholeWrapper):
    """Wrapper that computes several rows of a single-column image by one call of `kernel`.

    `kernel` computes a row in blocks of pixels.

    If rows are contiguous, the pixels of a column lie in memory like those of a row. The call for rows from y on passes
    `top padding - y * stride` as padding, which is negative inside the image.
    """

    by_row, whole, in_order = True, False, True
    inner_by_row = always(True)

    def __init__(self, kernel: Kernel):
        super().__init__(kernel, rows_a_call=-(-ROWS // kernel.pixel_block) * kernel.pixel_block)

    def inner(self, op: Op) -> Op:
        return _as_rows(op)

    def accepts(self, op: Op, context: Context) -> bool:
        row_op = columns_as_rows(op)
        return row_op is not None and geometry(op).window.kernel > 1 and self.kernel.accepts(row_op, context)

    def counts(self, op: Op, by_row: bool) -> Counts:
        return _counts(self.kernel, op, self.rows_a_call)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        row_op, row, rows, most = _as_rows(op), site.output_row, op.output.shape[1], self.rows_a_call
        inputs = tuple(
            TensorAccess(tensor, access.pointer, 1) if access and tensor else None
            for access, tensor in zip(site.inputs, row_op.inputs, strict=True)
        )
        result = replace(site.output, tensor=row_op.output, ring_rows=1)
        g = geometry(row_op)
        fields = {
            "out_w": most if rows % most == 0 else f"tinyfuse_min({most}, {rows} - {row})",
            "pad_left": f"{g.pad_left} - {row} * {g.stride_w}",
        }
        inner = replace(site, inputs=inputs, outputs=(result,), row="0")
        return tuple(_with_geometry(statement, fields) for statement in self.kernel.call(row_op, inner, context))


def _as_rows(op: Op) -> Op:
    row_op = columns_as_rows(op)
    assert row_op is not None, "the kernel accepted it"
    return row_op


def _with_geometry(statement: Statement, fields: Mapping[str, int | str]) -> Statement:
    """Return the statement with `fields` replaced if it declares the geometry of a convolution, else as it is."""
    if isinstance(statement, Let) and isinstance(statement.value, Mapping) and fields.keys() <= statement.value.keys():
        return replace(statement, value={**statement.value, **fields})
    return statement


@lru_cache(maxsize=8192)
def _counts(kernel: Kernel, op: Op, rows_a_call: int) -> Counts:
    """Return the counts of a column that is computed as one row, in calls of `rows_a_call` rows.

    Palettized weights are expanded in every call. Counts with the prefix KNOWN are 0, because compilers know neither a
    call's rows nor its padding.
    """
    calls = -(-op.output.shape[1] // rows_a_call)
    of_row = kernel.counts(_as_rows(op), True)
    expanded = {name: calls * of_row[name] for name in PALETTE_COUNTS if name in of_row}
    unknown = {name: 0 for name in of_row if name.startswith(KNOWN)}
    return {**of_row, **expanded, **unknown, "calls": calls}
