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
    """The order that a file has."""
    return tuple(range(rank))


def permuted_tensor(tensor: Tensor, order: Order) -> Tensor:
    """An activation that the file hasn't: of the shape in that order."""
    return replace(tensor, shape=tuple(tensor.shape[axis] for axis in order), index=-1)


def is_free(op: Op) -> bool:
    """Whether the operator may be computed in other orders of all its tensors' dimensions: `permuted` says in which."""
    rank, tensors = len(op.outputs[0].shape) if op.outputs else 0, (*op.activations, *op.outputs)
    if rank < 2 or op.states or not op.activations or any(len(t.shape) != rank for t in tensors):
        return False
    if any(t.dtype not in DTYPES for t in tensors):  # a TRANSPOSE of it is none
        return False
    return FAMILIES[op.kind].permuted(op, identity(rank)) is not None


def permuted(op: Op, order: Order, instead: Mapping[Tensor, Tensor]) -> Op | None:
    """The operator on tensors `instead` of its activations and outputs, which have their dimensions in that order; None
    where that is no operator, or breaks a rule."""
    made = op if order == identity(len(order)) else FAMILIES[op.kind].permuted(op, order)
    if made is None:
        return None
    made = replace(made.reading(instead), outputs=tuple(instead.get(t, t) for t in op.outputs))
    broken = any(rule.problem(made) for rule in FAMILIES[made.kind].rules)
    return None if broken else made
