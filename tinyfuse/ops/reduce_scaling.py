"""What MEAN and SUM derive from their axes and their quantization."""

from __future__ import annotations

from math import prod

from tinyfuse.ir import Op
from tinyfuse.ir.fixedpoint import quantize_multiplier


def reduced_axes(op: Op) -> tuple[int, ...]:
    """The dimensions that are reduced, ascending, none twice."""
    rank = len(op.input.shape)
    return tuple(sorted({int(axis) % rank for axis in op.operand(1).values.reshape(-1)}))


def sum_scaling(op: Op) -> tuple[int, int]:
    """(multiplier, shift) from a sum less its zero points to the output.

    For a MEAN, TFLM folds the division into the multiplier: it widens the multiplier by as many bits as the
    count has, but by no more than the shift allows, and truncates the quotient.
    """
    multiplier, shift = quantize_multiplier(op.input.scale / op.output.scale)
    if op.kind == "SUM":
        return multiplier, shift
    count = prod(op.input.shape[axis] for axis in reduced_axes(op))
    widened = min(count.bit_length() - 1, 32, 31 + shift)
    return (multiplier << widened) // count, shift - widened
