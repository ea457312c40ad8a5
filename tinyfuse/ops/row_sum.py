"""ROW_SUM and AVERAGE_OF_SUM: operators of ours, made by rewrite/split_global_pool.py alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tinyfuse.ir import Array, Op, given
from tinyfuse.ir.fixedpoint import clamp
from tinyfuse.ops.base import SAME_ROW, OpFamily, RowWindow
from tinyfuse.ops.convolution import Clamped, clamp_range
from tinyfuse.ops.real import clamp_real, real_clamp


@dataclass(frozen=True)
class AverageOfSum(Clamped):
    """count: how many values the last row sums; activation and clamp: as AVERAGE_POOL_2D's."""

    count: int
    activation: str = "NONE"
    clamp: tuple[int, int] | tuple[float, float] | None = None


def sum_dtype(dtype: str) -> str:
    """What sums of stored values are kept in; those of floats are floats, rounded after each term."""
    return "float32" if dtype == "float32" else "int32"


class RowSumFamily(OpFamily):
    """int8 or int16 [1, H, W, C] -> int32 [1, H, 1, C], or float32 -> float32: row y is the sum of the pixels of
    rows 0 to y, in their order."""

    kind = "ROW_SUM"
    summary = "sums of the rows up to each row"
    in_files = False
    partial = True

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        data, dtype, (_, height, width, channels) = given(inputs[0]), op.output.dtype, op.input.shape
        # in front of the first term stands the 0 that it is added to: it makes 0.0 of -0.0
        terms = np.concatenate([np.zeros((1, channels), dtype), data.reshape(height * width, channels)])
        with np.errstate(over="ignore", invalid="ignore"):
            sums = np.add.accumulate(terms, axis=0, dtype=dtype)
        return (sums[width::width].reshape(op.output.shape),)

    def row_window(self, op: Op, index: int) -> RowWindow | None:
        return SAME_ROW


class AverageOfSumFamily(OpFamily):
    """The last row of ROW_SUM over `count`, of integers with halves away from zero -> [1, 1, 1, C] of the image's
    dtype."""

    kind = "AVERAGE_OF_SUM"
    summary = "the last row of a ROW_SUM over the number of values"
    in_files = False

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        last, count = given(inputs[0])[:, -1:], op.attributes_as(AverageOfSum).count
        if op.output.dtype == "float32":
            return (clamp_real(last / np.float32(count), *real_clamp(op)),)
        total = last.astype(np.int64)
        mean = np.sign(total) * ((np.abs(total) + count // 2) // count)
        return (clamp(mean, *clamp_range(op), op.output.dtype),)

    def row_window(self, op: Op, index: int) -> RowWindow | None:
        # its only row reads only the last one
        return RowWindow(1, 1, -(op.input.shape[1] - 1))
