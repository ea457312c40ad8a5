"""Values that reductions derive from their axes, and MEAN and SUM from their quantization."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from math import prod

import numpy as np

from tinyfuse.ir import Array, Int64s, Op
from tinyfuse.ir.fixedpoint import (
    RANGE,
    clamp,
    multiply_by_quantized_multiplier,
    multiply_half_even,
    quantize_multiplier,
)
from tinyfuse.ops.core.convolution import FLOAT_HALF_EVEN, rounds_by


def reduced_axes(op: Op) -> tuple[int, ...]:
    """Return the dimensions that are reduced, ascending and without duplicates."""
    rank = len(op.input.shape)
    return tuple(sorted({int(axis) % rank for axis in op.operand(1).values.reshape(-1)}))


def reduced_count(op: Op) -> int:
    """Return how many elements each output is made of."""
    return prod(op.input.shape[axis] for axis in reduced_axes(op))


@dataclass(frozen=True)
class Run:
    """Adjacent dimensions that are all reduced, or all kept, merged into one: its size, and the elements from one index
    to the next."""

    size: int
    stride: int


@dataclass(frozen=True)
class Runs:
    """Runs of dimensions of a reduction, outer ones before inner ones."""

    kept: tuple[Run, ...]
    reduced: tuple[Run, ...]


def reduction_runs(op: Op) -> Runs:
    """Runs of the input's dimensions. If the rank is above 4, dimensions of size 1 are left out."""
    shape, axes = op.input.shape, reduced_axes(op)
    dimensions = [axis for axis in range(len(shape)) if len(shape) <= 4 or shape[axis] > 1]
    found: dict[bool, list[Run]] = {True: [], False: []}
    for is_reduced, group in groupby(dimensions, key=lambda axis: axis in axes):
        run = list(group)
        found[is_reduced].append(Run(prod(shape[axis] for axis in run), prod(shape[run[-1] + 1 :])))
    return Runs(tuple(found[False]), tuple(found[True]))


def mean_factor(op: Op) -> np.float32:
    """Factor that turns the sum of a MEAN with FLOAT_HALF_EVEN into its output, computed as onnxruntime's
    MlasQLinearGlobalAveragePool does."""
    with np.errstate(over="ignore"):  # a rule refuses such scales
        return np.float32(op.input.scale) / (np.float32(op.output.scale) * np.float32(reduced_count(op)))


def scaled_total(op: Op, total: Array) -> Int64s:
    """Outputs of a MEAN or SUM, less the output's zero point and not clamped, from sums less the input's zero
    points."""
    if rounds_by(op, FLOAT_HALF_EVEN):
        return multiply_half_even(total, mean_factor(op))
    return multiply_by_quantized_multiplier(total, *sum_scaling(op))


def outputs_of_totals(op: Op, total: Array) -> Array:
    """The stored outputs of a MEAN or SUM from its sums less the input's zero points."""
    return clamp(scaled_total(op, total) + op.output.zero_point, *RANGE[op.output.dtype], op.output.dtype)


def sum_scaling(op: Op) -> tuple[int, int]:
    """(multiplier, shift) from a sum less its zero points to the output.

    For a MEAN, TFLM folds the division into the multiplier: it widens the multiplier by as many bits as the
    count has, but by no more than the shift allows, and truncates the quotient.
    """
    multiplier, shift = quantize_multiplier(op.input.scale / op.output.scale)
    if op.kind == "SUM":
        return multiplier, shift
    count = reduced_count(op)
    widened = min(count.bit_length() - 1, 32, 31 + shift)
    return (multiplier << widened) // count, shift - widened
