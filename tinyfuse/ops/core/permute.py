"""Helpers for `OpFamily.permuted` of several families: constants whose dimensions are in another order.

An order gives, for each dimension of the permuted tensor, the index of that dimension in the file's tensor, as in
TRANSPOSE.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tinyfuse.ir import Array, Op, Tensor

Order = tuple[int, ...]


def with_constant(op: Op, i: int, data: Array) -> Op:
    """Operator with `data` as the value of its constant input `i`."""
    constant = replace(op.operand(i), shape=data.shape, data=data.copy(), index=-1)
    return replace(op, inputs=(*op.inputs[:i], constant, *op.inputs[i + 1 :]))


def with_rows_permuted(op: Op, order: Order, *constants: int) -> Op:
    """Operator with the entries of some constant inputs reordered. `constants`: indexes of inputs that have one entry
    per dimension."""
    for i in constants:
        op = with_constant(op, i, op.operand(i).values[list(order)])
    return op


def broadcast_permuted(op: Op, order: Order) -> Op | None:
    """Operator whose constants, which broadcast to the output, are permuted; None if one is quantized per channel."""
    rank, inputs = len(order), []
    for tensor in op.inputs:
        if tensor is None or not tensor.is_constant or tensor.elements == 1:
            inputs.append(tensor)
            continue
        if len(tensor.shape) > rank or (tensor.quant is not None and tensor.quant.per_channel):
            return None
        full = tensor.values.reshape((1,) * (rank - len(tensor.shape)) + tensor.shape)
        inputs.append(_without_ones(tensor, np.ascontiguousarray(full.transpose(order))))
    return replace(op, inputs=tuple(inputs))


def _without_ones(constant: Tensor, data: Array) -> Tensor:
    """Constant with `data` without leading dimensions of size 1, as converters write one value per channel."""
    ones = next((i for i, dim in enumerate(data.shape[:-1]) if dim != 1), data.ndim - 1)
    data = data.reshape(data.shape[ones:])
    return replace(constant, shape=data.shape, data=data, index=-1)
