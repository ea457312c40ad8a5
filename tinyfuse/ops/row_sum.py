"""ROW_SUM and AVERAGE_OF_SUM: operators of ours, made by rewrite/split_global_pool.py alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tinyfuse.ir import Array, Op, given
from tinyfuse.ir.fixedpoint import clamp
from tinyfuse.ops.base import SAME_ROW, OpFamily, RowWindow
from tinyfuse.ops.convolution import Clamped, clamp_range


@dataclass(frozen=True)
class AverageOfSum(Clamped):
    """count: how many values the last row sums; activation and clamp: as AVERAGE_POOL_2D's."""

    count: int
    activation: str = "NONE"
    clamp: tuple[int, int] | None = None


class RowSumOperator(OpFamily):
    """int8 [1, H, W, C] -> int32 [1, H, 1, C]: row y is the sum of the pixels of rows 0 to y."""

    kind = "ROW_SUM"
    summary = "sums of the rows up to each row"
    in_files = False
    partial = True

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        return (given(inputs[0]).astype(np.int32).sum(axis=2, keepdims=True).cumsum(axis=1, dtype=np.int32),)

    def row_window(self, op: Op, index: int) -> RowWindow | None:
        return SAME_ROW


class AverageOfSumOperator(OpFamily):
    """The last row of ROW_SUM over `count`, halves away from zero -> int8 [1, 1, 1, C]."""

    kind = "AVERAGE_OF_SUM"
    summary = "the last row of a ROW_SUM over the number of values"
    in_files = False

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        total, count = given(inputs[0])[:, -1:].astype(np.int64), op.attributes_as(AverageOfSum).count
        mean = np.sign(total) * ((np.abs(total) + count // 2) // count)
        return (clamp(mean, *clamp_range(op)),)

    def row_window(self, op: Op, index: int) -> RowWindow | None:
        # its only row reads only the last one
        return RowWindow(1, 1, -(op.input.shape[1] - 1))
