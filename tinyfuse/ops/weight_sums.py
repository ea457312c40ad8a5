"""Sums of the weights of each output channel, which bound a layer's accumulators."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from tinyfuse.ir import Array, Int64s, Op, Tensor
from tinyfuse.ops import FAMILIES


def channel_weights(op: Op) -> Array:
    """Return a layer's weights as int8 [out_c, terms], whatever the order of its kind."""
    return _by_channel(op.operand(1), FAMILIES[op.kind].depthwise)


def sums_by_sign(op: Op) -> tuple[Int64s, Int64s]:
    """Return the sums of each output channel's positive and of its negative weights; read-only arrays."""
    return _sums_by_sign(op.operand(1), FAMILIES[op.kind].depthwise)


def _by_channel(weights: Tensor, depthwise: bool) -> Array:
    data: Array = weights.values
    return data.reshape(-1, data.shape[3]).T if depthwise else data.reshape(data.shape[0], -1)


@lru_cache(maxsize=512)
def _sums_by_sign(tensor: Tensor, depthwise: bool) -> tuple[Int64s, Int64s]:
    weights = _by_channel(tensor, depthwise)
    # floats hold these integers exactly, and numpy adds them up faster
    real = weights.astype(np.float32 if weights.shape[1] < 2**16 else np.float64)
    ones = np.ones(weights.shape[1], real.dtype)
    sums = (real @ ones).astype(np.int64)
    sizes = (np.abs(real, out=real) @ ones).astype(np.int64)
    return (sums + sizes) >> 1, (sums - sizes) >> 1
