"""REVERSE_V2: dimensions backwards."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyfuse.ir import Array, Op, Tensor
from tinyfuse.ops.core.axes import AlongAxes, AxesOperand
from tinyfuse.ops.core.family import Rule
from tinyfuse.ops.core.movement import Movement, constant_vector, ends, one_dtype, ranks


def _axes(op: Op) -> list[int]:
    """The dimensions to reverse, from 0, in order; those that the input lacks are left below 0 or beyond its rank."""
    rank = len(op.input.shape)
    return sorted(int(axis) + rank if axis < 0 else int(axis) for axis in op.operand(1).values)


def _bad_axes(op: Op) -> Tensor | None:
    axes, rank = op.operand(1), len(op.input.shape)
    if not constant_vector(axes, axes.elements):
        return axes
    found = _axes(op)
    return None if _neighbours(found) and found[0] >= 0 and found[-1] < rank else axes


def _neighbours(axes: Sequence[int]) -> bool:
    return list(axes) == list(range(axes[0], axes[-1] + 1))


def _shape_along(op: Op, axes: tuple[int, ...]) -> tuple[int, ...] | None:
    return op.input.shape if len(axes) == op.operand(1).elements and _neighbours(axes) else None


_AXES = AxesOperand(_shape_along, several=True)


class ReverseV2Family(Movement, AlongAxes):
    """REVERSE_V2. Inputs: data of rank 1 to 6, and the dimensions to reverse."""

    kind = "REVERSE_V2"
    axes = _AXES
    summary = "dimensions backwards"
    rules = (
        ends(2),
        one_dtype(("bool", "int8", "uint8", "int16", "int32", "int64", "float32")),
        ranks(1, 6),
        *_AXES.rules(
            Rule(
                "the axes are int32, dimensions of the input without one between them",
                _bad_axes,
                "TensorFlow Lite Micro takes no others; reverse one dimension after the other",
            )
        ),
        Rule(
            "input and output have the same shape", lambda op: op.output if op.output.shape != op.input.shape else None
        ),
    )

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        return super().reference(_AXES.chosen(op, inputs[1]), *inputs)

    def views(self, op: Op, data: Array) -> tuple[Array, ...]:
        return (np.flip(data, tuple(_axes(op))),)
