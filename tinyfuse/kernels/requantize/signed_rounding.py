"""Single-rounding requantization with sign-dependent rounding (runtime_c/tinyfuse_requantize.h), proven per channel.

TensorFlow Lite Micro rounds halves away from zero. So outputs above zero begin 1 / m accumulators earlier (m: the
multiplier, 0.5 to 1) than a straight line through the thresholds below zero predicts, and no single rounding is exact
for outputs of both signs. Sign-dependent rounding adds `bend` to sums that are not negative. With A in 256ths, level t
(the output less its zero point) or more is reached exactly if

    t <= 0:  A * multiplier >= t * 2^SHIFT * 2^32,              A = 256 * accumulator + bias,
    t > 0:   A * multiplier >= (t * 2^SHIFT - bend) * 2^32.

The sign costs nothing if no zero point is added, so this form is for outputs that go through a fused activation LUT,
which is indexed by the level. As with single rounding, the biases that are exact for a level are an interval. A channel
has parameters if the intervals of all levels at which the LUT's result changes have a common bias.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tinyfuse.ir import Array, Op
from tinyfuse.kernels.core.c_constants import c_constant
from tinyfuse.kernels.requantize.layer_facts import layer_facts
from tinyfuse.kernels.requantize.single_rounding import fit_ideal_multipliers, fit_parameters, layer_steps
from tinyfuse.ops.weight_sums import channel_weights

SHIFT = c_constant("tinyfuse_requantize.h", "TINYFUSE_SIGNED_ROUNDING_SHIFT")

#: C struct tinyfuse_signed_rounding
SIGNED_ROUNDING = np.dtype([("bias", "<i4"), ("multiplier", "<i4"), ("bend", "<i4")])

#: differences from the ideal bend, in the order in which they are tried
_BENDS = (0, -1, 1, -2, 2)

#: levels that the C tells apart: -_MOST to _MOST - 1
_MOST = 256


@dataclass(frozen=True, eq=False)
class SignedRounding:
    """Parameters of a layer that is requantized with sign-dependent rounding.

    weights     int8 [out_c, terms]; zeros if a channel's results are one constant
    bias        int64 [out_c], in 256ths, for accumulators with the input zero point folded in
    multiplier  int32 [out_c]
    bend        int32 [out_c], less than a level
    table       int8 [512]: result for each level, the least level first
    """

    weights: Array
    bias: Array
    multiplier: Array
    bend: Array
    table: Array

    def channels(self, extra: Array | int = 0) -> Array:
        """tinyfuse_signed_rounding [out_c], with `extra` 256ths added to each bias. Biases wrap, as in
        `SingleRounding.channels`."""
        channels = np.zeros(len(self.bias), SIGNED_ROUNDING)
        channels["bias"] = (self.bias + extra).astype(np.int32)
        channels["multiplier"], channels["bend"] = self.multiplier, self.bend
        return channels


def signed_rounding(op: Op, table: Array) -> SignedRounding | None:
    """Parameters of a layer whose outputs go through `table`: int8 [256], the result for each stored value, that of
    -128 first. None if a channel has no exact parameters."""
    facts = layer_facts(op)
    least, most, shifts, low, high = facts.least, facts.most, facts.shifts, facts.low, facts.high
    zero_point = op.output.zero_point
    if not facts.is_bounded or (low, high) != (-128, 127) or (shifts > 0).any():
        return None
    outputs = np.arange(low + 1, high + 1)
    levels = outputs - zero_point
    steps = layer_steps(facts, outputs)
    near = np.broadcast_to(np.diff(table) != 0, steps.shape)
    used = near & (least[:, None] < steps) & (steps <= most[:, None])
    ideal = np.rint(facts.multipliers * 2.0 ** (shifts - 31 + 24 + SHIFT)).astype(np.int64)
    # other rules round both signs alike
    bend = np.rint(2.0 ** (SHIFT + shifts)).astype(np.int64) * facts.has_two_roundings
    if ((ideal <= 0) | (ideal >= 2**31)).any():
        return None
    plain, offset = fit_ideal_multipliers(steps, near, _products_to_reach(levels, bend[:, None]), ideal, least, most)
    constant = ~used.any(axis=1)
    for channel in np.flatnonzero(~plain & ~constant):
        at = near[channel]
        ends = int(least[channel]), int(most[channel])
        for tried in bend[channel] + np.array(_BENDS):
            found = fit_parameters(
                steps[channel][at], _products_to_reach(levels[at], tried), int(ideal[channel]), *ends
            )
            if found is not None:
                break
        else:
            return None
        (offset[channel], ideal[channel]), bend[channel] = found, tried
    offset = np.where(constant, 0, offset)
    if (~constant & (np.maximum(np.abs(least * 256 + offset), np.abs(most * 256 + offset)) >= 2**31)).any():
        return None
    results = table[np.clip(np.arange(-_MOST, _MOST) + zero_point, -128, 127) + 128]
    weights, bias = channel_weights(op).copy(), facts.bias * 256 + offset
    if constant.any():  # their sums get the output's level, or the nearest one in the table
        stored = low + (steps <= least[:, None]).sum(axis=1)
        level = np.clip(stored - zero_point, -_MOST, _MOST - 1)
        if (constant & (results[level + _MOST] != table[stored + 128])).any():
            return None
        weights[constant] = 0
        bias[constant] = (2 * level[constant] + 1) << 13
        ideal[constant], bend[constant] = 1 << (18 + SHIFT), 0
    return SignedRounding(weights, bias, ideal.astype(np.int32), bend.astype(np.int32), results)


def _products_to_reach(levels: Array, bend: Array) -> Array:
    """Product that must be reached for each level."""
    goals: Array = ((levels << SHIFT) - np.where(levels > 0, bend, 0)) << 32
    return goals
