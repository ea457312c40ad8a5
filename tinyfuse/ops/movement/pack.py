"""PACK: inputs of one shape side by side along a new dimension."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tinyfuse.ir import Array, Op, Tensor, all_given
from tinyfuse.ops.core.family import OpFamily, Part, Rule
from tinyfuse.ops.core.movement import one_dtype, side_by_side


@dataclass(frozen=True)
class Pack:
    """Attributes of PACK. values_count: number of inputs; axis: the new dimension, counted from the output's end if
    negative."""

    values_count: int = 0
    axis: int = 0


def _bad_shape(op: Op) -> Tensor | None:
    shape, axis = op.input.shape, op.attributes_as(Pack).axis % len(op.output.shape)
    differs = next((t for t in op.operands if t.shape != shape or t.dtype != op.output.dtype), None)
    if differs is not None:
        return differs
    packed = (*shape[:axis], len(op.inputs), *shape[axis:])
    return None if op.output.shape == packed else op.output


class PackFamily(OpFamily):
    """PACK: tensors of the same shape and dtype -> a tensor with one more dimension, with an index per input."""

    kind = "PACK"
    options_table = "PackOptions"
    summary = "tensors side by side along a new dimension"
    rules = (
        Rule("inputs and one output", lambda op: not op.inputs or None in op.inputs or len(op.outputs) != 1),
        one_dtype(("int8", "int16", "int32", "int64", "float32")),
        Rule(
            "the number of values is that of the inputs",
            lambda op: op.attributes_as(Pack).values_count != len(op.inputs),
        ),
        Rule(
            "the axis is one of the output's",
            lambda op: not -len(op.output.shape) <= op.attributes_as(Pack).axis < len(op.output.shape),
        ),
        Rule(
            "the inputs have the same shape and dtype; the output has one more dimension, with an index per input",
            _bad_shape,
        ),
    )

    def attributes(self, options: Mapping[str, Any]) -> Pack:
        return Pack(options.get("values_count", 0), options.get("axis", 0))

    def moves(self, op: Op) -> tuple[int, ...]:
        return tuple(range(len(op.inputs)))

    def parts(self, op: Op) -> tuple[Part, ...]:
        return side_by_side(op, op.attributes_as(Pack).axis % len(op.output.shape))

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        return (np.stack(all_given(inputs), axis=op.attributes_as(Pack).axis),)
