"""SCATTER_ND: adds elements, or slices, to a tensor of zeros at the places given by index vectors."""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import Array, Op, Tensor, given
from tinyfuse.ops.core.family import OpFamily, Rule
from tinyfuse.ops.core.movement import FIXED_SHAPES, constant_vector, ends, one_dtype
from tinyfuse.ops.movement.gather_nd import MOST_INDEXES, bad_depth, places_in


def _bad_shape(op: Op) -> Tensor | None:
    shape = op.operand(2)
    good = constant_vector(shape, len(op.output.shape)) and tuple(shape.values.tolist()) == op.output.shape
    return None if good else shape


def _bad_updates(op: Op) -> Tensor | None:
    indexes, updates = op.operand(0).shape, op.operand(1)
    return None if updates.shape == (*indexes[:-1], *op.output.shape[indexes[-1] :]) else updates


def _bad_index(op: Op) -> Tensor | None:
    indexes = op.operand(0)
    if not indexes.is_constant:
        return None
    inside = (indexes.values >= 0) & (indexes.values < op.output.shape[: indexes.shape[-1]])
    return None if inside.all() else indexes


class ScatterNdFamily(OpFamily):
    """SCATTER_ND. Inputs: indexes int32, updates, which are added in this order, and the output's shape. Integers wrap;
    bools are combined by or. An index outside the output that is computed at run time ends the run with an error."""

    kind = "SCATTER_ND"
    summary = "elements or slices added up where vectors of indexes say, zeros elsewhere"
    in_tflm = False
    rules = (
        ends(3),
        one_dtype(("bool", "int8", "uint8", "int32", "int64", "float32"), 1),
        Rule("the indexes are int32", lambda op: op.input if op.input.dtype != "int32" else None),
        Rule("the shape is the output's, a constant int32", _bad_shape, FIXED_SHAPES),
        Rule(
            f"the indexes' last dimension is from 1 to {MOST_INDEXES} and at most the output's rank",
            lambda op: op.input if bad_depth(op.output.shape, op.input) else None,
        ),
        Rule("the updates have rank 1 or more", lambda op: op.operand(1) if not op.operand(1).shape else None),
        Rule("the updates have the indexes' other dimensions, and the output's that are not indexed", _bad_updates),
        Rule("constant indexes are inside the output", _bad_index),
    )

    def indexes(self, op: Op, index: int) -> tuple[int, int] | None:
        return (0, min(op.output.shape[: op.input.shape[-1]]) - 1) if index == 0 else None

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        places = places_in(op.output.shape, op.input)
        starts = places.starts(given(inputs[0]))
        result = np.zeros(op.output.elements, op.output.dtype)
        with np.errstate(over="ignore", invalid="ignore"):  # as in C: floats become infinite or NaN
            np.add.at(result, starts[:, None] + np.arange(places.slice), given(inputs[1]).reshape(places.count, -1))
        return (result.reshape(op.output.shape),)
