"""RESIZE_NEAREST_NEIGHBOR and RESIZE_BILINEAR: an image with another number of rows and columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import gcd
from typing import Any

import numpy as np

from tinyfuse.ir import Op, Tensor
from tinyfuse.kernels.indexed import IndexedCopy, IndexedRow
from tinyfuse.ops.base import Operator, RowWindow, Rule
from tinyfuse.ops.movement import constant_vector, ends, one_dtype, ranks


@dataclass(frozen=True)
class Resize:
    """align_corners: the outermost rows of input and output are the same; half_pixel_centers: a row's
    place is its middle. Columns likewise."""

    align_corners: bool = False
    half_pixel_centers: bool = False


def _bad_size(op: Op) -> Tensor | None:
    size, (n, _, _, c) = op.inputs[1], op.input.shape
    if not constant_vector(size, 2):
        return size
    return None if op.output.shape == (n, *size.data.tolist(), c) else op.output


class _Resize(Operator):
    rules = (
        ends(2),
        ranks(4, 4),
        Rule(
            "rows and columns are from 1 to 16384",
            lambda op: next((t for t in (op.input, op.output) if max(t.shape[1:3]) > 16384), None),
        ),
        Rule("the size is constant int32: the output's rows and columns", _bad_size),
    )

    def attributes(self, options: Mapping[str, Any]) -> Resize:
        return Resize(bool(options.get("align_corners", False)), bool(options.get("half_pixel_centers", False)))

    def row_window(self, op: Op, index: int) -> RowWindow | None:
        if index != 0 or op.output.shape[0] != 1:
            return None
        height, rows = op.input.shape[1], op.output.shape[1]
        if op.attributes.align_corners and rows > 1:
            height, rows = height - 1, rows - 1
        common = gcd(height, rows)
        return RowWindow.over(self.rows_read(op), height // common, rows // common)

    def rows_read(self, op: Op) -> list[tuple[int, int]]:
        """(first, last) input row of every output row."""
        raise NotImplementedError


# --- RESIZE_NEAREST_NEIGHBOR -----------------------------------------------------------------


def _nearest(extent: int, count: int, resize: Resize) -> np.ndarray:
    """Of each of `count` output rows (columns), the one of `extent` input rows that it repeats."""
    if resize.align_corners and count > 1:
        scale = np.float32(extent - 1) / np.float32(count - 1)
    else:
        scale = np.float32(extent) / np.float32(count)
    offset = np.float32(0.5 if resize.half_pixel_centers else 0.0)
    place = (np.arange(count).astype(np.float32) + offset) * scale
    # no place is negative: halves away from zero are halves upwards
    found = np.floor(place.astype(np.float64) + 0.5) if resize.align_corners else np.floor(place)
    return np.minimum(found.astype(np.int64), extent - 1)


def _indexes(op: Op) -> tuple[np.ndarray | None, ...]:
    (_, height, width, _), (_, rows, columns, _) = op.input.shape, op.output.shape
    return None, _nearest(height, rows, op.attributes), _nearest(width, columns, op.attributes), None


class ResizeNearestNeighborOperator(_Resize):
    """Places are computed in float32 (TFLM, reference/resize_nearest_neighbor.h)."""

    kind = "RESIZE_NEAREST_NEIGHBOR"
    summary = "rows and columns repeated or left out"
    rules = (*_Resize.rules, one_dtype(("int8", "int16", "float32")))
    kernels = (IndexedRow(_indexes), IndexedCopy(_indexes))

    def reference(self, op: Op, *inputs: np.ndarray | None) -> tuple[np.ndarray, ...]:
        _, rows, columns, _ = _indexes(op)
        return (inputs[0][:, rows][:, :, columns],)

    def rows_read(self, op: Op) -> list[tuple[int, int]]:
        return [(row, row) for row in _indexes(op)[1].tolist()]
