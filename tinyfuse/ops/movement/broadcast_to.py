"""BROADCAST_TO and TILE, which repeat a tensor, and BROADCAST_ARGS, which computes the shape to which two shapes
broadcast."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyfuse.ir import Array, Op, Tensor, all_given
from tinyfuse.ops.core.family import OpFamily, Rule, constant_numbers
from tinyfuse.ops.core.movement import FIXED_SHAPES, Movement, constant_vector, ends, ranks

_INDEXES = ("int32", "int64")
_ONE_DTYPE = Rule("input and output have the same dtype", lambda op: op.input.dtype != op.output.dtype)

# --- BROADCAST_TO ----------------------------------------------------------------------------


def _bad_shape(op: Op) -> Tensor | None:
    shape = op.operand(1)
    good = constant_vector(shape, len(op.output.shape), _INDEXES) and tuple(shape.values.tolist()) == op.output.shape
    return None if good else shape


def _broadcasts(op: Op) -> bool:
    """Tell whether every dimension of the input, from the last one, is 1 or the output's."""
    pairs = list(zip(op.input.shape[::-1], op.output.shape[::-1], strict=False))
    return len(pairs) == len(op.input.shape) and all(a in (1, b) for a, b in pairs)


class BroadcastToFamily(Movement):
    """BROADCAST_TO. Inputs: data of any dtype, and the output's shape."""

    kind = "BROADCAST_TO"
    summary = "a tensor repeated along dimensions of size 1, and new ones in front"
    rules = (
        ends(2),
        _ONE_DTYPE,
        Rule("the output has rank 1 to 5", lambda op: op.output if not 1 <= len(op.output.shape) <= 5 else None),
        Rule("the shape is the output's, a constant int32 or int64", _bad_shape, FIXED_SHAPES),
        Rule("the input broadcasts to the output", lambda op: op.input if not _broadcasts(op) else None),
    )

    def closed_shape(self, op: Op, output: Tensor) -> Sequence[int] | None:
        return constant_numbers(op, 1)

    def views(self, op: Op, data: Array) -> tuple[Array, ...]:
        return (np.broadcast_to(data, op.output.shape),)


# --- TILE ------------------------------------------------------------------------------------


def _bad_multiples(op: Op) -> Tensor | None:
    multiples = op.operand(1)
    good = constant_vector(multiples, len(op.input.shape), _INDEXES) and (multiples.values > 0).all()
    return None if good else multiples


def _tiled(op: Op) -> tuple[int, ...]:
    return tuple(dim * times for dim, times in zip(op.input.shape, op.operand(1).values.tolist(), strict=True))


class TileFamily(Movement):
    """TILE. Inputs: data of any dtype, and how often each dimension is repeated."""

    kind = "TILE"
    summary = "a tensor several times, one beside the other along any dimension"
    in_tflm = False
    rules = (
        ends(2),
        _ONE_DTYPE,
        ranks(1, 8),
        Rule("the multiples are constant int32 or int64, one per dimension, from 1", _bad_multiples, FIXED_SHAPES),
        Rule(
            "the output has each of the input's dimensions times its multiple",
            lambda op: op.output if op.output.shape != _tiled(op) else None,
        ),
    )

    def closed_shape(self, op: Op, output: Tensor) -> Sequence[int] | None:
        multiples = constant_numbers(op, 1)
        good = multiples is not None and len(multiples) == len(op.input.shape)
        return [dim * times for dim, times in zip(op.input.shape, multiples or (), strict=True)] if good else None

    def views(self, op: Op, data: Array) -> tuple[Array, ...]:
        times = op.operand(1).values.tolist()
        rank = data.ndim
        repeated = data.reshape([n for dim in data.shape for n in (1, dim)])
        shape = [n for d in range(rank) for n in (times[d], data.shape[d])]
        return (np.broadcast_to(repeated, shape),)


# --- BROADCAST_ARGS --------------------------------------------------------------------------


def _bad_vectors(op: Op) -> Tensor | None:
    length = max(t.elements for t in op.operands)
    shapes = (*((t, (t.elements,)) for t in op.operands), (op.output, (length,)))
    return next((t for t, shape in shapes if t.shape != shape or t.dtype != op.input.dtype), None)


def _unlike(op: Op) -> bool:
    """Tell whether two constant shapes don't broadcast."""
    if not all(t.is_constant for t in op.operands):
        return False
    first, second = _aligned(op, *(t.values for t in op.operands))
    return not ((first == 1) | (second == 1) | (first == second)).all()


def _aligned(op: Op, *shapes: Array) -> list[Array]:
    """The shapes, as long as the output, with dimensions of size 1 in front."""
    return [np.pad(shape, (op.output.elements - shape.size, 0), constant_values=1) for shape in shapes]


class BroadcastArgsFamily(OpFamily):
    """BROADCAST_ARGS, of constant shapes or of shapes computed at run time."""

    kind = "BROADCAST_ARGS"
    summary = "the shape to which two shapes broadcast"
    rules = (
        ends(2),
        Rule("the shapes are int32 or int64", lambda op: op.input if op.input.dtype not in _INDEXES else None),
        Rule("the inputs and the output are vectors of one dtype, the output as long as the longer", _bad_vectors),
        Rule("in every dimension the shapes are equal, or one of them is 1", _unlike),
    )

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        first, second = _aligned(op, *all_given(inputs))
        return (np.where(first == 1, second, first),)

    def tried(self, op: Op, index: int) -> tuple[Array, ...]:
        """Shapes that `verify` tries for a computed operand: they broadcast with the constant operand, or with each
        other."""
        tensor, other = op.operand(index), op.operand(1 - index)
        if tensor.is_constant:
            return ()
        known = other.values if other.is_constant else np.arange(1 + other.elements, 1, -1)
        more = max(0, tensor.elements - other.elements)
        like = np.concatenate([np.arange(more, 0, -1) + 1 + other.elements, known])[-tensor.elements :]
        ones = np.arange(tensor.elements) % 2 == 0
        return tuple(v.astype(tensor.dtype) for v in (like, np.where(ones, 1, like), np.where(ones, like, 1)))
