"""Comparisons, whose result is bool, and logic on bool tensors."""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import Array, Op, Tensor, given
from tinyfuse.ir.fixedpoint import multiply_by_quantized_multiplier
from tinyfuse.ops.core.binary import COMPARISON_SHIFT, comparison_multipliers
from tinyfuse.ops.core.family import SAME_ROW, OpFamily, RowWindow, Rule
from tinyfuse.ops.core.unary import ONE_INPUT, ONE_SHAPE
from tinyfuse.ops.elementwise.elementwise import SHAPE_RULES, TWO_INPUTS, BinaryFamily, bad_quantization


def _scale_from_one(op: Op) -> Tensor | None:
    return next((t for t in op.operands if t.dtype == "int8" and t.scale >= 1), None)


class Comparison(BinaryFamily):
    """int8 operands less their zero points, shifted left by 8, are multiplied by their scales, rounded,
    and compared: values that are close, or tiny, may come out equal. Others as they are."""

    def __init__(self, kind: str, sign: str, compare: np.ufunc, *more: str) -> None:
        """`more`: dtypes besides those that all comparisons take."""
        self.kind, self.summary = kind, f"a {sign} b, with broadcasting"
        self._compare = compare
        self.dtypes = ("int8", "int32", "int64", "float32", *more)
        self.rules = (
            TWO_INPUTS,
            Rule(
                f"inputs have the same dtype, one of {', '.join(self.dtypes)}",
                lambda op: next(
                    (t for t in op.operands if t.dtype not in self.dtypes or t.dtype != op.input.dtype), None
                ),
                "TensorFlow Lite Micro compares no others",
            ),
            Rule("the output is bool", lambda op: op.output if op.output.dtype != "bool" else None),
            Rule("int8 inputs are each quantized by one scale and one zero point", bad_quantization),
            Rule("int8 inputs' scales are below 1", _scale_from_one, "TensorFlow Lite Micro refuses it too"),
            *SHAPE_RULES,
        )

    def function(self, op: Op, a: Array, b: Array) -> Array:
        if op.operand(0).dtype == "int8":
            a, b = (
                multiply_by_quantized_multiplier(
                    (data.astype(np.int64) - tensor.zero_point) << COMPARISON_SHIFT, *multiplier
                )
                for data, tensor, multiplier in zip((a, b), op.operands, comparison_multipliers(op), strict=True)
            )
        found: Array = self._compare(a, b)
        return found


COMPARISONS = (
    Comparison("EQUAL", "=", np.equal, "bool"),
    Comparison("NOT_EQUAL", "!=", np.not_equal, "bool"),
    Comparison("GREATER", ">", np.greater),
    Comparison("GREATER_EQUAL", ">=", np.greater_equal),
    Comparison("LESS", "<", np.less),
    Comparison("LESS_EQUAL", "<=", np.less_equal),
)

_BOOL = Rule(
    "inputs and output are bool",
    lambda op: next((t for t in (*op.operands, op.output) if t.dtype != "bool"), None),
    "TensorFlow Lite has this operator for bool alone",
)


class LogicalAndFamily(BinaryFamily):
    """LOGICAL_AND: bool operands that broadcast -> bool."""

    kind = "LOGICAL_AND"
    commutes = True
    summary = "whether both are true, with broadcasting"
    rules = (TWO_INPUTS, _BOOL, *SHAPE_RULES)

    def function(self, op: Op, a: Array, b: Array) -> Array:
        return a & b


class LogicalOrFamily(BinaryFamily):
    """LOGICAL_OR: bool operands that broadcast -> bool."""

    kind = "LOGICAL_OR"
    commutes = True
    summary = "whether one of both is true, with broadcasting"
    rules = (TWO_INPUTS, _BOOL, *SHAPE_RULES)

    def function(self, op: Op, a: Array, b: Array) -> Array:
        return a | b


class LogicalNotFamily(OpFamily):
    """LOGICAL_NOT: bool -> bool of the same shape."""

    kind = "LOGICAL_NOT"
    elementwise = True
    rows_alike = True
    summary = "whether it is false"
    rules = (ONE_INPUT, _BOOL, ONE_SHAPE)

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        return (~given(inputs[0]),)

    def row_window(self, op: Op, index: int) -> RowWindow | None:
        return SAME_ROW if op.output.is_image else None
