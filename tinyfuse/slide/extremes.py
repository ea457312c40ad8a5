"""Computes maxima and minima over all rows from those of 2, 4, 8, ... rows, which are kept from step to step.

before   %m[1,1,W,C] = MAX_POOL_2D(%x[1,11,W,C]) of all rows
after    %a[1,10,..] = MAXIMUM(rows 0 to 9 of %x, rows 1 to 10);  %b[1,8,..] = MAXIMUM(rows 0 to 7 of %a, rows 2 to 9)
         %c[1,4,..] = MAXIMUM(rows 0 to 3 of %b, rows 4 to 7);    %m = MAXIMUM(row 0 of %c, row 3)

A row that leaves the window cannot be subtracted from a maximum. But a row of %a, %b, %c is the maximum of two, four,
eight rows, and moves with the window as %x does. So a step makes only the new ones: one comparison per value and level,
in place of one per row. Applied to integers, whose maximum is the same in any order, if no row sees padding and it
pays.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tinyfuse.ir import Graph, Op, Tensor
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.movement.slice import slice_of
from tinyfuse.ops.pooling_reduce.pooling import Pool2D, sees_all
from tinyfuse.ops.pooling_reduce.reduce_scaling import reduced_axes
from tinyfuse.slide.time_rows import TimeRows, time_rows

#: rows that a step touches per new row and level: two are copied and compared, one is kept
_PASSES = 4


def halve_extremes(graph: Graph, frames: Tensor, step: int) -> Graph:
    """Rewrites maxima and minima over many clean rows of `frames`, which move by `step`."""
    if not any(FAMILIES[op.kind].extreme for op in graph.ops):
        return graph
    rows = time_rows(graph, frames, step).rows
    made: list[Op] = []
    for op in graph.ops:
        known = rows.get(op.input) if FAMILIES[op.kind].extreme else None
        made += _halved(op) if known is not None and _pays(known) and _is_over_all_rows(op) else [op]
    return replace(graph, ops=tuple(made))


def _pays(rows: TimeRows) -> bool:
    if rows.height == 1:  # a single row has no halves
        return False
    levels = (rows.height - 1).bit_length()
    return (rows.start, rows.end) == (0, rows.height) and _PASSES * levels * rows.shift < rows.height


def _is_over_all_rows(op: Op) -> bool:
    if op.output.dtype == "float32" or not (op.input.is_image and op.output.is_image):
        return False
    return sees_all(op) if isinstance(op.attributes, Pool2D) else 1 in reduced_axes(op)


def _halved(op: Op) -> Iterator[Op]:
    each = _of_each_row(op)
    if each is not None:
        yield each
    kind, rows, reach = FAMILIES[op.kind].extreme, op.input if each is None else each.output, 1
    height = rows.shape[1]
    while reach < height:
        ahead = min(reach, height - reach)
        count = rows.shape[1] - ahead
        halves = tuple(_rows_of(op.output, count) for _ in range(2))
        joined = op.output if reach + ahead == height else _rows_of(op.output, count)
        for i, half in enumerate(halves):
            yield slice_of(rows, (0, i * ahead, 0, 0), half, op.index)
        yield Op(kind, halves, (joined,), index=op.index)
        rows, reach = joined, reach + ahead


def _of_each_row(op: Op) -> Op | None:
    """Reduction of each row, along columns and channels; None if the operator reduces along rows only."""
    _, height, width, _ = op.input.shape
    output = _rows_of(op.output, height)
    if isinstance(op.attributes, Pool2D):
        attributes = replace(op.attributes, filter=(1, width), stride=(1, 1), padding="VALID")
        return replace(op, outputs=(output,), attributes=attributes)
    axes = [axis for axis in reduced_axes(op) if axis != 1]
    if not axes:
        return None
    constant = Tensor("", (len(axes),), "int32", data=np.array(axes, np.int32))
    return replace(op, inputs=(op.input, constant), outputs=(output,))


def _rows_of(tensor: Tensor, height: int) -> Tensor:
    return replace(tensor, name=f"{tensor.name} (of rows)", shape=(1, height, *tensor.shape[2:]), index=-1)
