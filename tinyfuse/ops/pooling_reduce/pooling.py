"""AVERAGE_POOL_2D, MAX_POOL_2D and L2_POOL_2D: any filter, stride and padding."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tinyfuse.ir import Array, Op, Tensor, given
from tinyfuse.ir.fixedpoint import RANGE, clamp
from tinyfuse.ops.core.convolution import (
    Clamped,
    clamp_range,
    windows_along,
)
from tinyfuse.ops.core.convolution_rules import ACTIVATION_RULES
from tinyfuse.ops.core.dtypes import ONE_QUANTIZATION, computed_dtype
from tinyfuse.ops.core.family import RowWindow, Rule
from tinyfuse.ops.core.images import ImageFamily
from tinyfuse.ops.core.real import FLOAT_MAX, clamp_real, real_clamp
from tinyfuse.ops.pooling_reduce.row_sum import AverageOfSum


@dataclass(frozen=True)
class Pool2D(Clamped):
    """Attributes of a pooling operator.

    padding         "SAME" or "VALID" as in the file, or rows and columns (top, bottom, left, right) of a pool over some
                    rows of an image.
    filter, stride  (rows, columns).
    activation      one of ACTIVATIONS.
    clamp           (low, high) in stored units, if a rewrite narrowed it.
    halves_up       averages round halves up, as in a uint8 model.
    """

    padding: str | tuple[int, int, int, int]
    filter: tuple[int, int]
    stride: tuple[int, int]
    activation: str = "NONE"
    clamp: tuple[int, int] | tuple[float, float] | None = None
    halves_up: bool = False


def pool_output_and_padding(op: Op) -> tuple[tuple[int, int], tuple[int, int]]:
    """((output rows, padding on top), (output columns, padding on the left))."""
    a, (_, height, width, _) = op.attributes_as(Pool2D), op.input.shape
    rows = a.padding if isinstance(a.padding, str) else a.padding[:2]
    columns = a.padding if isinstance(a.padding, str) else a.padding[2:]
    return (
        windows_along(height, a.filter[0], a.stride[0], 1, rows),
        windows_along(width, a.filter[1], a.stride[1], 1, columns),
    )


def has_even_window(op: Op) -> bool:
    """Tell whether some window holds an even number of values, whose mean may be a half."""
    (rows, top), (columns, left) = pool_output_and_padding(op)
    pool, (_, height, width, _) = op.attributes_as(Pool2D), op.input.shape

    def even(count: int, window: int, stride: int, before: int, dim: int) -> bool:
        starts = [i * stride - before for i in range(count)]
        return any((min(start + window, dim) - max(start, 0)) % 2 == 0 for start in starts)

    down, across = pool.filter[0], pool.filter[1]
    return even(rows, down, pool.stride[0], top, height) or even(columns, across, pool.stride[1], left, width)


def sees_all(op: Op) -> bool:
    """Tell whether the only output pixel's window holds the whole image, of more than one row."""
    _, height, width, _ = op.input.shape
    (_, top), (_, left) = pool_output_and_padding(op)
    rows, columns = op.attributes_as(Pool2D).filter
    return op.output.shape[:3] == (1, 1, 1) and height > 1 and rows - top >= height and columns - left >= width


def _may_overflow(op: Op) -> bool:
    pool, (_, height, width, _) = op.attributes_as(Pool2D), op.input.shape
    return op.input.dtype == "int16" and min(pool.filter[0], height) * min(pool.filter[1], width) > 65535


def _bad_window(op: Op) -> bool:
    pool = op.attributes_as(Pool2D)
    return not all(1 <= size <= 32767 for size in pool.filter + pool.stride)


def _bad_shape(op: Op) -> Tensor | None:
    (rows, _), (columns, _) = pool_output_and_padding(op)
    good = rows > 0 and columns > 0 and op.output.shape == (op.input.shape[0], rows, columns, op.input.shape[3])
    return None if good else op.output


def _requantized(op: Op) -> Tensor | None:
    if op.output.dtype == "float32":
        return None
    same = abs(op.input.scale - op.output.scale) <= 1e-6 and op.input.zero_point == op.output.zero_point
    return None if same else op.output


def _rules(*dtypes: str) -> tuple[Rule, ...]:
    return (
        Rule("one input and one output", lambda op: len(op.inputs) != 1 or len(op.outputs) != 1 or None in op.inputs),
        computed_dtype(*dtypes),
        ONE_QUANTIZATION,
        Rule(
            "input and output have rank 4 and no empty dimension",
            lambda op: next((t for t in (op.input, op.output) if len(t.shape) != 4 or min(t.shape) < 1), None),
        ),
        Rule(
            "filter and stride are from 1 to 32767",
            _bad_window,
        ),
        Rule(
            "the output has the input's batch and channels, and the dimensions that filter, stride and padding give",
            _bad_shape,
        ),
        Rule(
            "input and output, unless they are float32, have the same scale and zero point",
            _requantized,
            "TensorFlow Lite Micro refuses it too",
        ),
        *ACTIVATION_RULES,
        Rule(
            "a window sees at most 65535 pixels of int16: their sum fits 32 bits",
            _may_overflow,
            "TensorFlow Lite Micro would overflow too",
        ),
    )


class _Pool(ImageFamily):
    options_table = "Pool2DOptions"
    pools = True
    rules: tuple[Rule, ...] = _rules("int8", "int16", "float32")

    def attributes(self, options: Mapping[str, Any]) -> Pool2D:
        return Pool2D(
            options.get("padding", "SAME"),
            (options.get("filter_height", 0), options.get("filter_width", 0)),
            (options.get("stride_h", 0), options.get("stride_w", 0)),
            options.get("fused_activation_function", "NONE"),
        )

    def window(self, op: Op) -> RowWindow:
        (_, top), _ = pool_output_and_padding(op)
        pool = op.attributes_as(Pool2D)
        return RowWindow(pool.filter[0], pool.stride[0], top)

    def of_rows(
        self, op: Op, inputs: tuple[Tensor | None, ...], output: Tensor, first: int, above: int, below: int
    ) -> Op | None:
        _, (columns, left) = pool_output_and_padding(op)
        pool, (_, _, width, _) = op.attributes_as(Pool2D), op.input.shape
        right = max(0, (columns - 1) * pool.stride[1] + pool.filter[1] - width - left)
        padding = (above, below, left, right)
        attributes = replace(pool, padding=padding if any(padding) else "VALID")
        return replace(op, inputs=inputs, outputs=(output,), attributes=attributes)

    def with_axes_swapped(self, op: Op, inputs: tuple[Tensor | None, ...]) -> Op | None:
        pool = op.attributes_as(Pool2D)
        padding = pool.padding if isinstance(pool.padding, str) else (*pool.padding[2:], *pool.padding[:2])
        attributes = replace(pool, filter=pool.filter[::-1], stride=pool.stride[::-1], padding=padding)
        return replace(op, inputs=inputs, attributes=attributes)

    def image(self, op: Op, *inputs: Array | None) -> Array:
        data = given(inputs[0])
        if op.output.dtype != "float32":
            pooled = self.pool(op, _taps(op, data.astype(np.int64)))
            return clamp(pooled, *clamp_range(op), op.output.dtype)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            return clamp_real(self.real(op.output, _taps(op, data)), *real_clamp(op))

    def pool(self, op: Op, taps: Iterator[Tap]) -> Array:
        """The stored output, int64 [1, H, W, C], before it is clamped."""
        raise NotImplementedError

    def real(self, output: Tensor, taps: Iterator[Tap]) -> Array:
        """Return the float32 output [1, H, W, C] before it is clamped."""
        raise NotImplementedError


@dataclass(frozen=True)
class Tap:
    """View of one filter position: `seen` [1, rows, columns, C] of the input, for the output pixels `at`."""

    at: tuple[slice, slice, slice]
    seen: Array


def _taps(op: Op, data: Array) -> Iterator[Tap]:
    """Yields the input values at each place of the filter, row by row. TFLM reads a window's pixels in this order."""
    (rows, top), (columns, left) = pool_output_and_padding(op)
    pool, (_, height, width, _) = op.attributes_as(Pool2D), data.shape
    places = list(_places(pool.filter[1], columns, pool.stride[1], left, width))
    for out_rows, in_rows in _places(pool.filter[0], rows, pool.stride[0], top, height):
        for out_columns, in_columns in places:
            yield Tap((slice(None), out_rows, out_columns), data[:, in_rows, in_columns])


def _places(length: int, count: int, stride: int, before: int, dim: int) -> Iterator[tuple[slice, slice]]:
    """Yields, along an axis, for each position of the filter: the windows (of `count`) in which it lies inside the
    input, and the input elements that it reads there."""
    for place in range(max(0, before - (count - 1) * stride), min(length, before + dim)):
        offset = place - before
        first, after = max(0, -(offset // stride)), min(count, (dim - 1 - offset) // stride + 1)
        start = first * stride + offset
        if first < after:
            yield slice(first, after), slice(start, start + (after - first) * stride, stride)


def _sums(output: Tensor, taps: Iterator[Tap], dtype: str, squared: bool = False) -> tuple[Array, Array]:
    """(sums, numbers of terms) of every window, [1, H, W, C] of `dtype`; each sum in the order of the taps."""
    sums, counts = np.zeros(output.shape, dtype), np.zeros(output.shape, dtype)
    for tap in taps:
        sums[tap.at] += tap.seen * tap.seen if squared else tap.seen
        counts[tap.at] += 1
    return sums, counts


class AveragePoolFamily(_Pool):
    """AVERAGE_POOL_2D: the mean of the window's values without padding. Integers are rounded, halves away from zero or
    up."""

    kind = "AVERAGE_POOL_2D"
    computes_uint8 = True
    summary = "mean of windows of rows and columns"

    def pool(self, op: Op, taps: Iterator[Tap]) -> Array:
        totals, counts = _sums(op.output, taps, "int64")
        if op.attributes_as(Pool2D).halves_up:
            up: Array = (totals + counts // 2) // counts
            return up
        mean: Array = np.sign(totals) * ((np.abs(totals) + counts // 2) // counts)
        return mean

    def real(self, output: Tensor, taps: Iterator[Tap]) -> Array:
        totals, counts = _sums(output, taps, "float32")
        return totals / counts

    def of_sums(self, op: Op, sums: Tensor, output: Tensor) -> Op | None:
        pool, (_, height, width, _) = op.attributes_as(Pool2D), op.input.shape
        if op.output.dtype == "float32" or pool.halves_up or not sees_all(op):
            return None
        attributes = AverageOfSum(height * width, pool.activation, pool.clamp)
        return Op("AVERAGE_OF_SUM", (sums,), (output,), attributes, index=op.index)


class MaxPoolFamily(_Pool):
    """MAX_POOL_2D: the greatest of the window's values without padding. For floats, a NaN is never greater."""

    kind = "MAX_POOL_2D"
    extreme = "MAXIMUM"
    computes_uint8 = True
    summary = "greatest value of windows of rows and columns"

    def pool(self, op: Op, taps: Iterator[Tap]) -> Array:
        return _greatest(np.full(op.output.shape, RANGE[op.output.dtype][0], np.int64), taps)

    def real(self, output: Tensor, taps: Iterator[Tap]) -> Array:
        return _greatest(np.full(output.shape, -FLOAT_MAX, np.float32), taps)


def _greatest(most: Array, taps: Iterator[Tap]) -> Array:
    for tap in taps:
        most[tap.at] = np.where(most[tap.at] < tap.seen, tap.seen, most[tap.at])
    return most


class L2PoolFamily(_Pool):
    """L2_POOL_2D: the square root of the mean of the squares of the window's values, without padding."""

    kind = "L2_POOL_2D"
    summary = "root of the mean square of windows of rows and columns"
    pools = False  # a magnitude may be greater than all values of the window
    rules = _rules("float32")

    def real(self, output: Tensor, taps: Iterator[Tap]) -> Array:
        totals, counts = _sums(output, taps, "float32", squared=True)
        return np.sqrt(totals / counts)
