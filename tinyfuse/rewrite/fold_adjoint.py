"""A TRANSPOSE that changes the dimensions of an operand's matrices becomes a flag of the BATCH_MATMUL.

before   %k[1,H,D,T] = TRANSPOSE(%x[1,T,H,D], 0 2 3 1);  %s = BATCH_MATMUL(%q, %k)
after    %k[1,H,T,D] = TRANSPOSE(%x[1,T,H,D], 0 2 1 3);  %s = BATCH_MATMUL(%q, %k, adj_y)

The remaining TRANSPOSE leaves the last dimension in its place. If it then moves nothing, it is removed.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tinyfuse.ir import Graph, Op, Tensor
from tinyfuse.ops.matmul.batch_matmul import BatchMatMul
from tinyfuse.ops.movement.transpose import permutation


def fold_adjoint(graph: Graph) -> Graph:
    """Replace TRANSPOSEs of matrices by flags of BATCH_MATMUL where that leaves fewer TRANSPOSEs."""
    ops: list[Op] = []
    for op in graph.ops:
        if isinstance(op.attributes, BatchMatMul):
            for index in (0, 1):
                op = _folded(graph, op, index, ops)
        ops.append(op)
    return graph if tuple(ops) == graph.ops else replace(graph, ops=tuple(ops))


def _folded(graph: Graph, op: Op, index: int, before: list[Op]) -> Op:
    """Return the BATCH_MATMUL with the operand's flag flipped if that saves a TRANSPOSE; appends new operators to
    `before`."""
    tensor = op.operand(index)
    maker = graph.producer.get(tensor)
    if maker is None or maker.kind != "TRANSPOSE" or maker.input.is_constant or maker.input.quant != tensor.quant:
        return op
    order = permutation(maker)
    rank = len(order)
    if rank < 2 or order[-1] == rank - 1:
        return op
    order = (*order[:-2], order[-1], order[-2])
    if order[-1] != rank - 1:
        return op
    source = maker.input
    if order != tuple(range(rank)):
        source = _transposed(maker, tensor, order)
        before.append(replace(maker, inputs=(maker.input, _order(source, order)), outputs=(source,)))
    flags = op.attributes_as(BatchMatMul)
    flags = replace(flags, adj_y=not flags.adj_y) if index else replace(flags, adj_x=not flags.adj_x)
    inputs = tuple(source if i == index else t for i, t in enumerate(op.inputs))
    return replace(op, inputs=inputs, attributes=flags)


def _transposed(maker: Op, tensor: Tensor, order: tuple[int, ...]) -> Tensor:
    shape = tuple(maker.input.shape[axis] for axis in order)
    return replace(tensor, name=f"{tensor.name} (matrices)", shape=shape, index=-1)


def _order(result: Tensor, order: tuple[int, ...]) -> Tensor:
    data = np.array(order, np.int32)
    return Tensor(f"{result.name} (order)", data.shape, "int32", None, data)
