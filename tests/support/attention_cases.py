"""Operators that attention by rows has: ROWS_MATMULs beside the BATCH_MATMULs that they stand for, and fully connected
layers over rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from cases import NAMED
from cases.common import operator, tensor
from conv_cases import Shape, make_op

from tinyfuse.ir import Op
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.matmul.batch_matmul import BatchMatMul, one_head
from tinyfuse.rewrite.permuted import permuted_tensor

HEADS_SWAPPED = (0, 2, 1, 3)


def by_rows(op: Op) -> Op | None:
    """A ROWS_MATMUL with the BATCH_MATMUL [1, H, R, D] that it replaces (heads and rows swapped), or one of single
    matrices on images."""
    family = FAMILIES["BATCH_MATMUL"]
    if all(len(t.shape) == 4 for t in (*op.activations, op.output)):
        made = family.permuted(op, HEADS_SWAPPED)
        swapped = {t: permuted_tensor(t, HEADS_SWAPPED) for t in (*op.activations, op.output)}
        return made and replace(made.reading(swapped), outputs=(swapped[op.output],))
    made = one_head(op)
    if made is None or made.input.is_constant:
        return None
    images = {t: replace(t, shape=(1, t.shape[-2], 1, t.shape[-1])) for t in (*op.activations, op.output)}
    return replace(made.reading(images), outputs=(images[op.output],))


def matrices() -> Iterator[Op]:
    """Matrices with depths and columns next to multiples of the kernels' step, in both orders, with extreme zero points
    too."""
    s = 0.05, 0.04, 3.0
    for rows, depth, columns, heads, points in (
        (2, 9, 21, 2, (-128, 127, 0)), (3, 16, 4, 1, (127, -128, -128)), (2, 3, 5, 3, (0, 0, 127)),
        (2, 34, 18, 2, (-3, 7, 5)),
    ):  # fmt: skip
        for adj_y in (False, True):
            shapes = (1, heads, rows, depth), (1, heads, *((columns, depth) if adj_y else (depth, columns)))
            x, y = (tensor(shape, s[i], points[i]) for i, shape in enumerate(shapes))
            output = tensor((1, heads, rows, columns), s[2], points[2])
            yield operator("BATCH_MATMUL", [x, y], output, BatchMatMul(False, adj_y))


def products() -> Iterator[tuple[Op, Op]]:
    for op in (*NAMED["BATCH_MATMUL"].values(), *matrices()):
        made = by_rows(op)
        if made is not None:
            yield op, made


def rows_of_layers() -> Iterator[Op]:
    """Fully connected layers over rows: one vector and several in a row."""
    rng = np.random.default_rng(3)
    for shape in (Shape("FULLY_CONNECTED", 5, 1, 28, 9), Shape("FULLY_CONNECTED", 6, 1, 37, 18, per_channel=False)):
        op = make_op(shape, rng)
        (rows, depth), out_c = op.input.shape, op.output.shape[-1]
        for count in (rows, rows // 2) if rows % 2 == 0 else (rows,):
            source = replace(op.input, shape=(1, count, rows // count, depth))
            result = replace(op.output, shape=(1, count, rows // count, out_c))
            yield replace(op, inputs=(source, *op.inputs[1:]), outputs=(result,))
