"""An average over the whole image becomes a running sum of its rows and one division.

before   %p[1,1,1,C] = AVERAGE_POOL_2D(%in[1,H,W,C]) filter=(H, W)
after    %s[1,H,1,C] = ROW_SUM(%in);  %p = AVERAGE_OF_SUM(%s)

Row y of %s is the sum of the image's rows 0 to y, so its last row is what the average divides. As a
ring of one row it lets a group take the image row by row: the image never exists whole. Both are
operators of ours (tinyfuse/ops/row_sum.py). A sum of integers is exact, and one of floats takes the pixels in the
order in which the average does: so every bit of it is the same. One that rounds halves up stays as it is.
"""

from __future__ import annotations

from dataclasses import replace

from tinyfuse.ir import Graph, Op, Tensor
from tinyfuse.ops.pooling import Pool2D, sees_all
from tinyfuse.ops.row_sum import AverageOfSum, sum_dtype


def split_global_pool(graph: Graph) -> Graph:
    """The graph whose averages over an image are sums of rows and a division."""
    ops: list[Op] = []
    for op in graph.ops:
        ops += (
            _split(op)
            if op.kind == "AVERAGE_POOL_2D" and not op.attributes_as(Pool2D).halves_up and sees_all(op)
            else [op]
        )
    return graph if len(ops) == len(graph.ops) else replace(graph, ops=tuple(ops))


def _split(op: Op) -> list[Op]:
    _, height, width, channels = op.input.shape
    sums = Tensor(f"{op.output.name} (sum)", (1, height, 1, channels), sum_dtype(op.input.dtype))
    pool = op.attributes_as(Pool2D)
    attributes = AverageOfSum(height * width, pool.activation, pool.clamp)
    return [
        Op("ROW_SUM", (op.input,), (sums,), index=op.index),
        Op("AVERAGE_OF_SUM", (sums,), op.outputs, attributes, index=op.index),
    ]
