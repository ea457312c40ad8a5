"""ROWS_MATMUL: a BATCH_MATMUL whose heads are side by side in each row of the sequence.

`BatchMatMulFamily.permuted` and rewrite/rows_of_sequences.py make it. With it, attention computes scores and weighted
sums one row of the queries at a time, and no matrix [heads, T, T] is ever whole in RAM.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tinyfuse.ir import Array, Op, all_given
from tinyfuse.ops.core.convolution import TWO_ROUNDINGS
from tinyfuse.ops.core.family import SAME_ROW, OpFamily, RowWindow
from tinyfuse.ops.matmul.matmul_scaling import product_of_matrices


@dataclass(frozen=True)
class RowsMatMul:
    """Attributes of ROWS_MATMUL. `heads` matrices are multiplied independently. The matrix of a head is [columns,
    depth]; steps count elements of the right operand from one head to the next (0: all heads share a matrix), from one
    output column to the next, and along the sum. rounding: as for BATCH_MATMUL."""

    heads: int
    right_head: int
    right_column: int
    right_depth: int
    rounding: str = TWO_ROUNDINGS


@dataclass(frozen=True)
class MatmulShape:
    """Sizes of a ROWS_MATMUL: a row of the left operand is [heads, depth], a row of the output [heads, columns]."""

    rows: int
    heads: int
    columns: int
    depth: int


def matmul_shape(op: Op) -> MatmulShape:
    """The sizes of the operator."""
    heads, rows = op.attributes_as(RowsMatMul).heads, op.output.shape[1]
    return MatmulShape(rows, heads, op.output.elements // rows // heads, op.operand(0).elements // rows // heads)


class RowsMatMulFamily(OpFamily):
    """ROWS_MATMUL: left [1, R, ., .], R rows of [heads, depth]; right any tensor that contains a matrix [columns,
    depth] per head -> [1, R, ., .], rows of [heads, columns]. The arithmetic is that of BATCH_MATMUL."""

    kind = "ROWS_MATMUL"
    summary = "products of the heads side by side in each row with a matrix each"
    in_files = False
    from_states = (1,)

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        left, right = all_given(inputs)
        e, steps = matmul_shape(op), op.attributes_as(RowsMatMul)
        flat = np.ascontiguousarray(right).reshape(-1)
        counts = (e.heads, e.depth, e.columns)
        elements = (steps.right_head, steps.right_depth, steps.right_column)
        matrices = np.lib.stride_tricks.as_strided(flat, counts, [flat.itemsize * step for step in elements])
        vectors = left.reshape(e.rows, e.heads, e.depth).swapaxes(0, 1)
        return (product_of_matrices(op, vectors, matrices).swapaxes(0, 1).reshape(op.output.shape),)

    def macs(self, op: Op) -> int:
        return op.output.elements * matmul_shape(op).depth

    def row_window(self, op: Op, index: int) -> RowWindow | None:
        if not (op.output.is_image and op.operand(index).is_image):
            return None
        return SAME_ROW if index == 0 else RowWindow(op.operand(1).shape[1], stride=0)
