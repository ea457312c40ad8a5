"""Operators on tensors whose dimensions stand in another order.

before   %y[1,C,H,W] = ADD(%x[1,C,H,W], %k[C,1,1])
after    %y'[1,H,W,C] = ADD(%x'[1,H,W,C], %k[C])
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tinyfuse.ir import Op, Tensor
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.core.permute import Order
from tinyfuse.ops.movement.transpose import DTYPES


def identity(rank: int) -> Order:
    """Return the file's own order of dimensions."""
    return tuple(range(rank))


def permuted_tensor(tensor: Tensor, order: Order) -> Tensor:
    """Return a new activation with the dimensions of `tensor` in `order`."""
    return replace(tensor, shape=tuple(tensor.shape[axis] for axis in order), index=-1)


def is_free(op: Op) -> bool:
    """Tell whether the operator may be computed with all its tensors' dimensions permuted (`permuted` tells in which
    orders)."""
    rank, tensors = len(op.outputs[0].shape) if op.outputs else 0, (*op.activations, *op.outputs)
    if rank < 2 or op.states or not op.activations or any(len(t.shape) != rank for t in tensors):
        return False
    if any(t.dtype not in DTYPES for t in tensors):  # TRANSPOSE can't move these
        return False
    return FAMILIES[op.kind].permuted(op, identity(rank)) is not None


def permuted(op: Op, order: Order, instead: Mapping[Tensor, Tensor]) -> Op | None:
    """Return the operator with its dimensions in `order`, on tensors `instead` of its activations and outputs.

    Return None if no operator computes that, or if it would break a rule.
    """
    made = op if order == identity(len(order)) else FAMILIES[op.kind].permuted(op, order)
    if made is None:
        return None
    made = replace(made.reading(instead), outputs=tuple(instead.get(t, t) for t in op.outputs))
    broken = any(rule.problem(made) for rule in FAMILIES[made.kind].rules)
    return None if broken else made
