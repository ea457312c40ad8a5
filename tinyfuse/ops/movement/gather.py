"""GATHER: selects slices along a dimension by a tensor of indexes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from tinyfuse.ir import Array, Op, Tensor, given
from tinyfuse.ops.core.family import OpFamily, Rule
from tinyfuse.ops.core.movement import ends, one_dtype


@dataclass(frozen=True)
class Gather:
    """Attributes of GATHER. axis: the dimension of the data that is indexed; batch_dims: number of leading dimensions
    that data and indexes share. Negative values count from the end, of the data's dimensions and of the indexes'."""

    axis: int = 0
    batch_dims: int = 0


@dataclass(frozen=True)
class GatherShape:
    """Shape of a GATHER: data [batches, outer, slices, inner], indexes [batches, indexes]."""

    batches: int
    outer: int
    slices: int
    inner: int
    indexes: int


def gather_shape(op: Op) -> GatherShape:
    """Shape of the operator's data and indexes."""
    data, indexes = op.operand(0).shape, op.operand(1).shape
    axis, batch = _axis(op), _batch_dims(op)
    return GatherShape(
        prod(data[:batch]), prod(data[batch:axis]), data[axis], prod(data[axis + 1 :]), prod(indexes[batch:])
    )


def _axis(op: Op) -> int:
    axis = op.attributes_as(Gather).axis
    return axis + len(op.operand(0).shape) if axis < 0 else axis


def _batch_dims(op: Op) -> int:
    count = op.attributes_as(Gather).batch_dims
    return count + len(op.operand(1).shape) if count < 0 else count


def _bad_dimensions(op: Op) -> bool:
    data, indexes = op.operand(0).shape, op.operand(1).shape
    axis, batch = _axis(op), _batch_dims(op)
    inside = 0 <= batch <= axis < len(data) and batch <= len(indexes)
    return not inside or data[:batch] != indexes[:batch]


def _bad_shape(op: Op) -> Tensor | None:
    data, indexes = op.operand(0).shape, op.operand(1).shape
    axis, batch = _axis(op), _batch_dims(op)
    return None if op.output.shape == (*data[:axis], *indexes[batch:], *data[axis + 1 :]) else op.output


def _bad_index(op: Op) -> Tensor | None:
    indexes = op.operand(1)
    if not indexes.is_constant:
        return None
    inside = (indexes.values >= 0) & (indexes.values < gather_shape(op).slices)
    return None if inside.all() else indexes


class GatherFamily(OpFamily):
    """GATHER. An index outside the data that is computed at run time ends the run with an error; TFLM reads whatever is
    there."""

    kind = "GATHER"
    zero_scales = (0,)
    takes_uint8 = True
    options_table = "GatherOptions"
    summary = "slices of a dimension, picked by indexes"
    rules = (
        ends(2),
        one_dtype(("int8", "float32")),
        Rule("the indexes are int32", lambda op: op.operand(1) if op.operand(1).dtype != "int32" else None),
        Rule("the axis is one of the data's, after the batch dimensions, in which both agree", _bad_dimensions),
        Rule("the output has the indexes' dimensions in place of the axis", _bad_shape),
        Rule("constant indexes are inside the axis", _bad_index),
    )

    def attributes(self, options: Mapping[str, Any]) -> Gather:
        return Gather(options.get("axis", 0), options.get("batch_dims", 0))

    def indexes(self, op: Op, index: int) -> tuple[int, int] | None:
        return (0, gather_shape(op).slices - 1) if index == 1 else None

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        e = gather_shape(op)
        data = given(inputs[0]).reshape(e.batches, e.outer, e.slices, e.inner)
        indexes = given(inputs[1]).reshape(e.batches, e.indexes)
        found = np.stack([data[b][:, indexes[b]] for b in range(e.batches)])
        return (found.reshape(op.output.shape),)
