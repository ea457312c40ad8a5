"""Requantization along a step line (runtime_c/tinyfuse_requantize.h), found and proven channel by channel.

With accumulators in 256ths, output t or more is reached exactly if

    A * multiplier >= ((t - zero point) * 2^SHIFT - 2^(SHIFT - 1)) * 2^32,    A = 256 * accumulator + bias.

TensorFlow Lite Micro's requantization is monotone, so it is the same function exactly if each of its
outputs t begins at the same accumulator x_t: the condition holds for x_t and not for x_t - 1. For one
multiplier that leaves an interval of biases to each t; the channel has its line where the intervals of
all t have a bias in common. Outputs that begin beyond the accumulators that the weights allow leave half an
interval: the line must not reach them within, or must have. The ideal multiplier nearly always has a bias;
where not, slightly other slopes are tried.

Where outputs are looked up in a table, only those steps count at which the table's result changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tinyfuse.ir import Array, Op
from tinyfuse.ir.fixedpoint import multiply_by_quantized_multiplier
from tinyfuse.kernels.c_constants import c_constant
from tinyfuse.kernels.packing import accumulator_range, channel_weights, folded_bias
from tinyfuse.ops.convolution import channel_multipliers, clamp_range

SHIFT = c_constant("tinyfuse_requantize.h", "TINYFUSE_STEP_LINE_SHIFT")

#: slopes that are tried to either side of the ideal one; those that are tried at once, before all others
SLOPES = 256
_NEAREST = 33

#: tinyfuse_line
STEP_LINE = np.dtype([("bias", "<i4"), ("multiplier", "<i4")])


@dataclass(frozen=True, eq=False)
class StepLine:
    """A layer that every channel of is requantized along a step line.

    weights      int8 [out_c, terms]; zeros where the output is one constant
    bias         int64 [out_c], in 256ths, for accumulators with the input zero point folded in
    multiplier   int32 [out_c]
    """

    weights: Array
    bias: Array
    multiplier: Array

    def channels(self, extra: Array | int = 0) -> Array:
        """tinyfuse_step_line [out_c], with `extra` 256ths added to each bias. A sum may pass through values
        beyond int32 on its way, so the bias wraps."""
        channels = np.zeros(len(self.bias), STEP_LINE)
        channels["bias"] = (self.bias + extra).astype(np.int32)
        channels["multiplier"] = self.multiplier
        return channels


@lru_cache(maxsize=2048)
def step_line(op: Op) -> StepLine | None:
    """The layer's step lines, or None where a channel has none."""
    return line_to_tables(op, None)


def line_to_tables(op: Op, tables: Array | None) -> StepLine | None:
    """The same where outputs are looked up: int8 [256] or [out_c, 256], of each stored value the result, that of -128
    first. None: they are not."""
    least, most = accumulator_range(op)
    multipliers, shifts = channel_multipliers(op)
    low, high = clamp_range(op)
    zero_point = op.output.zero_point
    zero_points_fit = all(-128 <= t.zero_point <= 127 for t in (op.input, op.output))
    if least is None or most is None or not zero_points_fit or low > high or (shifts > 0).any():
        return None
    outputs = np.arange(low + 1, high + 1)
    steps = requantized_steps(least, most, multipliers, shifts, zero_point, outputs)
    weights, bias = channel_weights(op).copy(), folded_bias(op) * 256
    slopes = np.zeros(len(bias), np.int64)
    ideal = np.rint(multipliers * 2.0 ** (shifts - 31 + 24 + SHIFT)).astype(np.int64)
    used = (least[:, None] < steps) & (steps <= most[:, None])
    if tables is None:
        # one output more to either side, where there is one
        near = used.copy()
        near[:, 1:] |= used[:, :-1]
        near[:, :-1] |= used[:, 1:]
    else:
        near = np.broadcast_to((np.diff(tables) != 0)[..., outputs + 127], used.shape)
        used = used & near
    goals = _goals(outputs - zero_point)
    plain, offsets = ideal_fits(steps, near, goals[None], ideal, least, most)
    for channel in range(len(bias)):
        if not used[channel].any():
            constant = low + int((steps[channel] <= least[channel]).sum())
            weights[channel] = 0
            bias[channel], slopes[channel] = (constant - zero_point) << 13, 1 << (19 + SHIFT)
            continue
        ends = [int(x[channel]) for x in (least, most)]
        if plain[channel]:
            offset, slopes[channel] = int(offsets[channel]), ideal[channel]
        else:
            at = near[channel]
            found = fit(steps[channel][at], goals[at], int(ideal[channel]), *ends)
            if found is None:
                return None
            offset, slopes[channel] = found
        if max(abs(end * 256 + offset) for end in ends) >= 2**31:
            return None
        bias[channel] += offset
    return StepLine(weights, bias, slopes.astype(np.int32))


def requantized_steps(
    least: Array, most: Array, multipliers: Array, shifts: Array, zero_point: int, outputs: Array
) -> Array:
    """int64 [channels, outputs]: the least accumulator in least..most that gives at least each output
    (before the clamp); most + 1 where none does. Bisection, about what real numbers give first."""
    below = np.repeat(least[:, None] - 1, len(outputs), axis=1)
    reach = np.repeat(most[:, None] + 1, len(outputs), axis=1)
    real = np.maximum(multipliers, 1) * 2.0 ** (shifts - 31)
    near = np.clip(np.floor((outputs - zero_point - 0.5) / real[:, None]), below, reach).astype(np.int64)
    looks = [near + 2, near - 2]
    while looks or (reach - below > 1).any():
        middle = np.clip(looks.pop(), below, reach) if looks else (below + reach) // 2
        scaled = multiply_by_quantized_multiplier(middle, multipliers[:, None], shifts[:, None])
        reaches = scaled + zero_point >= outputs
        inside = (below < middle) & (middle < reach)
        reach = np.where(inside & reaches, middle, reach)
        below = np.where(inside & ~reaches, middle, below)
    return reach


def _goals(levels: Array) -> Array:
    """What a product must reach for each level."""
    goals: Array = (levels << (32 + SHIFT)) - (1 << (31 + SHIFT))
    return goals


def ideal_fits(steps: Array, near: Array, goals: Array, ideal: Array, least: Array, most: Array) -> tuple[Array, Array]:
    """For all channels at once what `fit` finds with the ideal slopes, which mostly do: bool [channels], whether that
    is a line, and int64 [channels], its bias. steps, near [channels, levels]: as in `step_line`; goals
    [channels or 1, levels]: as of `fit`."""
    first = -(-goals // np.maximum(ideal, 1)[:, None]) - 256 * steps
    ends = np.iinfo(np.int64)
    low = np.where(near & (steps <= most[:, None]), first, ends.min).max(axis=1, initial=ends.min)
    high = np.where(near & (steps > least[:, None]), first, ends.max - 255).min(axis=1, initial=ends.max - 255) + 255
    return (low <= high) & (ideal > 0) & (ideal < 2**31), (low + high) // 2


def fit(steps: Array, goals: Array, ideal: int, least: int, most: int) -> tuple[int, int] | None:
    """(bias in 256ths, multiplier) of a line that, over the accumulators least..most, reaches goals[i] (of a sum times
    a multiplier) exactly from steps[i] on; from `least` on where that is a step, nowhere where it is most + 1."""
    every = _slopes(ideal, int(steps[-1] - steps[0]))
    for slopes in (every[:1], every[1:_NEAREST], every[_NEAREST:]):
        slopes = slopes[(slopes > 0) & (slopes < 2**31)]
        # the biases that fit a step: from `first` on, 256 of them
        first = -(-goals[None] // slopes[:, None]) - 256 * steps[None]
        low, high = first[:, steps <= most].max(axis=1), first[:, steps > least].min(axis=1) + 255
        fits = np.flatnonzero(low <= high)
        if len(fits):
            best = fits[0]
            return int(low[best] + high[best]) // 2, int(slopes[best])
    return None


def _slopes(ideal: int, span: int) -> Array:
    """Slopes about the ideal one, nearest first: the last ones miss by an accumulator over the span."""
    step = max(1, ideal // max(span, 1) // SLOPES)
    away = np.arange(1, SLOPES + 1)
    return ideal + step * np.concatenate([[0], np.stack([-away, away], 1).reshape(-1)])
