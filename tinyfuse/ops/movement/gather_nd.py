"""GATHER_ND: selects elements or slices of a tensor by vectors of indexes."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from tinyfuse.ir import Array, Op, Tensor, given
from tinyfuse.ops.core.family import OpFamily, Rule
from tinyfuse.ops.core.movement import ends, one_dtype

#: the most indexes in a vector
MOST_INDEXES = 5


@dataclass(frozen=True)
class Places:
    """Slices of a tensor of `size` elements that index vectors select: `count` vectors of `indexes` numbers; `steps`:
    by how many elements an increment of each number moves the slice; `slice`: elements of a slice."""

    count: int
    indexes: int
    steps: tuple[int, ...]
    slice: int
    size: int

    def starts(self, indexes: Array) -> Array:
        """Index of the first element of every slice, int64 [count]."""
        found: Array = indexes.reshape(self.count, self.indexes).astype(np.int64) @ np.array(self.steps, np.int64)
        return found

    def inside(self, indexes: Array) -> bool:
        """Tell whether every slice is inside the tensor."""
        starts = self.starts(indexes)
        return bool(((starts >= 0) & (starts <= self.size - self.slice)).all())


def places_in(shape: tuple[int, ...], indexes: Tensor) -> Places:
    """Return the places in a tensor of shape `shape` that `indexes`, [.., indexes of one place], point to."""
    *outer, depth = indexes.shape
    steps = tuple(prod(shape[d + 1 :]) for d in range(depth))
    return Places(prod(outer), depth, steps, prod(shape[depth:]), prod(shape))


def bad_depth(shape: tuple[int, ...], indexes: Tensor) -> bool:
    """Tell whether an index tuple is longer than the tensor's rank, or than the C supports."""
    return not indexes.shape or not 1 <= indexes.shape[-1] <= min(len(shape), MOST_INDEXES)


def _bad_shape(op: Op) -> Tensor | None:
    data, indexes = op.operand(0).shape, op.operand(1).shape
    return None if op.output.shape == (*indexes[:-1], *data[indexes[-1] :]) else op.output


def _bad_index(op: Op) -> Tensor | None:
    indexes = op.operand(1)
    return indexes if indexes.is_constant and not places_in(op.input.shape, indexes).inside(indexes.values) else None


class GatherNdFamily(OpFamily):
    """GATHER_ND.

    As in TFLM, only the resulting place in the whole tensor is checked: an index beyond its own dimension may lead into
    the next. A computed index outside the tensor ends the run with an error.
    """

    kind = "GATHER_ND"
    summary = "elements or slices, picked by vectors of indexes"
    rules = (
        ends(2),
        one_dtype(("int8", "float32")),
        Rule("the indexes are int32", lambda op: op.operand(1) if op.operand(1).dtype != "int32" else None),
        Rule(
            f"the indexes' last dimension is from 1 to {MOST_INDEXES} and at most the data's rank",
            lambda op: op.operand(1) if bad_depth(op.input.shape, op.operand(1)) else None,
        ),
        Rule("the output has the indexes' other dimensions, and those of the data that are not indexed", _bad_shape),
        Rule("constant indexes are inside the data", _bad_index),
    )

    def indexes(self, op: Op, index: int) -> tuple[int, int] | None:
        return (0, min(op.input.shape[: op.operand(1).shape[-1]]) - 1) if index == 1 else None

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        places = places_in(op.input.shape, op.operand(1))
        starts = places.starts(given(inputs[1]))
        found = given(inputs[0]).reshape(-1)[starts[:, np.newaxis] + np.arange(places.slice)]
        return (found.reshape(op.output.shape),)
