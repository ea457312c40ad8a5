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

With a shift of its own (`own_shifts`) a channel's ideal multiplier is the one of the two roundings, whatever its real
multiplier is. Its bias has the output zero point, too:

    A * multiplier >= t * 2^shift * 2^32.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tinyfuse.ir import Array, Op
from tinyfuse.kernels.core.c_constants import c_constant
from tinyfuse.kernels.requantize.two_roundings import accumulator_range, folded_bias, wraps
from tinyfuse.ops.core.convolution import TWO_ROUNDINGS, channel_multipliers, clamp_range, rounds_by, scaled_sums
from tinyfuse.ops.weight_sums import channel_weights

SHIFT = c_constant("tinyfuse_requantize.h", "TINYFUSE_SINGLE_ROUNDING_SHIFT")

#: of own shifts: what such goals in 64 bits leave room for
_MOST_SHIFT = 23

#: slopes that are tried to either side of the ideal one; those that are tried at once, before all others; and how much
#: nearer to one another as many lie that are tried in the end
SLOPES = 256
_NEAREST = 33
_FINER = 16

#: 0, -1, 1, -2, 2, ...
_AWAY = np.array([0, *(sign * away for away in range(1, SLOPES + 1) for sign in (-1, 1))])

#: steps to either side that rule slopes out before the others are looked at
_TIGHT = 8

#: beyond every bias
_LEAST, _MOST = -(2**63), 2**63 - 1

#: tinyfuse_single_rounding; with the channel's own shift
SINGLE_ROUNDING = np.dtype([("bias", "<i4"), ("multiplier", "<i4")])
OWN_LINE = np.dtype([*SINGLE_ROUNDING.descr, ("shift", "<i4")])


@dataclass(frozen=True, eq=False)
class SingleRounding:
    """A layer that every channel of is requantized along a step line.

    weights      int8 [out_c, terms]; zeros where the output is one constant
    bias         int64 [out_c], in 256ths, for accumulators with the input zero point folded in
    multiplier   int32 [out_c]
    shift        int32 [out_c], its own of each channel, whose bias has the output zero point, too; None: SHIFT
    """

    weights: Array
    bias: Array
    multiplier: Array
    shift: Array | None = None

    def channels(self, extra: Array | int = 0) -> Array:
        """SINGLE_ROUNDING or OWN_LINE [out_c], with `extra` 256ths added to each bias. A sum may pass through values
        beyond int32 on its way, so the bias wraps."""
        channels = np.zeros(len(self.bias), SINGLE_ROUNDING if self.shift is None else OWN_LINE)
        channels["bias"] = (self.bias + extra).astype(np.int32)
        channels["multiplier"] = self.multiplier
        if self.shift is not None:
            channels["shift"] = self.shift
        return channels


@lru_cache(maxsize=2048)
def single_rounding(op: Op, own_shifts: bool = False) -> SingleRounding | None:
    """The layer's step lines, or None where a channel has none; of an estimated operator whether there are some, so
    to say: nothing else in what is found means anything."""
    if op.estimate_mark:
        if not _is_likely(op, own_shifts):
            return None
        multipliers, shifts = channel_multipliers(op)
        return SingleRounding(channel_weights(op), folded_bias(op), multipliers, shifts if own_shifts else None)
    return line_to_tables(op, None, own_shifts)


def any_single_rounding(op: Op) -> SingleRounding | None:
    """The same, of own shifts where there is none of one, for kernels that have both."""
    return single_rounding(op) or single_rounding(op, own_shifts=True)


def _is_likely(op: Op, own_shifts: bool) -> bool:
    """Whether no channel reaches outputs of both signs: TensorFlow Lite Micro's halves go away from zero, which no line
    does, and nearly all other channels have one. Of FLOAT_HALF_EVEN four channels in ten have none, whatever their
    signs."""
    least, most = accumulator_range(op)
    if least is None or most is None or not _is_fit(op) or not rounds_by(op, TWO_ROUNDINGS):
        return False
    multipliers, shifts = channel_multipliers(op)
    low, high = (end - op.output.zero_point for end in clamp_range(op))
    of_one_sign = low >= 0 or high <= 0
    is_small = least.min() > -(2**23) and most.max() < 2**23 and (own_shifts or shifts.max() <= 7 - SHIFT)
    if of_one_sign and is_small:
        return True
    scales = multipliers * 2.0 ** (shifts - 31)
    least_output, most_output = np.maximum(least * scales, low), np.minimum(most * scales, high)
    no_line = (least_output < -0.5) & (most_output > 0.5)
    too_large = (np.maximum(-least, most) >= 2**23) | (not own_shifts and scales >= 2.0 ** (7 - SHIFT))
    no_line |= too_large & (least_output < most_output)
    return not no_line.any()


def _is_fit(op: Op) -> bool:
    """Whether lines are for the layer's quantization at all: where a left shift wraps, it is not monotone."""
    low, high = clamp_range(op)
    zero_points_fit = all(-128 <= t.zero_point <= 127 for t in (op.input, op.output))
    shifts_right = channel_multipliers(op)[1].max() <= 0
    return zero_points_fit and low <= high and bool(shifts_right or not wraps(op).any())


def line_to_tables(op: Op, tables: Array | None, own_shifts: bool = False) -> SingleRounding | None:
    """The same, each channel having one, where outputs are looked up: int8 [256] or [out_c, 256], of each stored value
    the result, that of -128 first. None: they are not."""
    found = _channel_lines(op, tables, own_shifts, every=True)
    return None if found is None else found[0]


def channel_lines(op: Op) -> tuple[SingleRounding, Array] | None:
    """Return the layer's step lines, and bool [out_c], whether a channel has one: nothing else in a line without means
    anything. None where the layer's quantization or sums aren't for lines at all."""
    return _channel_lines(op, None, own_shifts=False, every=False)


def _channel_lines(op: Op, tables: Array | None, own_shifts: bool, every: bool) -> tuple[SingleRounding, Array] | None:
    """Return what `channel_lines` does, to tables or with own shifts; if `every`, None where a channel has no line."""
    least, most = accumulator_range(op)
    multipliers, shifts = channel_multipliers(op)
    low, high = clamp_range(op)
    zero_point = op.output.zero_point
    if least is None or most is None or not _is_fit(op):
        return None
    outputs = np.arange(low + 1, high + 1)
    steps = layer_steps(op, least, most, outputs)
    weights, bias = channel_weights(op).copy(), folded_bias(op) * 256
    slopes = np.zeros(len(bias), np.int64)
    # of own ones the multiplier as it is: 2^31 of its units are 2^24 of those here
    own = np.clip(7 - shifts, 0, _MOST_SHIFT) if own_shifts else np.full(len(bias), SHIFT)
    ideal = np.rint(multipliers * 2.0 ** np.minimum(shifts - 7 + own, 31)).astype(np.int64)
    used = (least[:, None] < steps) & (steps <= most[:, None])
    if tables is None:
        # one output more to either side, where there is one
        near = used.copy()
        near[:, 1:] |= used[:, :-1]
        near[:, :-1] |= used[:, 1:]
    else:
        near = np.broadcast_to((np.diff(tables) != 0)[..., outputs + 127], used.shape)
        used = used & near
    levels = 2 * outputs if own_shifts else 2 * (outputs - zero_point) - 1
    goals = levels << (31 + own[:, None])  # what products must reach
    plain, offsets = ideal_fits(steps, near, goals, ideal, least, most)
    constant = ~used.any(axis=1)
    slopes, offsets = np.where(plain, ideal, slopes), np.where(constant, 0, offsets)
    there = plain | constant
    for channel in np.flatnonzero(~there):
        at = near[channel]
        ends = int(least[channel]), int(most[channel])
        found = fit(steps[channel][at], goals[channel][at], int(ideal[channel]), *ends)
        if found is not None:
            (offsets[channel], slopes[channel]), there[channel] = found, True
        elif every:
            return None
    reach = np.maximum(np.abs(least * 256 + offsets), np.abs(most * 256 + offsets))
    there &= constant | (reach < 2**31)
    if every and not there.all():
        return None
    offsets, slopes = np.where(there, offsets, 0), np.where(there, slopes, 0)
    bias += offsets
    weights[constant], slopes[constant], own[constant] = 0, 1 << (19 + SHIFT), SHIFT
    result = low + (steps[constant] <= least[constant, None]).sum(axis=1)
    bias[constant] = (result if own_shifts else result - zero_point) << 13
    line = SingleRounding(weights, bias, slopes.astype(np.int32), own.astype(np.int32) if own_shifts else None)
    return line, there


def layer_steps(op: Op, least: Array, most: Array, outputs: Array) -> Array:
    """int64 [channels, outputs]: the least accumulator in least..most that gives at least each output of a layer
    (before the clamp), by the rule that it rounds by; most + 1 where none does."""
    multipliers, shifts = channel_multipliers(op)
    if rounds_by(op, TWO_ROUNDINGS):
        return requantized_steps(least, most, multipliers, shifts, op.output.zero_point, outputs)
    return _searched_steps(op, least, most, multipliers * 2.0 ** (shifts - 31), outputs - op.output.zero_point)


def _searched_steps(op: Op, least: Array, most: Array, scales: Array, levels: Array) -> Array:
    """The same for each level, an output less its zero point, of any rule whose results are monotone and off the exact
    product by a rounding to float32 or double: found by bisection with the rule itself."""
    about = (levels - 0.5) / np.maximum(scales, 2.0**-60)[:, None]
    about = np.floor(np.clip(about, least[:, None] - 1.0, most[:, None] + 1.0)).astype(np.int64)
    # a float32 of an accumulator, and its product, are off by 2^-24 each
    room = 2 + (np.abs(about) >> 21)
    low = np.maximum(
        about - room, least[:, None] - 1
    )  # the last that doesn't give as much, of those that are looked at
    high: Array = np.minimum(about + room, most[:, None] + 1)
    while (high - low > 1).any():
        middle = (low + high) >> 1
        reaches = scaled_sums(op, middle.T).T - levels >= 0
        # neither end is looked at: there may be no accumulator
        split = high - low > 1
        high, low = np.where(split & reaches, middle, high), np.where(split & ~reaches, middle, low)
    return high


def requantized_steps(
    least: Array, most: Array, multipliers: Array, shifts: Array, zero_point: int, outputs: Array
) -> Array:
    """int64 [channels, outputs]: the least accumulator in least..most that gives at least each output
    (before the clamp); most + 1 where none does. None of them wraps where it is shifted to the left.

    Both roundings go up from a half, but for the second of values below zero, and each is undone by a division.
    """
    right, left = np.maximum(-shifts, 0)[:, None], np.clip(shifts, 0, 31)[:, None]
    wanted = outputs - zero_point
    # the least product of both, rounded once, whose second rounding gives what is wanted
    halves = (1 << np.maximum(right - 1, 0)) * (right > 0)
    product = (wanted << right) - halves + ((wanted <= 0) & (right > 0))
    product = np.clip(product, -(2**31) - 1, 2**31)
    least_of = -(-((product << 31) - (1 << 30)) // (np.maximum(multipliers, 1)[:, None] << left))
    nothing = np.where(wanted <= 0, least[:, None], most[:, None] + 1)  # times 0
    found: Array = np.where(multipliers[:, None] > 0, least_of, nothing)
    return np.clip(found, least[:, None], most[:, None] + 1)


def ideal_fits(steps: Array, near: Array, goals: Array, ideal: Array, least: Array, most: Array) -> tuple[Array, Array]:
    """For all channels at once what `fit` finds with the ideal slopes, which mostly do: bool [channels], whether that
    is a line, and int64 [channels], its bias. steps, near [channels, levels]: as in `single_rounding`; goals
    [channels or 1, levels]: as of `fit`."""
    first = -(-goals // np.maximum(ideal, 1)[:, None]) - 256 * steps
    low = np.where(near & (steps <= most[:, None]), first, _LEAST).max(axis=1, initial=_LEAST)
    high = np.where(near & (steps > least[:, None]), first, _MOST - 255).min(axis=1, initial=_MOST - 255) + 255
    return (low <= high) & (ideal > 0) & (ideal < 2**31), (low + high) // 2


def fit(steps: Array, goals: Array, ideal: int, least: int, most: int) -> tuple[int, int] | None:
    """(bias in 256ths, multiplier) of a line that, over the accumulators least..most, reaches goals[i] (of a sum times
    a multiplier) exactly from steps[i] on; from `least` on where that is a step, nowhere where it is most + 1."""
    every = _slopes(ideal, int(steps[-1] - steps[0]))
    slopes = every[(every > 0) & (every < 2**31)]
    low_end, high_end = steps <= most, steps > least

    def biases(slopes: Array, some: Array) -> tuple[Array, Array]:
        """The ends of the biases that fit these steps: of each slope, from `first` on 256 to a step."""
        first = -(-goals[None, some] // slopes[:, None]) - 256 * steps[None, some]
        low = first[:, low_end[some]].max(axis=1, initial=_LEAST)
        return low, first[:, high_end[some]].min(axis=1, initial=_MOST - 255) + 255

    # the steps that leave the ideal slope the least room rule nearly all slopes out
    room = -(-goals // max(ideal, 1)) - 256 * steps
    order = np.argsort(room)
    tight = np.array([0, len(steps) - 1, *order[:_TIGHT], *order[-_TIGHT:]])
    for some in (slopes[:_NEAREST], slopes[_NEAREST:]):
        low, high = biases(some, tight)
        some = some[low <= high]
        for slope in (some[i : i + 1] for i in range(len(some))):
            (low,), (high,) = biases(slope, np.arange(len(steps)))
            if low <= high:
                return int(low + high) // 2, int(slope[0])
    return None


def _slopes(ideal: int, span: int) -> Array:
    """Slopes about the ideal one, nearest first: the last ones miss by an accumulator over the span. Then finer ones,
    of multipliers that are large enough."""
    step = max(1, ideal // max(span, 1) // SLOPES)
    steps = (step, step // _FINER) if step >= _FINER else (step,)
    return ideal + np.concatenate([each * _AWAY for each in steps])
