"""Values that elementwise operators of two inputs derive from their tensors as TFLM does: the loops of their broadcast,
and their fixed-point multipliers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tinyfuse.ir import Op
from tinyfuse.ir.fixedpoint import quantize_multiplier
from tinyfuse.ops.core.convolution import Clamped

Multiplier = tuple[int, int]


@dataclass(frozen=True)
class Binary(Clamped):
    """Attributes of an operator with two operands. activation: one of ACTIVATIONS; clamp: (low, high) in stored units,
    if a rewrite narrowed it."""

    activation: str = "NONE"
    clamp: tuple[int, int] | None = None


@dataclass(frozen=True)
class FloatBinary(Binary):
    """Attributes of an int8 ADD or MUL that onnxruntime computes in float32 (QLinearAdd, QLinearMul).

    offset  number added to stored values and zero points before the computation: 128 if they are uint8 in the file,
            else 0
    """

    offset: int = 0


def sum_terms(op: Op) -> tuple[np.float32, np.float32, np.float32]:
    """(factor of the first operand, factor of the second, rest) of an ADD with FloatBinary.

    The output is first * a + (second * b + rest), each product and its sum rounded once, then rounded to an integer,
    halves to even. All are float32; operands, zero points and output have `offset` added. Source: onnxruntime's
    MlasQLinearAddKernel with fused multiply-add.
    """
    offset = op.attributes_as(FloatBinary).offset
    out = np.float32(op.output.scale)
    points = [np.float32(t.zero_point + offset) for t in (*op.operands, op.output)]
    with np.errstate(over="ignore", invalid="ignore"):  # a rule refuses such scales
        first, second = (np.float32(op.operand(i).scale) / out for i in (0, 1))
        # the product of the second operand is rounded before it is added to the exact one of the first
        products = np.float64(first) * np.float64(points[0]) + np.float64(second * points[1])
        return first, second, np.float32(points[2] - np.float32(products))


def product_factor(op: Op) -> np.float32:
    """Return the float32 factor of an integer product of a MUL with FloatBinary: its inputs' scales multiplied, then
    divided by the output's scale."""
    scales = [np.float32(t.scale) for t in (*op.operands, op.output)]
    with np.errstate(over="ignore", invalid="ignore"):  # a rule refuses such scales
        return np.float32(scales[0] * scales[1] / scales[2])


_WHOLE_RANGES = {"NONE": (-(2**31), 2**31 - 1), "RELU": (0, 2**31 - 1), "RELU6": (0, 6), "RELU_N1_TO_1": (-1, 1)}


def whole_clamp(op: Op) -> tuple[int, int]:
    """(low, high), int32: the clamp of an operator's int32 output. Such an output has no scale, so its values are real
    numbers."""
    return _WHOLE_RANGES[op.attributes_as(Clamped).activation]


def clamps_whole(op: Op) -> bool:
    """Tell whether an int32 output has a fused clamp."""
    return isinstance(op.attributes, Clamped) and op.attributes.activation != "NONE"


# --- broadcasting ----------------------------------------------------------------------------

#: the most loops in a loop nest of the C kernels
MOST_LOOPS = 4


@dataclass(frozen=True)
class Loops:
    """Loop nest over the output's elements, outermost first: the loops' counts, and the step of each operand, in
    elements, from one iteration to the next (0: the operand is repeated)."""

    dims: tuple[int, ...]
    a_strides: tuple[int, ...]
    b_strides: tuple[int, ...]


def broadcast_loops(output: tuple[int, ...], a: tuple[int, ...], b: tuple[int, ...]) -> Loops:
    """The shortest nest for operands of shapes `a` and `b` that broadcast to `output`: dimensions of size 1 are left
    out, and adjacent dimensions are merged if one loop with one step per operand covers both."""
    strides = [operand_strides(shape, output) for shape in (a, b)]
    loops: list[tuple[int, int, int]] = []
    for dim, *steps in zip(output, *strides, strict=True):
        if dim == 1:
            continue
        if loops and all(outer == inner * dim for outer, inner in zip(loops[-1][1:], steps, strict=True)):
            loops[-1] = (loops[-1][0] * dim, *steps)
        else:
            loops.append((dim, *steps))
    dims, a_steps, b_steps = zip(*(loops or [(1, 0, 0)]), strict=True)
    return Loops(dims, a_steps, b_steps)


def operand_strides(shape: tuple[int, ...], output: tuple[int, ...]) -> list[int]:
    """Elements from one index to the next of every dimension of `output`; 0 where `shape` is repeated."""
    padded = (1,) * (len(output) - len(shape)) + shape
    strides, step = [0] * len(output), 1
    for axis in reversed(range(len(output))):
        strides[axis] = step if padded[axis] > 1 else 0
        step *= padded[axis]
    return strides


# --- multipliers -----------------------------------------------------------------------------

#: left shift of the operands of a dtype, so that rescaling keeps a fraction
ADD_SHIFT = {"int8": 20, "int16": 15}
SQUARED_DIFFERENCE_SHIFT = {"int8": 7, "int16": 0}
COMPARISON_SHIFT = 8


def add_multipliers(op: Op) -> tuple[Multiplier, ...]:
    """(multiplier, shift) of the first operand, the second, and their sum or difference."""
    a, b = op.operand(0).scale, op.operand(1).scale
    twice_larger = 2.0 * max(a, b)
    real = (a / twice_larger, b / twice_larger, twice_larger / (2.0 ** ADD_SHIFT[op.output.dtype] * op.output.scale))
    return tuple(quantize_multiplier(value) for value in real)


def squared_difference_multipliers(op: Op) -> tuple[Multiplier, ...]:
    """Return the multipliers of SQUARED_DIFFERENCE's two operands and of the square."""
    a, b = op.operand(0).scale, op.operand(1).scale
    twice_larger = 2.0 * max(a, b)
    shift = 2 * SQUARED_DIFFERENCE_SHIFT[op.output.dtype]
    squared = twice_larger * twice_larger / (2.0**shift * op.output.scale)
    return tuple(quantize_multiplier(value) for value in (a / twice_larger, b / twice_larger, squared))


def mul_multiplier(op: Op) -> Multiplier:
    """(multiplier, shift) of MUL's product."""
    return quantize_multiplier(op.operand(0).scale * op.operand(1).scale / op.output.scale)


def prelu_multipliers(op: Op) -> tuple[Multiplier, Multiplier]:
    """Multipliers and shifts of PRELU: of values at or above zero, and of products of other values and alpha."""
    x, alpha, out = op.operand(0).scale, op.operand(1).scale, op.output.scale
    return quantize_multiplier(x / out), quantize_multiplier(x * alpha / out)


def comparison_multipliers(op: Op) -> tuple[Multiplier, Multiplier]:
    """(multiplier, shift) of each operand of a comparison, which represent its scale."""
    return quantize_multiplier(op.operand(0).scale), quantize_multiplier(op.operand(1).scale)
