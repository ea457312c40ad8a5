"""Elementwise operators of two inputs with broadcasting: ADD, SUB, MUL, MAXIMUM, MINIMUM,
SQUARED_DIFFERENCE, PRELU. Operands may be constants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tinyfuse.ir import Array, Int64s, Op, Tensor, all_given
from tinyfuse.ir.fixedpoint import clamp, multiply_by_quantized_multiplier
from tinyfuse.ops.base import SAME_ROW, OpFamily, RowWindow, Rule
from tinyfuse.ops.binary import (
    ADD_SHIFT,
    MOST_LOOPS,
    SQUARED_DIFFERENCE_SHIFT,
    Binary,
    Multiplier,
    add_multipliers,
    broadcast_loops,
    mul_multiplier,
    prelu_multipliers,
    squared_difference_multipliers,
)
from tinyfuse.ops.convolution import ACTIVATIONS, clamp_range

# --- rules -----------------------------------------------------------------------------------


def _bad_shapes(op: Op) -> Tensor | None:
    try:
        shape = np.broadcast_shapes(op.operand(0).shape, op.operand(1).shape)
    except ValueError:
        return op.operand(1)
    return None if shape == op.output.shape and op.output.elements > 0 else op.output


def _too_many_loops(op: Op) -> bool:
    return len(broadcast_loops(op.output.shape, op.operand(0).shape, op.operand(1).shape).dims) > MOST_LOOPS


def _not_int8(op: Op) -> Tensor | None:
    return next((t for t in (*op.operands, op.output) if t.dtype != "int8"), None)


def _not_int8_or_int32(op: Op) -> Tensor | None:
    wanted = op.output.dtype if op.output.dtype in ("int8", "int32") else "int8"
    return next((t for t in (*op.operands, op.output) if t.dtype != wanted), None)


def bad_quantization(op: Op) -> Tensor | None:
    """The first int8 tensor that has not exactly one scale and zero point."""
    tensors = (t for t in (*op.operands, *op.outputs) if t.dtype == "int8")
    return next((t for t in tensors if t.quant is None or t.quant.per_channel), None)


TWO_INPUTS = Rule(
    "two inputs and one output", lambda op: len(op.inputs) != 2 or len(op.outputs) != 1 or None in op.inputs
)
SHAPE_RULES = (
    Rule("the inputs' shapes broadcast to the output's", _bad_shapes),
    Rule(
        f"at most {MOST_LOOPS} loops walk over both inputs (dimensions that are broadcast alike are one)",
        _too_many_loops,
    ),
)
_HINT_INT8 = "quantize the model to int8 (full integer quantization)"
_INT8_RULES = (
    TWO_INPUTS,
    Rule("inputs and output are int8", _not_int8, _HINT_INT8),
    Rule("inputs and output have one scale and one zero point", bad_quantization),
    *SHAPE_RULES,
)
_INT8_OR_INT32 = Rule("inputs and output are int8, or all int32", _not_int8_or_int32, _HINT_INT8)
_ARITHMETIC_RULES = (
    TWO_INPUTS,
    _INT8_OR_INT32,
    Rule("int8 inputs and output have one scale and one zero point", bad_quantization),
    *SHAPE_RULES,
    Rule(
        f"the fused activation is one of {', '.join(ACTIVATIONS)}",
        lambda op: op.attributes_as(Binary).activation not in ACTIVATIONS,
    ),
    Rule(
        "int32 has no fused activation",
        lambda op: op.output.dtype == "int32" and op.attributes_as(Binary).activation != "NONE",
        "TensorFlow Lite Micro leaves it out in some operators",
    ),
)

# --- families --------------------------------------------------------------------------------


class BinaryOperator(OpFamily):
    """Elementwise: streams by rows, works in place on an operand that is not repeated."""

    def row_window(self, op: Op, index: int) -> RowWindow | None:
        if not (op.output.is_image and op.operand(index).is_image):
            return None
        # a single row is read for every row of the output
        return SAME_ROW if op.operand(index).shape[1] == op.output.shape[1] else RowWindow(1, stride=0)

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        return (self.function(op, *all_given(inputs)),)

    def function(self, op: Op, a: Array, b: Array) -> Array:
        """The stored results of stored operands, which broadcast."""
        raise NotImplementedError


def _scaled(op: Op, a: Array, b: Array, shift: int, multipliers: tuple[Multiplier, ...]) -> list[Int64s]:
    """Both operands less their zero points, shifted left and rescaled to twice the larger scale."""
    return [
        multiply_by_quantized_multiplier((data.astype(np.int64) - tensor.zero_point) << shift, *multiplier)
        for data, tensor, multiplier in zip((a, b), op.operands, multipliers, strict=False)
    ]


class _Arithmetic(BinaryOperator):
    """ADD, SUB and MUL: int8 with a fused activation, and int32, which wraps (arithmetic on shapes)."""

    affine = True

    def attributes(self, options: Mapping[str, Any]) -> Binary:
        return Binary(options.get("fused_activation_function", "NONE"))

    def function(self, op: Op, a: Array, b: Array) -> Array:
        if op.output.dtype == "int32":
            return self.exact(a.astype(np.int64), b.astype(np.int64)).astype(np.int32)
        return clamp(self.rescaled(op, a, b) + op.output.zero_point, *clamp_range(op))

    def exact(self, a: Array, b: Array) -> Array:
        """Of integers, without overflow."""
        raise NotImplementedError

    def rescaled(self, op: Op, a: Array, b: Array) -> Array:
        """Of stored int8 values, in units of the output's scale."""
        raise NotImplementedError


_SUM_RULE = Rule(
    "the output's scale is above 2^-19 times the larger input scale",
    lambda op: op.output.dtype == "int8" and add_multipliers(op)[2][1] > 0,
    "such a sum would overflow in TensorFlow Lite Micro too",
)


class AddOperator(_Arithmetic):
    """Both operands are shifted left by 20, rescaled to twice the larger scale and added; the sum is
    rescaled to the output (TFLM, reference/integer_ops/add.h)."""

    kind = "ADD"
    options_table = "AddOptions"
    summary = "a + b, with broadcasting"
    rules = (*_ARITHMETIC_RULES, _SUM_RULE)

    def exact(self, a: Array, b: Array) -> Array:
        return a + b

    def rescaled(self, op: Op, a: Array, b: Array) -> Array:
        multipliers = add_multipliers(op)
        x, y = _scaled(op, a, b, ADD_SHIFT, multipliers)
        return multiply_by_quantized_multiplier(x + y, *multipliers[2])


class SubOperator(_Arithmetic):
    """As ADD. Some releases of TFLM divide SUB's scales in float32; the oracle of our tests does not."""

    kind = "SUB"
    options_table = "SubOptions"
    summary = "a - b, with broadcasting"
    rules = (*_ARITHMETIC_RULES, _SUM_RULE)

    def exact(self, a: Array, b: Array) -> Array:
        return a - b

    def rescaled(self, op: Op, a: Array, b: Array) -> Array:
        multipliers = add_multipliers(op)
        x, y = _scaled(op, a, b, ADD_SHIFT, multipliers)
        return multiply_by_quantized_multiplier(x - y, *multipliers[2])


class MulOperator(_Arithmetic):
    """The product of both operands less their zero points is rescaled to the output."""

    kind = "MUL"
    options_table = "MulOptions"
    summary = "a * b, with broadcasting"
    rules = (
        *_ARITHMETIC_RULES,
        Rule(
            "the requantization multiplier is below 2^15",
            lambda op: op.output.dtype == "int8" and mul_multiplier(op)[1] > 15,
        ),
    )

    def exact(self, a: Array, b: Array) -> Array:
        return a * b

    def rescaled(self, op: Op, a: Array, b: Array) -> Array:
        x, y = (d.astype(np.int64) - t.zero_point for d, t in zip((a, b), op.operands, strict=True))
        return multiply_by_quantized_multiplier(x * y, *mul_multiplier(op))


class SquaredDifferenceOperator(BinaryOperator):
    """Both operands are shifted left by 7 and rescaled to twice the larger scale; the square of their
    difference is rescaled to the output."""

    kind = "SQUARED_DIFFERENCE"
    summary = "(a - b) * (a - b), with broadcasting"
    rules = (
        *_INT8_RULES,
        Rule(
            "the output's scale is above 2^-12 times the square of the larger input scale",
            lambda op: squared_difference_multipliers(op)[2][1] > 0,
            "such a square would overflow in TensorFlow Lite Micro too",
        ),
    )

    def function(self, op: Op, a: Array, b: Array) -> Array:
        multipliers = squared_difference_multipliers(op)
        x, y = _scaled(op, a, b, SQUARED_DIFFERENCE_SHIFT, multipliers)
        squared = multiply_by_quantized_multiplier((x - y) ** 2, *multipliers[2])
        return clamp(squared + op.output.zero_point, -128, 127)


class _Choice(BinaryOperator):
    """One of two stored values. TFLM looks at no quantization, so here too a different one changes
    nothing."""

    rules = (TWO_INPUTS, _INT8_OR_INT32, *SHAPE_RULES)


class MaximumOperator(_Choice):
    """int8 or int32 operands that broadcast -> the same dtype."""

    kind = "MAXIMUM"
    summary = "the greater of two stored values, with broadcasting"

    def function(self, op: Op, a: Array, b: Array) -> Array:
        return np.maximum(a, b)


class MinimumOperator(_Choice):
    """int8 or int32 operands that broadcast -> the same dtype."""

    kind = "MINIMUM"
    summary = "the lesser of two stored values, with broadcasting"

    def function(self, op: Op, a: Array, b: Array) -> Array:
        return np.minimum(a, b)


class PreluOperator(BinaryOperator):
    """A value that is not negative is requantized; a negative one times alpha, with a multiplier of its
    own."""

    kind = "PRELU"
    summary = "x, or alpha * x where x is negative, with broadcasting"
    rules = (
        *_INT8_RULES,
        Rule(
            "the input's scale is below 2^21 times the output's, and times alpha's below 2^15 times",
            lambda op: prelu_multipliers(op)[0][1] > 21 or prelu_multipliers(op)[1][1] > 15,
        ),
    )

    def function(self, op: Op, a: Array, b: Array) -> Array:
        x, alpha = (d.astype(np.int64) - t.zero_point for d, t in zip((a, b), op.operands, strict=True))
        same, scaled = prelu_multipliers(op)
        positive = multiply_by_quantized_multiplier(x, *same)
        negative = multiply_by_quantized_multiplier(x * alpha, *scaled)
        return clamp(np.where(x >= 0, positive, negative) + op.output.zero_point, -128, 127)
