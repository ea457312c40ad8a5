"""DYNAMIC_UPDATE_SLICE: copies a tensor and overwrites a part of it with another tensor, from a start index on."""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import Array, Op, Tensor, all_given
from tinyfuse.ops.core.family import OpFamily, Rule
from tinyfuse.ops.core.movement import ends, one_dtype, ranks

#: dimensions of the tensor, at most
MOST_DIMENSIONS = 6


def _bad_update(op: Op) -> Tensor | None:
    update, shape = op.operand(1), op.input.shape
    fits = len(update.shape) == len(shape) and all(a <= b for a, b in zip(update.shape, shape, strict=True))
    return None if fits and update.dtype == op.input.dtype else update


def _bad_starts(op: Op) -> Tensor | None:
    starts = op.operand(2)
    return None if starts.dtype in ("int32", "int64") and starts.shape == (len(op.input.shape),) else starts


def with_part(data: Array, update: Array, starts: Array) -> Array:
    """A copy of the data with the update in it, from the starts on, moved inside where they must be."""
    room = np.array(data.shape) - update.shape
    first = np.clip(starts.astype(np.int64), 0, room)
    result = data.copy()
    result[tuple(slice(at, at + dim) for at, dim in zip(first, update.shape, strict=True))] = update
    return result


class DynamicUpdateSliceFamily(OpFamily):
    """DYNAMIC_UPDATE_SLICE. Inputs: a tensor of rank 1 to 6; the update, of the same rank and in no dimension larger;
    and the start indexes, int32 or int64 [rank]. A start below 0, or so large that the update would end outside, is
    moved inside, dimension by dimension."""

    kind = "DYNAMIC_UPDATE_SLICE"
    summary = "a tensor with a part replaced, at a place computed at run time"
    rules = (
        ends(3),
        one_dtype(("int8", "int16", "int32", "float32")),
        ranks(1, MOST_DIMENSIONS),
        Rule("the update has the input's dtype and rank, and no larger dimension", _bad_update),
        Rule("the starts are int32 or int64, one per dimension", _bad_starts),
        Rule(
            "input and output have the same shape", lambda op: op.output if op.output.shape != op.input.shape else None
        ),
    )

    def indexes(self, op: Op, index: int) -> tuple[int, int] | None:
        return (-1, max(op.input.shape)) if index == 2 else None

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        return (with_part(*all_given(inputs)),)
