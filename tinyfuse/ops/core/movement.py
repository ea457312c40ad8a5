"""Base of operators that only move elements: every output is a view of the input.

A numpy view has a start, and a step along every dimension. The reference copies the view; the C needs only its start
and steps (tinyfuse/kernels/movement/copies.py). So an operator's file states once, in numpy, where its elements come
from.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from itertools import accumulate
from math import prod

import numpy as np

from tinyfuse.ir import Array, Op, Tensor, given
from tinyfuse.ops.core.family import OpFamily, Part, Rule
from tinyfuse.ops.core.walk import walk_of


class Movement(OpFamily):
    """Base of operators whose outputs consist of elements of input `data_input`, unchanged."""

    data_input: int = 0

    @abstractmethod
    def views(self, op: Op, data: Array) -> tuple[Array, ...]:
        """Return, for each output, the view of `data` (the input, in its shape) with the output's elements in order.

        The view's shape may differ from the output's.
        """

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        views = self.views(op, np.ascontiguousarray(given(inputs[self.data_input])))
        return tuple(np.ascontiguousarray(view).reshape(t.shape) for view, t in zip(views, op.outputs, strict=True))

    def moves(self, op: Op) -> tuple[int, ...]:
        return (self.data_input,)

    def parts(self, op: Op) -> tuple[Part, ...]:
        source = op.operand(self.data_input)
        data = np.empty(source.shape, source.dtype)  # its memory is never touched
        walks = [walk_of(view, data) for view in self.views(op, data)]
        if not all(walk.in_order for walk in walks):
            return ()
        return tuple(Part(output, source, walk.start) for output, walk in zip(op.outputs, walks, strict=True))


def side_by_side(op: Op, axis: int) -> tuple[Part, ...]:
    """`OpFamily.parts` of an operator whose output is its inputs joined along dimension `axis`: each input is one piece
    if every dimension before `axis` is 1."""
    if prod(op.output.shape[:axis]) != 1:
        return ()
    ends = accumulate(tensor.bytes for tensor in op.operands)
    return tuple(Part(tensor, op.output, end - tensor.bytes) for tensor, end in zip(op.operands, ends, strict=True))


# --- rules -----------------------------------------------------------------------------------

#: hint for an operand that gives a shape and is not constant
FIXED_SHAPES = "convert the model with fixed shapes: what gives a shape must follow from constants"


def ends(inputs: int) -> Rule:
    """Rule that the operator has `inputs` inputs, none omitted, and one output."""
    number = {1: "one input", 2: "two inputs", 3: "three inputs", 4: "four inputs"}[inputs]
    return Rule(
        f"{number} and one output",
        lambda op: len(op.inputs) != inputs or len(op.outputs) != 1 or None in op.inputs,
    )


def one_dtype(dtypes: tuple[str, ...], data_input: int = 0) -> Rule:
    """Rule that input `data_input` and every output have the same dtype, one of `dtypes`, which are those that TFLM
    moves."""

    def broken(op: Op) -> Tensor | None:
        data = op.operand(data_input)
        if data.dtype not in dtypes:
            return data
        return next((t for t in op.outputs if t.dtype != data.dtype), None)

    return Rule(
        f"input and output have the same dtype, one of {', '.join(dtypes)}",
        broken,
        "TensorFlow Lite Micro moves no others; quantize the model to int8",
        of_kernel=True,
    )


def ranks(low: int, high: int, data_input: int = 0) -> Rule:
    """Rule that the rank of input `data_input` is from `low` to `high`."""
    text = f"the input has rank {low}" if low == high else f"the input has rank {low} to {high}"
    return Rule(text, lambda op: None if low <= len(op.operand(data_input).shape) <= high else op.operand(data_input))


def shape_constant(computed: Tensor, result: Tensor) -> Tensor:
    """Constant with the shape of `result`, which replaces `computed`: an operand that a run computes and TFLM never
    reads."""
    data = np.array(result.shape, np.int32)
    data.setflags(write=False)
    return replace(computed, dtype="int32", shape=data.shape, quant=None, data=data, index=-1)


def constant_vector(tensor: Tensor, length: int, dtypes: tuple[str, ...] = ("int32",)) -> bool:
    """Tell whether a tensor is a constant [length] of one of the dtypes."""
    return tensor.is_constant and tensor.shape == (length,) and tensor.dtype in dtypes


def constant_axis(tensor: Tensor, rank: int) -> bool:
    """Tell whether a tensor is one constant int32 that names a dimension of `rank` (negative: from the end)."""
    single = tensor.is_constant and tensor.dtype == "int32" and tensor.elements == 1
    return single and -rank <= int(tensor.values.reshape(-1)[0]) < rank


def axis_of(tensor: Tensor, rank: int) -> int:
    """Index of the dimension that an operand names if `constant_axis` accepts it; counted from 0."""
    return int(tensor.values.reshape(-1)[0]) % rank
