"""Elementwise operators of two inputs with broadcasting: ADD, SUB, MUL, MAXIMUM, MINIMUM,
SQUARED_DIFFERENCE, PRELU. Operands may be constants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tinyfuse.ir import Array, Int64s, Op, Tensor, all_given
from tinyfuse.ir.fixedpoint import RANGE, clamp, multiply_by_quantized_multiplier
from tinyfuse.ir.float_math import Floats
from tinyfuse.ops.core.binary import (
    ADD_SHIFT,
    MOST_LOOPS,
    SQUARED_DIFFERENCE_SHIFT,
    Binary,
    FloatBinary,
    Multiplier,
    add_multipliers,
    broadcast_loops,
    mul_multiplier,
    prelu_multipliers,
    product_factor,
    squared_difference_multipliers,
    sum_terms,
    whole_clamp,
)
from tinyfuse.ops.core.convolution import clamp_range
from tinyfuse.ops.core.convolution_rules import ACTIVATION_RULES
from tinyfuse.ops.core.family import SAME_ROW, OpFamily, RowWindow, Rule
from tinyfuse.ops.core.real import clamp_real, real_clamp
from tinyfuse.ops.core.unary import SYMMETRIC_INT16

# --- rules -----------------------------------------------------------------------------------


def _bad_shapes(op: Op) -> Tensor | None:
    try:
        shape = np.broadcast_shapes(op.operand(0).shape, op.operand(1).shape)
    except ValueError:
        return op.operand(1)
    return None if shape == op.output.shape and op.output.elements > 0 else op.output


def _too_many_loops(op: Op) -> bool:
    return len(broadcast_loops(op.output.shape, op.operand(0).shape, op.operand(1).shape).dims) > MOST_LOOPS


def bad_quantization(op: Op) -> Tensor | None:
    """The first quantized tensor that has not exactly one scale and zero point."""
    tensors = (t for t in (*op.operands, *op.outputs) if t.dtype in RANGE)
    return next((t for t in tensors if t.quant is None or t.quant.per_channel), None)


TWO_INPUTS = Rule(
    "two inputs and one output", lambda op: len(op.inputs) != 2 or len(op.outputs) != 1 or None in op.inputs
)
#: the most dimensions of a shape in TFLM's kernels (runtime_shape.h), which write further ones to unrelated memory
_MOST_DIMENSIONS = 6


def _broadcast_too_deep(op: Op) -> Tensor | None:
    """The output, if the inputs' shapes differ and have more dimensions than TFLM's broadcasting loops; else None."""
    differ = any(tensor.shape != op.output.shape for tensor in op.operands)
    return op.output if differ and len(op.output.shape) > _MOST_DIMENSIONS else None


FEW_DIMENSIONS = Rule(
    f"inputs that broadcast have at most {_MOST_DIMENSIONS} dimensions",
    _broadcast_too_deep,
    "TensorFlow Lite Micro has no room for more: give both inputs one shape, or fewer dimensions",
)
SHAPE_RULES = (
    Rule("the inputs' shapes broadcast to the output's", _bad_shapes),
    FEW_DIMENSIONS,
    Rule(
        f"at most {MOST_LOOPS} loops walk over both inputs (dimensions that are broadcast alike are one)",
        _too_many_loops,
    ),
)
QUANTIZATION_RULE = Rule(
    "quantized inputs and output are each quantized by one scale and one zero point", bad_quantization
)


def binary_dtypes(*dtypes: str) -> Rule:
    """Rule that inputs and output have the same dtype, one of `dtypes`."""

    def broken(op: Op) -> Tensor | None:
        wanted = op.output.dtype if op.output.dtype in dtypes else dtypes[0]
        return next((t for t in (*op.operands, op.output) if t.dtype != wanted), None)

    return Rule(
        f"inputs and output have the same dtype, one of {', '.join(dtypes)}",
        broken,
        "TensorFlow Lite Micro computes it in no others; full integer quantization gives int8",
    )


_ARITHMETIC_RULES = (
    TWO_INPUTS,
    binary_dtypes("int8", "int16", "int32", "float32"),
    QUANTIZATION_RULE,
    SYMMETRIC_INT16,
    *SHAPE_RULES,
    *ACTIVATION_RULES,
)

# --- families --------------------------------------------------------------------------------


class BinaryFamily(OpFamily):
    """Base of elementwise operators of two inputs. They can run by rows, and in place on an operand that is not
    repeated."""

    pointwise = True
    rows_alike = True

    def row_window(self, op: Op, index: int) -> RowWindow | None:
        if not (op.output.is_image and op.operand(index).is_image):
            return None
        # a single row is read for every row of the output
        return SAME_ROW if op.operand(index).shape[1] == op.output.shape[1] else RowWindow(1, stride=0)

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        a, b = all_given(inputs)
        if op.output.dtype != "float32":
            return (self.function(op, a, b),)
        with np.errstate(all="ignore"):
            return (np.asarray(self.real(op, a, b), np.float32),)

    def function(self, op: Op, a: Array, b: Array) -> Array:
        """The stored results of stored operands, which broadcast."""
        raise NotImplementedError

    def real(self, op: Op, a: Floats, b: Floats) -> Floats:
        """Compute the function in float32, each operation rounded as TFLM rounds it."""
        raise NotImplementedError


def _scaled(op: Op, a: Array, b: Array, shift: int, multipliers: tuple[Multiplier, ...]) -> list[Int64s]:
    """Both operands less their zero points, shifted left and rescaled to twice the larger scale."""
    return [
        multiply_by_quantized_multiplier((data.astype(np.int64) - tensor.zero_point) << shift, *multiplier)
        for data, tensor, multiplier in zip((a, b), op.operands, multipliers, strict=False)
    ]


class _Arithmetic(BinaryFamily):
    """Base of ADD, SUB and MUL, with a fused activation. int32 results wrap before the activation; models use them for
    shapes."""

    affine = True

    def attributes(self, options: Mapping[str, Any]) -> Binary:
        return Binary(options.get("fused_activation_function", "NONE"))

    def function(self, op: Op, a: Array, b: Array) -> Array:
        if op.output.dtype == "int32":
            wrapped = self.exact(a.astype(np.int64), b.astype(np.int64)).astype(np.int32)
            return clamp(wrapped, *whole_clamp(op), "int32")
        if isinstance(op.attributes, FloatBinary):
            offset = op.attributes.offset
            numbers = self.in_floats(op, *((d.astype(np.int64) + offset).astype(np.float32) for d in (a, b)))
            return clamp(np.rint(numbers).astype(np.int64) - offset, *clamp_range(op), op.output.dtype)
        return clamp(self.rescaled(op, a, b) + op.output.zero_point, *clamp_range(op), op.output.dtype)

    def real(self, op: Op, a: Floats, b: Floats) -> Floats:
        return clamp_real(self.exact(a, b), *real_clamp(op))

    def exact(self, a: Array, b: Array) -> Array:
        """Compute the function of integers without overflow, or of floats."""
        raise NotImplementedError

    def rescaled(self, op: Op, a: Array, b: Array) -> Array:
        """Compute the function of stored quantized values, in units of the output's scale."""
        raise NotImplementedError

    def in_floats(self, op: Op, a: Array, b: Array) -> Array:
        """Compute the function of stored values as FloatBinary has it: float32, not yet rounded to integers."""
        raise NotImplementedError


def _in_floats(op: Op) -> bool:
    return isinstance(op.attributes, FloatBinary)


def _far_apart(op: Op) -> bool:
    """Tell whether a FloatBinary has factors that leave double precision too few bits for exact sums."""
    if not _in_floats(op):
        return False
    factors = sum_terms(op)[:2] if op.kind == "ADD" else (product_factor(op),)
    return not all(2.0**-16 <= factor <= 2.0**12 for factor in factors)


_FLOAT_RULE = Rule(
    "scales of the inputs, or their product, computed in float32, are from 2^-16 to 2^12 times the output's",
    _far_apart,
    "quantize the model with a calibration set that reaches what it computes",
)

_SUM_RULE = Rule(
    "the output's scale is above 2^-19 times the larger input scale, of int16 2^-14 times",
    lambda op: op.output.dtype in RANGE and not _in_floats(op) and add_multipliers(op)[2][1] > 0,
    "such a sum would overflow in TensorFlow Lite Micro too",
)


class AddFamily(_Arithmetic):
    """ADD: both operands are shifted left by 20 (int16: by 15), rescaled to twice the larger scale and added; the sum
    is rescaled to the output (TFLM, reference/integer_ops/add.h)."""

    kind = "ADD"
    commutes = True
    computes_uint8 = True
    options_table = "AddOptions"
    summary = "a + b, with broadcasting"
    rules = (
        *_ARITHMETIC_RULES,
        _SUM_RULE,
        _FLOAT_RULE,
        Rule(
            "int32 has no fused activation",
            lambda op: op.output.dtype == "int32" and op.attributes_as(Binary).activation != "NONE",
            "TensorFlow Lite Micro leaves it out of ADD; MAXIMUM and MINIMUM clamp",
        ),
    )

    def exact(self, a: Array, b: Array) -> Array:
        return a + b

    def rescaled(self, op: Op, a: Array, b: Array) -> Array:
        multipliers = add_multipliers(op)
        x, y = _scaled(op, a, b, ADD_SHIFT[op.output.dtype], multipliers)
        return multiply_by_quantized_multiplier(x + y, *multipliers[2])

    def in_floats(self, op: Op, a: Array, b: Array) -> Array:
        first, second, rest = (np.float64(term) for term in sum_terms(op))
        # products of 9 and 24 bits, and their sums, are exact in double precision
        inner = (b.astype(np.float64) * second + rest).astype(np.float32)
        return (a.astype(np.float64) * first + inner.astype(np.float64)).astype(np.float32)


class SubFamily(_Arithmetic):
    """SUB, with ADD's arithmetic. Some releases of TFLM divide SUB's scales in float32; the release that is the oracle
    of our tests does not."""

    kind = "SUB"
    computes_uint8 = True
    options_table = "SubOptions"
    summary = "a - b, with broadcasting"
    rules = (*_ARITHMETIC_RULES, _SUM_RULE)

    def exact(self, a: Array, b: Array) -> Array:
        return a - b

    def rescaled(self, op: Op, a: Array, b: Array) -> Array:
        multipliers = add_multipliers(op)
        x, y = _scaled(op, a, b, ADD_SHIFT[op.output.dtype], multipliers)
        return multiply_by_quantized_multiplier(x - y, *multipliers[2])


class MulFamily(_Arithmetic):
    """MUL: the operands less their zero points are multiplied, and the product is rescaled to the output."""

    kind = "MUL"
    zero_scales = (0, 1)
    commutes = True
    computes_uint8 = True
    options_table = "MulOptions"
    summary = "a * b, with broadcasting"
    rules = (
        *_ARITHMETIC_RULES,
        _FLOAT_RULE,
        Rule(
            "the requantization multiplier is below 2^15, of int16 below 1",
            lambda op: (
                op.output.dtype in RANGE
                and not _in_floats(op)
                and mul_multiplier(op)[1] > {"int8": 15, "int16": 0}[op.output.dtype]
            ),
        ),
    )

    def exact(self, a: Array, b: Array) -> Array:
        return a * b

    def rescaled(self, op: Op, a: Array, b: Array) -> Array:
        x, y = (d.astype(np.int64) - t.zero_point for d, t in zip((a, b), op.operands, strict=True))
        return multiply_by_quantized_multiplier(x * y, *mul_multiplier(op))

    def in_floats(self, op: Op, a: Array, b: Array) -> Array:
        offset = op.attributes_as(FloatBinary).offset
        x, y = (d - np.float32(t.zero_point + offset) for d, t in zip((a, b), op.operands, strict=True))
        product: Array = x * y * product_factor(op) + np.float32(op.output.zero_point + offset)
        return product


class SquaredDifferenceFamily(BinaryFamily):
    """SQUARED_DIFFERENCE: both operands are shifted left by 7 (int16: not) and rescaled to twice the larger scale; the
    square of their difference is rescaled to the output. int32 wraps."""

    kind = "SQUARED_DIFFERENCE"
    summary = "(a - b) * (a - b), with broadcasting"
    rules = (
        TWO_INPUTS,
        binary_dtypes("int8", "int16", "int32", "float32"),
        QUANTIZATION_RULE,
        SYMMETRIC_INT16,
        *SHAPE_RULES,
        Rule(
            "the output's scale is above 2^-12 times the square of the larger input scale, of int16 4 times",
            lambda op: op.output.dtype in RANGE and squared_difference_multipliers(op)[2][1] > 0,
            "such a square would overflow in TensorFlow Lite Micro too",
        ),
    )

    def function(self, op: Op, a: Array, b: Array) -> Array:
        if op.output.dtype == "int32":
            difference = (a.astype(np.int64) - b).astype(np.int32).astype(np.int64)
            return (difference * difference).astype(np.int32)
        multipliers = squared_difference_multipliers(op)
        x, y = _scaled(op, a, b, SQUARED_DIFFERENCE_SHIFT[op.output.dtype], multipliers)
        squared = multiply_by_quantized_multiplier((x - y) ** 2, *multipliers[2])
        return clamp(squared + op.output.zero_point, *RANGE[op.output.dtype], op.output.dtype)

    def real(self, op: Op, a: Floats, b: Floats) -> Floats:
        difference = a - b
        return difference * difference


class _Choice(BinaryFamily):
    """Base of operators that return one of two stored values. They ignore quantization, as in TFLM."""

    rules = (TWO_INPUTS, binary_dtypes("int8", "int16", "int32", "int64", "float32"), *SHAPE_RULES)

    def real(self, op: Op, a: Floats, b: Floats) -> Floats:
        return self.function(op, a, b)


class MaximumFamily(_Choice):
    """MAXIMUM: if both operands are equal, it returns the second, which decides the sign of a zero."""

    kind = "MAXIMUM"
    zero_scales = (0, 1)
    commutes = True
    computes_uint8 = True
    summary = "the greater of two stored values, with broadcasting"

    def function(self, op: Op, a: Array, b: Array) -> Array:
        return np.where(a > b, a, b)


class MinimumFamily(_Choice):
    """MINIMUM: if both operands are equal, it returns the second, which decides the sign of a zero."""

    kind = "MINIMUM"
    zero_scales = (0, 1)
    commutes = True
    computes_uint8 = True
    summary = "the lesser of two stored values, with broadcasting"

    def function(self, op: Op, a: Array, b: Array) -> Array:
        return np.where(a < b, a, b)


def _bad_alpha(op: Op) -> Tensor | None:
    if op.input.dtype not in _PRELU_ALPHA:
        return op.input
    if op.operand(1).dtype != _PRELU_ALPHA[op.input.dtype]:
        return op.operand(1)
    return op.output if op.output.dtype != op.input.dtype else None


#: dtype of PRELU's input and output -> of its alpha
_PRELU_ALPHA = {"int8": "int8", "int16": "int8", "float32": "float32"}


class PreluFamily(BinaryFamily):
    """PRELU: a value that is not negative is requantized; a negative one is multiplied by alpha and requantized with a
    multiplier of its own."""

    kind = "PRELU"
    zero_scales = (0, 1)
    summary = "x, or alpha * x where x is negative, with broadcasting"
    rules = (
        TWO_INPUTS,
        Rule(
            "inputs and output are int8 or float32, or input and output int16 and alpha int8",
            _bad_alpha,
            "TensorFlow Lite Micro computes it in no others; full integer quantization gives int8",
        ),
        QUANTIZATION_RULE,
        SYMMETRIC_INT16,
        *SHAPE_RULES,
        Rule(
            "a float32 output has at most four dimensions",
            lambda op: op.output if op.output.dtype == "float32" and len(op.output.shape) > 4 else None,
            "TensorFlow Lite Micro reads beyond the shapes of others; reshape it around the operator",
        ),
        Rule(
            "the input's scale is below 2^21 times the output's, and times alpha's below 2^15 times (of int16 2^14 and "
            "2^7 times)",
            lambda op: op.output.dtype in RANGE and _beyond(op),
        ),
    )

    def function(self, op: Op, a: Array, b: Array) -> Array:
        x, alpha = (d.astype(np.int64) - t.zero_point for d, t in zip((a, b), op.operands, strict=True))
        same, scaled = prelu_multipliers(op)
        positive = multiply_by_quantized_multiplier(x, *same)
        negative = multiply_by_quantized_multiplier(x * alpha, *scaled)
        dtype = op.output.dtype
        return clamp(np.where(x >= 0, positive, negative) + op.output.zero_point, *RANGE[dtype], dtype)

    def real(self, op: Op, a: Floats, b: Floats) -> Floats:
        return np.where(a >= np.float32(0), a, a * b)


def _beyond(op: Op) -> bool:
    (_, same), (_, scaled) = prelu_multipliers(op)
    most = {"int8": (21, 15), "int16": (14, 7)}[op.output.dtype]
    return same > most[0] or scaled > most[1]
