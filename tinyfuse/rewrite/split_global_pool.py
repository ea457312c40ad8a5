"""A pool over the whole image becomes a running sum, or extreme, of its rows.

before   %p[1,1,1,C] = AVERAGE_POOL_2D(%in[1,H,W,C]) filter=(H, W)
after    %s[1,H,1,C] = ROW_SUM(%in);  %p = AVERAGE_OF_SUM(%s)

before   %p[1,1,1,C] = MAX_POOL_2D(%in[1,H,W,C]) filter=(H, W)
after    %s[1,H,1,C] = ROW_MAX(%in);  %p = AVERAGE_OF_SUM(%s) count=1

before   %p[1,C] = REDUCE_MAX(%in[1,H,W,C]) axes=(1, 2), or [1,W,C] with axis 1 alone; REDUCE_MIN likewise
after    %s[1,H,1,C] = ROW_MAX(%in), or [1,H,W,C];  %q = AVERAGE_OF_SUM(%s) count=1;  %p = RESHAPE(%q)

Row y of %s is the sum, or the extreme, of the image's rows 0 to y, so its last row is what the second operator divides
or clamps. As a ring of one row it lets a group take the image row by row: the image never exists whole. All are
operators of ours (tinyfuse/ops/pooling_reduce/row_sum.py). Integer sums are exact, and float sums and extremes take the
pixels in the pool's order, so every bit is kept. An average that rounds halves up stays as it is."""

from __future__ import annotations

from dataclasses import replace
from math import inf

from tinyfuse.ir import Graph, Op, Tensor
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.pooling_reduce.pooling import Pool2D, sees_all
from tinyfuse.ops.pooling_reduce.reduce_scaling import reduced_axes
from tinyfuse.ops.pooling_reduce.row_sum import AverageOfSum, sum_dtype


def split_global_pool(graph: Graph) -> Graph:
    """Graph in which averages and extremes over a whole image are computed as running sums and extremes over its
    rows."""
    ops: list[Op] = []
    for op in graph.ops:
        ops += _split(op) or [op]
    return graph if len(ops) == len(graph.ops) else replace(graph, ops=tuple(ops))


def _split(op: Op) -> list[Op] | None:
    family = FAMILIES[op.kind]
    if family.reduces and family.extreme:
        return _split_reduction(op)
    if not family.pools or op.kind == "L2_POOL_2D" or not sees_all(op):
        return None
    pool, (_, height, width, _) = op.attributes_as(Pool2D), op.input.shape
    if op.kind == "MAX_POOL_2D":
        return _by_rows(op, "ROW_MAX", AverageOfSum(1, pool.activation, pool.clamp), op.output)
    if pool.halves_up:
        return None
    return _by_rows(op, "ROW_SUM", AverageOfSum(height * width, pool.activation, pool.clamp), op.output)


def _split_reduction(op: Op) -> list[Op] | None:
    axes = reduced_axes(op)
    # a ring (ring_window.py) holds all rows already: nothing to save
    if op.states or not op.input.is_image or op.input.shape[1] == 1 or axes not in ((1,), (1, 2)):
        return None
    _, _, width, channels = op.input.shape
    shape = (1, 1, 1 if 2 in axes else width, channels)
    result = replace(op.output, name=f"{op.output.name} (row)", shape=shape, index=-1)
    # an extreme, unlike a pool, keeps infinities
    last = AverageOfSum(1, clamp=(-inf, inf) if op.input.dtype == "float32" else None)
    by_rows = _by_rows(op, op.kind.replace("REDUCE", "ROW"), last, result)
    return [*by_rows, Op("RESHAPE", (result,), op.outputs, index=op.index, estimate_mark=op.estimate_mark)]


def _by_rows(op: Op, kind: str, attributes: AverageOfSum, result: Tensor) -> list[Op]:
    """Return an operator of `kind` on the image, and the operators that make `result` [1, 1, W, C] from its
    last row."""
    shape = (1, op.input.shape[1], *result.shape[2:])
    rows = Tensor(f"{op.output.name} ({kind[4:].lower()})", shape, sum_dtype(op.input.dtype))
    return [
        Op(kind, (op.input,), (rows,), index=op.index, estimate_mark=op.estimate_mark),
        Op("AVERAGE_OF_SUM", (rows,), (result,), attributes, index=op.index, estimate_mark=op.estimate_mark),
    ]
