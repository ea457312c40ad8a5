"""RESIZE_NEAREST_NEIGHBOR and RESIZE_BILINEAR: an image with another number of rows and columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import gcd
from typing import Any

import numpy as np

from tinyfuse.ir import Array, Int64s, Op, Tensor, given
from tinyfuse.ops.core.dtypes import computed_dtype
from tinyfuse.ops.core.family import OpFamily, RowWindow, Rule
from tinyfuse.ops.core.movement import constant_vector, ends, one_dtype, ranks


@dataclass(frozen=True)
class Excerpt:
    """Part of a RESIZE of a larger image, whose input has `in_height` rows and whose output has `out_height` rows: the
    operator has its input rows from `first_in` on, and its output rows from `first_out` on."""

    in_height: int
    out_height: int
    first_in: int
    first_out: int


@dataclass(frozen=True)
class Resize:
    """Attributes of RESIZE_*. align_corners: the first and last rows of input and output coincide; half_pixel_centers:
    a row's position is its middle. The same for columns. excerpt: set if rewrites left the operator only some of its
    rows."""

    align_corners: bool = False
    half_pixel_centers: bool = False
    excerpt: Excerpt | None = None

    def sizes(self, op: Op, axis: int) -> tuple[int, int]:
        """Return the whole image's input and output size along a dimension."""
        if self.excerpt is not None and axis == 1:
            return self.excerpt.in_height, self.excerpt.out_height
        return op.input.shape[axis], op.output.shape[axis]

    def firsts(self, axis: int) -> tuple[int, int]:
        """(first input index, first output index) of the operator within the whole image."""
        return (self.excerpt.first_in, self.excerpt.first_out) if self.excerpt is not None and axis == 1 else (0, 0)


def _bad_size(op: Op) -> Tensor | None:
    size, (n, _, _, c) = op.operand(1), op.input.shape
    if not constant_vector(size, 2):
        return size
    return None if op.output.shape == (n, *size.values.tolist(), c) else op.output


class _Resize(OpFamily):
    rules: tuple[Rule, ...] = (
        ends(2),
        ranks(4, 4),
        Rule(
            "rows and columns are from 1 to 16384",
            lambda op: next((t for t in (op.input, op.output) if max(t.shape[1:3], default=1) > 16384), None),
        ),
        Rule("the size is constant int32: the output's rows and columns", _bad_size),
    )

    def attributes(self, options: Mapping[str, Any]) -> Resize:
        return Resize(bool(options.get("align_corners", False)), bool(options.get("half_pixel_centers", False)))

    def row_window(self, op: Op, index: int) -> RowWindow | None:
        if index != 0 or op.output.shape[0] != 1:
            return None
        a = op.attributes_as(Resize)
        height, rows = a.sizes(op, 1)
        if a.align_corners and rows > 1:
            height, rows = height - 1, rows - 1
        common = gcd(height, rows)
        return RowWindow.over(self.rows_read(op), height // common, rows // common)

    def rows_read(self, op: Op) -> list[tuple[int, int]]:
        """(first, last) input row of every output row."""
        raise NotImplementedError

    def weights_of_rows(self, op: Op) -> list[float]:
        """Weight of the second input row of `rows_read` in each output row, 0 to 1."""
        raise NotImplementedError

    def of_rows(
        self, op: Op, inputs: tuple[Tensor | None, ...], output: Tensor, first: int, above: int, below: int
    ) -> Op | None:
        window = self.row_window(op, 0)
        if window is None or not self._repeats(op, window):
            return None
        (height, rows), size = op.attributes_as(Resize).sizes(op, 1), np.array(output.shape[1:3], np.int32)
        excerpt = Excerpt(height, rows, max(0, window.reach(first)[0]), first)
        size_tensor = replace(op.operand(1), shape=(2,), data=size, index=-1)
        attributes = replace(op.attributes_as(Resize), excerpt=excerpt)
        return replace(op, inputs=(inputs[0], size_tensor), outputs=(output,), attributes=attributes)

    def _repeats(self, op: Op, window: RowWindow) -> bool:
        """Tell whether each output row whose window lies inside the image is computed like the row one period before
        it, and whether there is such a row.

        Positions are rounded, so they may drift instead.
        """
        if 2 * window.stride > op.input.shape[1]:
            return False
        places = list(zip(self.rows_read(op), self.weights_of_rows(op), strict=True))
        inside = [y for y in range(len(places)) if (rows := window.reach(y))[0] >= 0 and rows[1] <= op.input.shape[1]]
        for y in inside[: max(0, len(inside) - window.spread)]:
            (start, end), weight = places[y]
            if places[y + window.spread] != ((start + window.stride, end + window.stride), weight):
                return False
        return True


# --- RESIZE_NEAREST_NEIGHBOR -----------------------------------------------------------------


def _nearest(dim: int, count: int, resize: Resize) -> Int64s:
    """Return, for each of `count` output rows (columns), the input row of `dim` that it repeats."""
    if resize.align_corners and count > 1:
        scale = np.float32(dim - 1) / np.float32(count - 1)
    else:
        scale = np.float32(dim) / np.float32(count)
    offset = np.float32(0.5 if resize.half_pixel_centers else 0.0)
    place = (np.arange(count).astype(np.float32) + offset) * scale
    # no position is negative, so rounding halves up also rounds them away from zero
    found = np.floor(place.astype(np.float64) + 0.5) if resize.align_corners else np.floor(place)
    return np.minimum(found.astype(np.int64), dim - 1)


def nearest_rows_and_columns(op: Op) -> tuple[Int64s, Int64s]:
    """The input row (column) that every output row (column) repeats."""
    resize = op.attributes_as(Resize)
    rows, columns = (_own(op, axis, _nearest(*resize.sizes(op, axis), resize)) for axis in (1, 2))
    return rows - resize.firsts(1)[0], columns


def _own(op: Op, axis: int, of_all: Array) -> Array:
    """Selects the elements for the operator's own outputs from an array with an element per output of the whole image
    along `axis`."""
    first = op.attributes_as(Resize).firsts(axis)[1]
    return of_all[first : first + op.output.shape[axis]]


def nearest_indexes(op: Op) -> tuple[Array | None, ...]:
    """Return, for each dimension, the input index of every output index; None for a dimension that is not resized."""
    return None, *nearest_rows_and_columns(op), None


class ResizeNearestNeighborFamily(_Resize):
    """RESIZE_NEAREST_NEIGHBOR. Positions are computed in float32 (TFLM, reference/resize_nearest_neighbor.h)."""

    kind = "RESIZE_NEAREST_NEIGHBOR"
    takes_uint8 = True
    options_table = "ResizeNearestNeighborOptions"
    summary = "rows and columns repeated or left out"
    rules = (*_Resize.rules, one_dtype(("int8", "int16", "float32")))

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        rows, columns = nearest_rows_and_columns(op)
        return (given(inputs[0])[:, rows][:, :, columns],)

    def rows_read(self, op: Op) -> list[tuple[int, int]]:
        return [(row, row) for row in nearest_rows_and_columns(op)[0].tolist()]

    def weights_of_rows(self, op: Op) -> list[float]:
        return [0.0] * op.output.shape[1]


# --- RESIZE_BILINEAR -------------------------------------------------------------------------


def bilinear_places(op: Op, axis: int) -> tuple[Array, Array, Array]:
    """(lower, upper, fraction) of every index of an output dimension: the two input indexes that it lies
    between, and its distance from the lower one in 1024ths (below 0 and beyond both, at the borders)."""
    a = op.attributes_as(Resize)
    dim, count = a.sizes(op, axis)
    scale = ((dim << 10) + count // 2) // count
    if a.align_corners and count > 1:
        scale = (((dim - 1) << 10) + (count - 1) // 2) // (count - 1)
    place = np.arange(count, dtype=np.int64) * scale
    if a.half_pixel_centers:
        place += scale // 2 - 512
    # C divides towards zero, the shift rounds down: they differ only below zero, where the maximum is 0
    lower = np.maximum(place >> 10, 0)
    upper = np.minimum(np.maximum(place + 1023, 0) >> 10, dim - 1)
    return _own_places(op, axis, lower, upper, place - (lower << 10))


def real_places(op: Op, axis: int) -> tuple[Array, Array, Array]:
    """Return (lower index, upper index, distance from the lower one) in the input for each output index; distances are
    float32, and each step is rounded to float32."""
    a = op.attributes_as(Resize)
    dim, count = a.sizes(op, axis)
    scale = np.float32(dim) / np.float32(count)
    if a.align_corners and count > 1:
        scale = np.float32(dim - 1) / np.float32(count - 1)
    place = np.arange(count).astype(np.float32)
    half = np.float32(0.5)
    place = (place + half) * scale - half if a.half_pixel_centers else place * scale
    lower = np.maximum(np.floor(place).astype(np.int64), 0)
    upper = np.minimum(np.ceil(place).astype(np.int64), dim - 1)
    return _own_places(op, axis, lower, upper, place - lower.astype(np.float32))


def _own_places(op: Op, axis: int, lower: Array, upper: Array, fraction: Array) -> tuple[Array, Array, Array]:
    first = op.attributes_as(Resize).firsts(axis)[0]
    return _own(op, axis, lower) - first, _own(op, axis, upper) - first, _own(op, axis, fraction)


def places_of(op: Op, axis: int) -> tuple[Array, Array, Array]:
    """(lower, upper, fraction) of every index of an output dimension, for the operator's dtype."""
    return real_places(op, axis) if op.output.dtype == "float32" else bilinear_places(op, axis)


def _outside(op: Op) -> bool:
    return any(int(places_of(op, axis)[0].max()) >= op.input.shape[axis] for axis in (1, 2))


class ResizeBilinearFamily(_Resize):
    """RESIZE_BILINEAR. int8: positions and weights in 1024ths, with one rounding away from zero at the end (TFLM,
    reference/resize_bilinear.h, ResizeBilinearInteger). float32: four products with two weights each, added in the
    order of TFLM's formula (ResizeBilinear)."""

    kind = "RESIZE_BILINEAR"
    options_table = "ResizeBilinearOptions"
    summary = "rows and columns interpolated between two neighbours each"
    rules: tuple[Rule, ...] = (
        *_Resize.rules,
        computed_dtype("int8", "float32"),
        Rule(
            "corners are not aligned where pixels count from their middles",
            lambda op: op.attributes_as(Resize).align_corners and op.attributes_as(Resize).half_pixel_centers,
            "TensorFlow Lite Micro refuses it too",
        ),
        Rule("no place is rounded beyond the input", _outside, "TensorFlow Lite Micro would read outside the input"),
    )

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        if op.output.dtype == "float32":
            return (self.real(op, given(inputs[0])),)
        data = given(inputs[0]).astype(np.int64)
        for axis in (1, 2):
            lower, upper, fraction = bilinear_places(op, axis)
            fraction = fraction.reshape(-1, *(1,) * (3 - axis))
            data = data.take(lower, axis) * (1024 - fraction) + data.take(upper, axis) * fraction
        rounded = np.sign(data) * ((np.abs(data) + (1 << 19)) >> 20)
        return (rounded.astype(np.int8),)

    def real(self, op: Op, data: Array) -> Array:
        """The float32 output."""
        (above, below, down), (left, right, to_right) = real_places(op, 1), real_places(op, 2)
        down, to_right = down[None, :, None, None], to_right[None, None, :, None]
        up, to_left = np.float32(1) - down, np.float32(1) - to_right
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            total = data[:, above][:, :, left] * up * to_left
            total = total + data[:, below][:, :, left] * down * to_left
            total = total + data[:, above][:, :, right] * up * to_right
            total = total + data[:, below][:, :, right] * down * to_right
            rounded: Array = total + np.float32(0)  # TFLM adds 0 for rounding, which turns -0.0 into 0.0
        return rounded

    def rows_read(self, op: Op) -> list[tuple[int, int]]:
        lower, upper, _ = places_of(op, 1)
        return [(min(pair), max(pair)) for pair in zip(lower.tolist(), upper.tolist(), strict=True)]

    def weights_of_rows(self, op: Op) -> list[float]:
        return [float(weight) for weight in places_of(op, 1)[2]]
