"""Requantization with one sign-dependent rounding (runtime_c/tinyfuse_requantize.h), proven channel by channel.

TensorFlow Lite Micro's halves go away from zero, so outputs above zero begin 1 / m accumulators earlier than on the
line of those below (m: the multiplier, 0.5 to 1), and no step line has outputs of both signs. A signed-rounding one is
higher by `bend` where sums aren't negative. With sums in 256ths whose sign is that of the level, an output less its
zero point, level t or more is reached exactly if

    t <= 0:  A * multiplier >= t * 2^SHIFT * 2^32,              A = 256 * accumulator + bias,
    t > 0:   A * multiplier >= (t * 2^SHIFT - bend) * 2^32.

The sign is for free where no zero point is added, so these lines are for outputs that are looked up: the tables begin
where levels do. As with step lines, the biases that fit a level are an interval, and a channel has its line where all
levels at which the table's result changes have one in common.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tinyfuse.ir import Array, Op
from tinyfuse.kernels.core.c_constants import c_constant
from tinyfuse.kernels.requantize.single_rounding import fit, ideal_fits, layer_steps
from tinyfuse.kernels.requantize.two_roundings import accumulator_range, folded_bias
from tinyfuse.ops.core.convolution import TWO_ROUNDINGS, channel_multipliers, clamp_range, rounds_by
from tinyfuse.ops.weight_sums import channel_weights

SHIFT = c_constant("tinyfuse_requantize.h", "TINYFUSE_SIGNED_ROUNDING_SHIFT")

#: tinyfuse_signed_rounding
SIGNED_ROUNDING = np.dtype([("bias", "<i4"), ("multiplier", "<i4"), ("bend", "<i4")])

#: bends that are tried, from the ideal one
_BENDS = (0, -1, 1, -2, 2)

#: what a level is saturated to
_LEVELS = {8: 128, 9: 256}


@dataclass(frozen=True, eq=False)
class SignedRounding:
    """A layer that every channel of is requantized along a single-rounding line with sign-dependent rounding.

    weights      int8 [out_c, terms]; zeros where results are one constant
    bias         int64 [out_c], in 256ths, for accumulators with the input zero point folded in
    multiplier   int32 [out_c]
    bend         int32 [out_c], less than a level
    tables       int8 [2^bits] or [out_c, 2^bits]: the results of levels, the least one first
    """

    weights: Array
    bias: Array
    multiplier: Array
    bend: Array
    tables: Array

    @property
    def bits(self) -> int:
        """What levels are saturated to: 8 or 9."""
        return int(self.tables.shape[-1]).bit_length() - 1

    def channels(self, extra: Array | int = 0) -> Array:
        """tinyfuse_signed_rounding [out_c], with `extra` 256ths added to each bias, which wraps as that of a step
        line."""
        channels = np.zeros(len(self.bias), SIGNED_ROUNDING)
        channels["bias"] = (self.bias + extra).astype(np.int32)
        channels["multiplier"], channels["bend"] = self.multiplier, self.bend
        return channels


def signed_rounding(op: Op, tables: Array) -> SignedRounding | None:
    """The layer's signed-rounding lines to `tables`, int8 [256] or [out_c, 256], of each stored value the result, that
    of -128 first; None where a channel has none."""
    least, most = accumulator_range(op)
    multipliers, shifts = channel_multipliers(op)
    low, high = clamp_range(op)
    zero_point = op.output.zero_point
    zero_points_fit = all(-128 <= t.zero_point <= 127 for t in (op.input, op.output))
    if least is None or most is None or not zero_points_fit or (low, high) != (-128, 127) or (shifts > 0).any():
        return None
    outputs = np.arange(low + 1, high + 1)
    levels = outputs - zero_point
    steps = layer_steps(op, least, most, outputs)
    near = np.broadcast_to(np.diff(tables) != 0, steps.shape)
    used = near & (least[:, None] < steps) & (steps <= most[:, None])
    ideal = np.rint(multipliers * 2.0 ** (shifts - 31 + 24 + SHIFT)).astype(np.int64)
    bend = np.rint(2.0 ** (SHIFT + shifts)).astype(np.int64) * rounds_by(op, TWO_ROUNDINGS)  # others go no way by sign
    if ((ideal <= 0) | (ideal >= 2**31)).any():
        return None
    plain, offset = ideal_fits(steps, near, _goals(levels, bend[:, None]), ideal, least, most)
    constant = ~used.any(axis=1)
    for channel in np.flatnonzero(~plain & ~constant):
        at = near[channel]
        ends = int(least[channel]), int(most[channel])
        for tried in bend[channel] + np.array(_BENDS):
            found = fit(steps[channel][at], _goals(levels[at], tried), int(ideal[channel]), *ends)
            if found is not None:
                break
        else:
            return None
        (offset[channel], ideal[channel]), bend[channel] = found, tried
    offset = np.where(constant, 0, offset)
    if (~constant & (np.maximum(np.abs(least * 256 + offset), np.abs(most * 256 + offset)) >= 2**31)).any():
        return None
    # one table for all channels takes little
    bits = 9 if tables.ndim == 1 or (used & (np.abs(levels) > 127)).any() else 8
    results = _of_levels(tables, zero_point, _LEVELS[bits])
    weights, bias = channel_weights(op).copy(), folded_bias(op) * 256 + offset
    if constant.any():  # these get the level that they have, or the nearest one of the table
        stored = low + (steps <= least[:, None]).sum(axis=1)
        level = np.clip(stored - zero_point, -_LEVELS[bits], _LEVELS[bits] - 1)
        of = np.broadcast_to(tables, (len(bias), 256))
        rows = np.arange(len(bias))
        same = np.broadcast_to(results, (len(bias), results.shape[-1]))[rows, level + _LEVELS[bits]]
        if (constant & (same != of[rows, stored + 128])).any():
            return None
        weights[constant] = 0
        bias[constant] = (2 * level[constant] + 1) << 13
        ideal[constant], bend[constant] = 1 << (18 + SHIFT), 0
    return SignedRounding(weights, bias, ideal.astype(np.int32), bend.astype(np.int32), results)


def _goals(levels: Array, bend: Array) -> Array:
    """What a product must reach for each level."""
    goals: Array = ((levels << SHIFT) - np.where(levels > 0, bend, 0)) << 32
    return goals


def _of_levels(tables: Array, zero_point: int, most: int) -> Array:
    """Of tables of stored values those of the levels -most to most - 1."""
    stored = np.clip(np.arange(-most, most) + zero_point, -128, 127)
    return np.ascontiguousarray(tables[..., stored + 128])
