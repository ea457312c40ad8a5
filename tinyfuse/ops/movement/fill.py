"""FILL and ZEROS_LIKE: one value everywhere."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyfuse.ir import Array, Op, Tensor
from tinyfuse.ops.core.family import OpFamily, Rule, constant_numbers
from tinyfuse.ops.core.movement import FIXED_SHAPES, Movement, constant_vector, ends, one_dtype


def _bad_dims(op: Op) -> Tensor | None:
    dims = op.operand(0)
    good = constant_vector(dims, len(op.output.shape), ("int8", "int16", "int32", "int64"))
    return None if good and tuple(dims.values.tolist()) == op.output.shape else dims


class FillFamily(Movement):
    """FILL. Inputs: the output's shape, and a scalar. If the scalar is constant, so is the output."""

    kind = "FILL"
    summary = "one value in every element"
    data_input = 1
    rules = (
        ends(2),
        one_dtype(("int8", "int32", "float32"), 1),
        Rule("the value is a scalar", lambda op: op.operand(1) if op.operand(1).shape else None),
        Rule("the dimensions are the output's, a constant", _bad_dims, FIXED_SHAPES),
    )

    def closed_shape(self, op: Op, output: Tensor) -> Sequence[int] | None:
        return constant_numbers(op, 0)

    def views(self, op: Op, data: Array) -> tuple[Array, ...]:
        return (np.broadcast_to(data.reshape(()), op.output.shape),)


class ZerosLikeFamily(OpFamily):
    """ZEROS_LIKE: stored values of 0, whatever the quantization. It has no kernel: rewrite/fold_constants.py replaces
    it by a constant."""

    kind = "ZEROS_LIKE"
    summary = "zeros in the shape of a tensor, as a constant"
    folded = True
    reads_values = False
    rules = (
        ends(1),
        one_dtype(("int8", "int32", "int64", "float32")),
        Rule(
            "input and output have the same shape", lambda op: op.output if op.output.shape != op.input.shape else None
        ),
    )

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        return (np.zeros(op.output.shape, op.output.dtype),)
