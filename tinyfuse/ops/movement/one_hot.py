"""ONE_HOT: turns each index into a vector with one value at the index and another value elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tinyfuse.ir import Array, Op, Tensor, given
from tinyfuse.ops.core.family import OpFamily, Rule
from tinyfuse.ops.core.movement import FIXED_SHAPES, ends, one_dtype


@dataclass(frozen=True)
class OneHot:
    """Attributes of ONE_HOT: `axis`, the new dimension; -1 is the last one."""

    axis: int = 0


def one_hot_axis(op: Op) -> int:
    """The new dimension of the output, from 0."""
    axis = op.attributes_as(OneHot).axis
    return len(op.input.shape) if axis == -1 else axis


def _bad_depth(op: Op) -> Tensor | None:
    depth = op.operand(1)
    good = depth.is_constant and depth.dtype == "int32" and depth.elements == 1
    return None if good and depth.values.reshape(-1)[0] > 0 else depth


def _bad_shape(op: Op) -> Tensor | None:
    shape, axis = op.input.shape, one_hot_axis(op)
    depth = int(op.operand(1).values.reshape(-1)[0])
    return None if op.output.shape == (*shape[:axis], depth, *shape[axis:]) else op.output


class OneHotFamily(OpFamily):
    """ONE_HOT. Inputs: indexes, the length of the vectors, the value at the index, and the value elsewhere. For an
    index outside the vector, all values are the latter."""

    kind = "ONE_HOT"
    options_table = "OneHotOptions"
    summary = "indexes as vectors of one value, but for the place of the index"
    in_tflm = False
    rules = (
        ends(4),
        one_dtype(("bool", "int8", "uint8", "int32", "int64", "float32"), 2),
        Rule(
            "the indexes are int32 or int64",
            lambda op: op.input if op.input.dtype not in ("int32", "int64") else None,
        ),
        Rule(
            "both values have one element, and the output's dtype",
            lambda op: next((t for t in op.operands[2:] if t.elements != 1 or t.dtype != op.output.dtype), None),
        ),
        Rule("the depth is one constant int32 from 1", _bad_depth, FIXED_SHAPES),
        Rule(
            "the axis is -1 or one of the output's",
            lambda op: not -1 <= op.attributes_as(OneHot).axis <= len(op.input.shape),
        ),
        Rule("the output has the indexes' dimensions, and the depth at the axis", _bad_shape),
    )

    def attributes(self, options: Mapping[str, Any]) -> OneHot:
        return OneHot(options.get("axis", 0))

    def indexes(self, op: Op, index: int) -> tuple[int, int] | None:
        return (-1, op.output.shape[one_hot_axis(op)]) if index == 0 else None

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        indexes, _, hot, cold = inputs
        axis = one_hot_axis(op)
        places = np.arange(op.output.shape[axis]).reshape(-1, *[1] * (len(op.input.shape) - axis))
        is_hot = np.expand_dims(given(indexes), axis) == places
        return (np.where(is_hot, given(hot).reshape(()), given(cold).reshape(())),)
