"""ROW_SUM, ROW_MAX, ROW_MIN and AVERAGE_OF_SUM: operators of ours that reduce an image row by row
(rewrite/split_global_pool.py, rewrite/split_full_height.py)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tinyfuse.ir import Array, Op, given
from tinyfuse.ir.fixedpoint import clamp
from tinyfuse.ops.core.convolution import Clamped, clamp_range
from tinyfuse.ops.core.family import SAME_ROW, OpFamily, RowWindow
from tinyfuse.ops.core.real import FLOAT_MAX, clamp_real, real_clamp


@dataclass(frozen=True)
class AverageOfSum(Clamped):
    """Attributes of AVERAGE_OF_SUM. count: number of values in the last row's sums, 1 for extremes; activation and
    clamp: as for AVERAGE_POOL_2D."""

    count: int
    activation: str = "NONE"
    clamp: tuple[int, int] | tuple[float, float] | None = None


def sum_dtype(dtype: str) -> str:
    """Return the dtype of sums of stored values; sums of floats are floats, rounded after each term."""
    return "float32" if dtype == "float32" else "int32"


class _Running(OpFamily):
    """Base of running reductions: output row y reduces rows 0 to y, over all their pixels or over each column. int8 or
    int16 [1, H, W, C] -> int32 [1, H, 1, C] or [1, H, W, C]; float32 -> float32."""

    in_files = False
    partial = True

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        height, data = op.output.shape[1], given(inputs[0])
        terms = data.reshape(-1, op.output.elements // height).astype(op.output.dtype)
        each = len(terms) // height
        return (self.running(terms)[each - 1 :: each].reshape(op.output.shape),)

    def running(self, terms: Array) -> Array:
        """Return running results [n, values] of terms [n, values]: row i is the result of the first i + 1 terms."""
        raise NotImplementedError

    def row_window(self, op: Op, index: int) -> RowWindow | None:
        return SAME_ROW


class RowSumFamily(_Running):
    """ROW_SUM: output row y is the sum of the pixels of rows 0 to y; floats are added in the order of memory."""

    kind = "ROW_SUM"
    summary = "sums of the rows up to each row"

    def running(self, terms: Array) -> Array:
        # sums start from 0, which turns a first term of -0.0 into 0.0
        with_zero = np.concatenate([np.zeros_like(terms[:1]), terms])
        with np.errstate(over="ignore", invalid="ignore"):
            return np.add.accumulate(with_zero, axis=0, dtype=terms.dtype)[1:]


class RowMaxFamily(_Running):
    """ROW_MAX: output row y is the greatest of the pixels of rows 0 to y. Of equal floats (zeros) it is the first; a
    NaN is never greater."""

    kind = "ROW_MAX"
    summary = "greatest values of the rows up to each row"
    sign = 1

    def running(self, terms: Array) -> Array:
        if terms.dtype != np.float32:
            extreme = np.maximum if self.sign > 0 else np.minimum
            return extreme.accumulate(terms, axis=0)
        sign = np.float32(self.sign)
        most, results = np.full(terms.shape[1:], -sign * np.float32(FLOAT_MAX), np.float32), []
        for term in terms:
            most = np.where(sign * most < sign * term, term, most)
            results.append(most)
        return np.stack(results)


class RowMinFamily(RowMaxFamily):
    """ROW_MIN: the running minimum of an image's rows."""

    kind = "ROW_MIN"
    summary = "least values of the rows up to each row"
    sign = -1


class AverageOfSumFamily(OpFamily):
    """AVERAGE_OF_SUM: the last row of ROW_SUM, ROW_MAX or ROW_MIN [1, H, W, C], divided by `count` -> [1, 1, W, C] of
    the image's dtype. Integers are rounded, halves away from zero."""

    kind = "AVERAGE_OF_SUM"
    summary = "the last row of a ROW_SUM over the number of values, or of a ROW_MAX or ROW_MIN"
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
