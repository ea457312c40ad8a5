"""SPLIT, SPLIT_V and UNPACK: one input cut along a dimension into several outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from tinyfuse.ir import Array, Op, Tensor
from tinyfuse.ops.core.family import Rule
from tinyfuse.ops.core.movement import Movement, axis_of, constant_axis, one_dtype
from tinyfuse.ops.core.permute import Order, with_constant

_DTYPES = ("int8", "int16", "int32", "float32")


def _pieces(data: Array, axis: int, counts: list[int]) -> tuple[Array, ...]:
    """Consecutive views of an array along `axis`, with `counts` indexes each."""
    return tuple(np.split(data, list(accumulate(counts))[:-1], axis))


class _Split(Movement):
    """Base of SPLIT and SPLIT_V. The axis is a constant input; the outputs' shapes give the sizes of the parts."""

    axis_input: int
    count_inputs: int

    def __init__(self) -> None:
        super().__init__()
        source, axis = self.data_input, self.axis_input
        text = "two inputs" if self.count_inputs == 2 else "three inputs"
        self.rules = (
            Rule(
                f"{text} and an output",
                lambda op: len(op.inputs) != self.count_inputs or None in op.inputs or not op.outputs,
            ),
            one_dtype(_DTYPES, source),
            Rule(
                "the axis is a constant int32, a dimension of the input",
                lambda op: None if constant_axis(op.operand(axis), len(op.operand(source).shape)) else op.operand(axis),
            ),
            Rule("the outputs are the input, cut along the axis", self._bad_shapes),
        )

    def _axis(self, op: Op) -> int:
        return axis_of(op.operand(self.axis_input), len(op.operand(self.data_input).shape))

    def _bad_shapes(self, op: Op) -> Tensor | bool | None:
        shape, axis = op.operand(self.data_input).shape, self._axis(op)
        for output in op.outputs:
            same_rank = len(output.shape) == len(shape)
            if not same_rank or output.shape != (*shape[:axis], output.shape[axis], *shape[axis + 1 :]):
                return output
        return sum(output.shape[axis] for output in op.outputs) != shape[axis]

    def views(self, op: Op, data: Array) -> tuple[Array, ...]:
        axis = self._axis(op)
        return _pieces(data, axis, [output.shape[axis] for output in op.outputs])

    def permuted(self, op: Op, order: Order) -> Op | None:
        axis = op.operand(self.axis_input)
        return with_constant(op, self.axis_input, np.full(axis.shape, order.index(self._axis(op)), np.int32))


class SplitFamily(_Split):
    """SPLIT: cuts a tensor into equal parts along the axis."""

    kind = "SPLIT"
    summary = "equal parts along a dimension"
    data_input, axis_input, count_inputs = 1, 0, 2

    def __init__(self) -> None:
        super().__init__()
        differs = Rule(
            "the outputs have the same shape",
            lambda op: next((t for t in op.outputs if t.shape != op.output.shape), None),
        )
        self.rules = (*self.rules, differs)


class SplitVFamily(_Split):
    """SPLIT_V: cuts a tensor into parts of any size along the axis. TFLM takes the sizes from the outputs' shapes and
    ignores the input that gives them."""

    kind = "SPLIT_V"
    summary = "parts of any size along a dimension"
    data_input, axis_input, count_inputs = 0, 2, 3


# --- UNPACK ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Unpack:
    """Attributes of UNPACK: `num`, the number of outputs, and `axis`, the dimension that is dropped, counted from the
    end if negative."""

    num: int = 0
    axis: int = 0


def _bad_unpacking(op: Op) -> Tensor | bool | None:
    shape = op.input.shape
    axis = op.attributes_as(Unpack).axis % len(shape)
    if not op.attributes_as(Unpack).num == len(op.outputs) == shape[axis]:
        return True
    rest = (*shape[:axis], *shape[axis + 1 :])
    return next((t for t in op.outputs if t.shape != rest), None)


class UnpackFamily(Movement):
    """UNPACK: one output per index of the axis, without that dimension."""

    kind = "UNPACK"
    options_table = "UnpackOptions"
    summary = "every index of a dimension as an output"
    rules = (
        Rule("one input and an output", lambda op: len(op.inputs) != 1 or None in op.inputs or not op.outputs),
        one_dtype(_DTYPES),
        Rule(
            "the axis is one of the input's",
            lambda op: not -len(op.input.shape) <= op.attributes_as(Unpack).axis < len(op.input.shape),
        ),
        Rule("one output per index of the axis, each with the input's other dimensions", _bad_unpacking),
    )

    def attributes(self, options: Mapping[str, Any]) -> Unpack:
        return Unpack(options.get("num", 0), options.get("axis", 0))

    def views(self, op: Op, data: Array) -> tuple[Array, ...]:
        return _pieces(data, op.attributes_as(Unpack).axis % data.ndim, [1] * len(op.outputs))
