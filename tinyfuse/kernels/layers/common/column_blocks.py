"""Images of a single column, several rows a call: what convolutions over time make of sequences ([1, H, 1, C])."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from tinyfuse.ir import Op, Tensor
from tinyfuse.kernels.core.kernel import CallSite, Context, Kernel, TensorAccess
from tinyfuse.kernels.core.statements import Let, Statement
from tinyfuse.kernels.core.wrapper import WholeWrapper
from tinyfuse.kernels.counts.common import Counts
from tinyfuse.kernels.counts.layers import PALETTE_COUNTS
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.core.convolution import geometry

#: rows a call: whole blocks of two or three pixels. With 24 the layers of an audio network took 2 % fewer
#: instructions, and rings twice the bytes
ROWS = 12


@lru_cache(maxsize=8192)
def lying(op: Op) -> Op | None:
    """The operator on [1, 1, H, C] for one that makes images [1, H, 1, C] of several rows from such; else None."""
    tensors = (*op.activations, *op.outputs)
    if op.states or len(op.outputs) != 1 or not all(t.is_image and t.shape[2] == 1 for t in tensors):
        return None
    if op.output.shape[1] == 1:
        return None
    rows = {t: _one_row(t) for t in tensors}
    found = FAMILIES[op.kind].with_axes_swapped(op, tuple(t if t is None else rows.get(t, t) for t in op.inputs))
    return None if found is None else replace(found, outputs=(rows[op.output],))


def _one_row(tensor: Tensor) -> Tensor:
    return replace(tensor, shape=(1, 1, tensor.shape[1], tensor.shape[3]))


class ColumnBlocks(WholeWrapper):
    """`kernel`, which computes a row of a convolution in blocks of pixels, for the pixels of several rows.

    In memory they are pixels of one row, and so are those that their windows see, where rows lie in order. Seen as that
    row, the call for row y begins y strides behind its start: that is padding on the left, less than none.
    """

    by_row, whole, in_order, rows_a_call = True, False, True, ROWS

    def inner(self, op: Op) -> Op:
        return _lying(op)

    def inner_by_row(self, by_row: bool) -> bool:
        return True

    def accepts(self, op: Op, context: Context) -> bool:
        lying_op = lying(op)
        return lying_op is not None and geometry(op).window.kernel > 1 and self.kernel.accepts(lying_op, context)

    def counts(self, op: Op, by_row: bool) -> Counts:
        return _counts(self.kernel, op)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        lying_op, row, rows = _lying(op), site.output_row, op.output.shape[1]
        inputs = tuple(
            TensorAccess(tensor, access.pointer, 1) if access and tensor else None
            for access, tensor in zip(site.inputs, lying_op.inputs, strict=True)
        )
        result = replace(site.output, tensor=lying_op.output, ring_rows=1)
        g = geometry(lying_op)
        these = {
            "out_w": ROWS if rows % ROWS == 0 else f"tinyfuse_min({ROWS}, {rows} - {row})",
            "pad_left": f"{g.pad_left} - {row} * {g.stride_w}",
        }
        inner = replace(site, inputs=inputs, outputs=(result,), row="0")
        return tuple(_of_these(statement, these) for statement in self.kernel.call(lying_op, inner, context))


def _lying(op: Op) -> Op:
    lying_op = lying(op)
    assert lying_op is not None, "the kernel accepted it"
    return lying_op


def _of_these(statement: Statement, these: Mapping[str, int | str]) -> Statement:
    """The statement, with those fields where it gives the geometry of a convolution."""
    if isinstance(statement, Let) and isinstance(statement.value, Mapping) and these.keys() <= statement.value.keys():
        return replace(statement, value={**statement.value, **these})
    return statement


@lru_cache(maxsize=8192)
def _counts(kernel: Kernel, op: Op) -> Counts:
    """Those of the one row, for which the kernel is called several times."""
    calls = -(-op.output.shape[1] // ROWS)
    of_row = kernel.counts(_lying(op), True)
    looked_up = {name: calls * of_row[name] for name in PALETTE_COUNTS if name in of_row}
    return {**of_row, **looked_up, "calls": calls}
