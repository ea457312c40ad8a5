"""Layers requantized as onnxruntime does it, by a float32 product, half to even (runtime_c/tinyfuse_half_even.h)."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from tinyfuse.ir import Array, Op
from tinyfuse.ir.fixedpoint import clamp, multiply_half_even
from tinyfuse.kernels.core.kernel import require_proven
from tinyfuse.kernels.requantize.layer_facts import layer_facts
from tinyfuse.kernels.requantize.single_rounding import SingleRounding, single_rounding_by_channel
from tinyfuse.kernels.requantize.two_roundings import LANE_SUMS
from tinyfuse.ops.core.convolution import FLOAT_HALF_EVEN, float_multipliers, rounds_by
from tinyfuse.ops.weight_sums import channel_weights

#: smaller factors count as 0: any int32 times such a factor rounds to 0, and scales for 256ths might be subnormal
_LEAST_SCALE = 2.0**-40

#: exclusive bound on products: an FPU converts them to int32, and the zero point may be added without overflow
_MOST_PRODUCT = 2.0**30


def scale_bits(op: Op, unit: int = 1) -> Array:
    """int32 [out_c]: bits of the float32 factors that requantize sums; a sum counts in `unit`ths, where `unit` is a
    power of two."""
    factors = float_multipliers(op)
    scales = np.where(factors < _LEAST_SCALE, 0, factors).astype("<f4") / np.float32(unit)
    return np.ascontiguousarray(scales, "<f4").view("<i4")


@lru_cache(maxsize=512)
def half_even(op: Op, unit: int) -> SingleRounding | None:
    """Return the layer with a bias and the bits of a float32 scale per channel, for sums in `unit`ths, 1 or 256.

    None for a layer of another rule, or with zero points outside int8, sums beyond int32 (beyond LANE_SUMS in 256ths)
    or products beyond 2^30. A channel whose output is one constant needs none of this: it gets zero weights.
    """
    if not rounds_by(op, FLOAT_HALF_EVEN):
        return None
    facts = layer_facts(op)
    if not facts.is_bounded:
        return None
    ends, zero_point = np.array((facts.least, facts.most)), op.output.zero_point
    outputs = clamp(multiply_half_even(ends, float_multipliers(op)) + zero_point, facts.low, facts.high)
    constant = outputs[0] == outputs[1]
    fits = np.abs(ends).max(axis=0) * float_multipliers(op).astype(np.float64) < _MOST_PRODUCT
    if unit > 1:
        fits &= facts.reach < LANE_SUMS
    if not (fits | constant).all():
        return None
    one = np.array(1 / np.float32(unit), "<f4").view("<i4")
    weights = np.where(constant[:, None], np.int8(0), channel_weights(op))
    bias = np.where(constant, outputs[0].astype(np.int64) - zero_point, facts.bias) * unit
    return SingleRounding(weights, bias, np.where(constant, one, scale_bits(op, unit)).astype(np.int32))


def single_or_half_even(op: Op, groups: Array, extra: Array | int = 0, unit: int = 256) -> Array:
    """Return SINGLE_ROUNDING parameters in the shape of `groups`; each row has the channels that are computed together.

    If all channels of a row have exact single-rounding parameters, the row has these, because they are faster.
    Otherwise it has biases and negated scales for sums in `unit`ths.

    extra: int64 [out_c], added to biases in 256ths. `half_even` must accept the layer.
    """
    rounded = require_proven(half_even(op, unit)).channels(extra)
    rounded["multiplier"] ^= np.int32(-(2**31))  # negates the float32
    lines = single_rounding_by_channel(op)
    if lines is None:
        return rounded[groups]
    line, there = lines
    use = there[groups].all(axis=-1, keepdims=True)
    return np.where(use, line.channels(extra)[groups], rounded[groups])


@lru_cache(maxsize=2048)
def share_of_single_rounding(op: Op, together: int, zero_point: bool = False) -> float:
    """Share of the groups of `together` channels to which `single_or_half_even` gives single rounding; `zero_point` as
    in `single_rounding_by_channel`.

    It is 1 for an estimate: 90 to 98 % of the channels of quantized networks have a single rounding.
    """
    lines = None if op.estimate_mark else single_rounding_by_channel(op, zero_point=zero_point)
    if lines is None:
        return 1.0 if op.estimate_mark else 0.0
    there = lines[1][: len(lines[1]) // together * together]
    return float(there.reshape(-1, together).all(axis=1).mean()) if there.size else 0.0


def each_alone(out_c: int) -> Array:
    """Return groups of one channel each, for C that requantizes each channel by itself."""
    return np.arange(out_c).reshape(-1, 1)
