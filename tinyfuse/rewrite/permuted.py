"""Operators on tensors whose dimensions stand in another order.

before   %y[1,C,H,W] = ADD(%x[1,C,H,W], %k[C,1,1])
after    %y'[1,H,W,C] = ADD(%x'[1,H,W,C], %k[C])

An order is, of each dimension of the permuted tensor, the one that it is of the file's: as in TRANSPOSE.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tinyfuse.ir import Array, Op, Tensor
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.concatenation import Concatenation
from tinyfuse.ops.reduce import Reducer
from tinyfuse.ops.reduce_scaling import reduced_axes

Order = tuple[int, ...]

#: what moves whole ranges of indexes along single dimensions, which input 1 (and 2) tell, one entry a dimension
_RANGES = ("MIRROR_PAD", "SLICE")

#: what computes along the last dimension, and each place of the others alike
_LAST = ("SOFTMAX", "LOG_SOFTMAX")


def identity(rank: int) -> Order:
    """The order that a file has."""
    return tuple(range(rank))


def permuted_tensor(tensor: Tensor, order: Order) -> Tensor:
    """A tensor that the file hasn't: an activation's shape, or a constant's data, in that order."""
    shape = tuple(tensor.shape[axis] for axis in order)
    data = None if tensor.data is None else np.ascontiguousarray(tensor.data.transpose(order))
    return replace(tensor, shape=shape, data=data, index=-1)


def is_free(op: Op) -> bool:
    """Whether the operator may be computed in other orders of all its tensors' dimensions: `permuted` says in which."""
    family = FAMILIES[op.kind]
    rank, tensors = len(op.outputs[0].shape) if op.outputs else 0, (*op.activations, *op.outputs)
    if rank < 2 or op.states or family.alias or not op.activations or any(len(t.shape) != rank for t in tensors):
        return False
    if isinstance(op.attributes, Reducer):
        return op.attributes.keep_dims and op.input.dtype != "float32"  # of floats the order of the terms counts
    if op.kind == "SPLIT":
        return not op.operand(1).is_constant
    sort = family.pointwise or (family.elementwise and len(op.inputs) == 1) or family.pads
    return len(op.outputs) == 1 and (sort or op.kind in ("CONCATENATION", *_RANGES, *_LAST))


def permuted(op: Op, order: Order, instead: Mapping[Tensor, Tensor]) -> Op | None:
    """The operator on tensors `instead` of its activations and outputs, which have their dimensions in that order; None
    where that is no operator, or breaks a rule."""
    if order == identity(len(order)):
        made: Op | None = op
    elif isinstance(op.attributes, Reducer):
        axes = sorted(order.index(axis) for axis in reduced_axes(op))
        made = _with_constant(op, 1, np.array(axes, np.int32))
    elif isinstance(op.attributes, Concatenation):
        axis = order.index(op.attributes.axis % len(order))
        made = replace(op, attributes=replace(op.attributes, axis=axis))
    elif op.kind == "SPLIT":
        axis = order.index(int(op.operand(0).values.reshape(-1)[0]) % len(order))
        made = _with_constant(op, 0, np.full(op.operand(0).shape, axis, np.int32))
    elif FAMILIES[op.kind].pads or op.kind in _RANGES:
        made = op
        for i, constant in enumerate(op.inputs[: 3 if op.kind == "SLICE" else 2]):
            if i and constant is not None:
                made = _with_constant(made, i, constant.values[list(order)])
    elif op.kind in _LAST:
        made = op if order[-1] == len(order) - 1 else None
    else:
        made = _broadcast(op, order)
    if made is None:
        return None
    made = replace(made.reading(instead), outputs=tuple(instead.get(t, t) for t in op.outputs))
    broken = any(rule.problem(made) for rule in FAMILIES[made.kind].rules)
    return None if broken else made


def _with_constant(op: Op, i: int, data: Array) -> Op:
    """The operator with other data in the place of a constant's."""
    constant = replace(op.operand(i), shape=data.shape, data=data.copy(), index=-1)
    return replace(op, inputs=(*op.inputs[:i], constant, *op.inputs[i + 1 :]))


def _broadcast(op: Op, order: Order) -> Op | None:
    """A pointwise operator with its constants permuted, which are broadcast to the output."""
    rank, inputs = len(order), []
    for tensor in op.inputs:
        if tensor is None or not tensor.is_constant or tensor.elements == 1:
            inputs.append(tensor)
            continue
        if len(tensor.shape) > rank or (tensor.quant is not None and tensor.quant.per_channel):
            return None
        full = replace(tensor, shape=(shape := (1,) * (rank - len(tensor.shape)) + tensor.shape),
                       data=tensor.values.reshape(shape))  # fmt: skip
        inputs.append(_without_ones(permuted_tensor(full, order)))
    return replace(op, inputs=tuple(inputs))


def _without_ones(constant: Tensor) -> Tensor:
    """A constant operand without the dimensions of 1 in front, as converters write one value a channel."""
    ones = next((i for i, dim in enumerate(constant.shape[:-1]) if dim != 1), len(constant.shape) - 1)
    shape = constant.shape[ones:]
    return replace(constant, shape=shape, data=constant.values.reshape(shape))
