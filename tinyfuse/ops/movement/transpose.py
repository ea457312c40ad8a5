"""TRANSPOSE: the dimensions in another order."""

from __future__ import annotations

from collections.abc import Sequence

from tinyfuse.ir import Array, Op, Tensor
from tinyfuse.ops.core.family import Rule, constant_numbers
from tinyfuse.ops.core.movement import Movement, constant_vector, ends, one_dtype, ranks

#: dtypes that TFLM transposes
DTYPES = ("int8", "int16", "float32")


def permutation(op: Op) -> tuple[int, ...]:
    """Return, for each output dimension, the index of the input dimension that becomes it."""
    return tuple(op.operand(1).values.tolist())


def _bad_permutation(op: Op) -> Tensor | None:
    rank = len(op.input.shape)
    good = constant_vector(op.operand(1), rank) and sorted(permutation(op)) == list(range(rank))
    return None if good else op.operand(1)


class TransposeFamily(Movement):
    """TRANSPOSE. Inputs: data of rank 1 to 5, and the order of the dimensions, a constant int32 [rank]."""

    kind = "TRANSPOSE"
    summary = "the dimensions in another order"
    transposes = True
    rules = (
        ends(2),
        one_dtype(DTYPES),
        ranks(1, 5),
        Rule("the permutation is constant int32 and holds every dimension once", _bad_permutation),
        Rule(
            "the output has the permuted shape",
            lambda op: op.output if op.output.shape != tuple(op.input.shape[d] for d in permutation(op)) else None,
        ),
    )

    def closed_shape(self, op: Op, output: Tensor) -> Sequence[int] | None:
        order = constant_numbers(op, 1)
        if order is None or sorted(order) != list(range(len(op.input.shape))):
            return None
        return [op.input.shape[axis] for axis in order]

    def views(self, op: Op, data: Array) -> tuple[Array, ...]:
        return (data.transpose(permutation(op)),)
