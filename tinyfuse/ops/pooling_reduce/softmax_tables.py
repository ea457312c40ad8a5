"""Tables of SOFTMAX from int16 to int16, and their interpolation (TFLM, kernels/internal/common.h, LUTPopulate and
LUTLookup): 513 values, one for every 128th stored value, interpolated linearly."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np

from tinyfuse.ir import Array, Int64s
from tinyfuse.ir.fixedpoint import RANGE

_LOW, _HIGH = RANGE["int16"]
_STEPS = 512


@cache
def exp_table() -> Array:
    """int16 [513] of exp(x), Q0.15, for x from -10 to 0."""
    return _table(np.float32(10) / np.float32(_HIGH - _LOW), _HIGH, math.exp)


@cache
def reciprocal_table() -> Array:
    """int16 [513] of 1 / (1 + x), Q0.15, for x from 0 to 1."""
    return _table(np.float32(1) / np.float32(_HIGH - _LOW), _LOW, lambda x: 1.0 / float(np.float32(1) + np.float32(x)))


def _table(scale: np.float32, zero_point: int, function: Callable[[float], float]) -> Array:
    """Function values for every 128th stored value, each corrected by half of the interpolation error in the middle of
    its segment. All in float32, as TFLM computes them when it starts."""
    first, last = (scale * np.float32(end - zero_point) for end in (_LOW, _HIGH))
    out_scale = np.float32(2) / np.float32(_HIGH - _LOW)
    inverse = np.float32(_HIGH - _LOW + 1) / (out_scale * np.float32(_HIGH) - out_scale * np.float32(_LOW))
    step = (last - first) / np.float32(_STEPS)
    starts = first + np.arange(_STEPS + 1).astype(np.float32) * step
    middles = starts[:-1] + step / np.float32(2)

    def scaled(places: Array) -> Array:
        values = [np.float32(function(float(place))) for place in places]
        return np.array(values, np.float32) * inverse

    samples, nexts = _rounded(scaled(starts[:-1])), scaled(starts[1:])
    between = _rounded((nexts + samples) / np.float32(2))
    bias = _rounded((between - _rounded(scaled(middles))) / np.float32(2))
    table = np.append(samples - bias, _rounded(scaled(np.array([last]))))
    entries: Array = np.clip(table, _LOW, _HIGH).astype(np.int16)
    return entries


def _rounded(values: Array) -> Array:
    """Values rounded to whole numbers, halves away from zero."""
    whole: Array = np.trunc(values)
    return whole + np.where(
        np.abs(values - whole) >= np.float32(0.5), np.copysign(np.float32(1), values), np.float32(0)
    )


def looked_up(values: Int64s, table: Array) -> Int64s:
    """Table values at int16 `values`, interpolated between the entries."""
    entries, index = table.astype(np.int64), 256 + (values >> 7)
    slope = (entries[index + 1] - entries[index]).astype(np.int16).astype(np.int64)
    found: Int64s = (entries[index] + ((slope * (values & 127) + 64) >> 7)).astype(np.int16).astype(np.int64)
    return found
