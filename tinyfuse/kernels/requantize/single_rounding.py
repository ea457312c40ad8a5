"""Single-rounding requantization (runtime_c/tinyfuse_requantize.h): finds and proves its parameters per channel.

With accumulators in 256ths, output t or more is reached exactly if

    A * multiplier >= ((t - zero point) * 2^SHIFT - 2^(SHIFT - 1)) * 2^32,    A = 256 * accumulator + bias.

TensorFlow Lite Micro's requantization is monotone. So this is the same function if each output t begins at the same
accumulator x_t: the condition holds for x_t and not for x_t - 1. For one multiplier, each t leaves an interval of
biases; the channel has parameters if the intervals of all t have a common bias. An output that begins beyond the
accumulators that the weights allow leaves half an interval: the condition must hold for none of them, or for all. The
ideal multiplier nearly always has a bias; otherwise slightly different ones are tried.

If outputs go through a fused activation LUT, only those outputs t count at which the LUT's result changes.

With a shift of its own (`own_shifts`), a channel's ideal multiplier is that of TensorFlow Lite Micro, for any real
multiplier, and its bias includes the output zero point:

    A * multiplier >= t * 2^shift * 2^32.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tinyfuse.ir import Array, Op
from tinyfuse.kernels.core.c_constants import c_constant
from tinyfuse.kernels.requantize.layer_facts import LayerFacts, layer_facts
from tinyfuse.ops.core.convolution import scaled_sums
from tinyfuse.ops.weight_sums import channel_weights

SHIFT = c_constant("tinyfuse_requantize.h", "TINYFUSE_SINGLE_ROUNDING_SHIFT")

#: maximum of a channel's own shift, so that goals fit into 64 bits
_MOST_SHIFT = 23

#: number of multipliers tried on either side of the ideal one, number of the first ones that are tried together, and
#: factor by which the last ones are closer together
MULTIPLIERS = 256
_NEAREST = 33
_FINER = 16

#: 0, -1, 1, -2, 2, ...
_DISTANCES = np.array([0, *(sign * away for away in range(1, MULTIPLIERS + 1) for sign in (-1, 1))])

#: number of tightest steps at either end that are tested first, because they exclude most multipliers
_TIGHT = 8

#: bounds beyond every bias
_LEAST, _MOST = -(2**63), 2**63 - 1

#: C struct tinyfuse_single_rounding, and the one with the channel's own shift
SINGLE_ROUNDING = np.dtype([("bias", "<i4"), ("multiplier", "<i4")])
CHANNEL_SHIFT_ROUNDING = np.dtype([*SINGLE_ROUNDING.descr, ("shift", "<i4")])


@dataclass(frozen=True, eq=False)
class SingleRounding:
    """Layer requantized with a single rounding.

    weights     int8 [out_c, terms]; zeros if a channel's output is constant
    bias        int64 [out_c], in 256ths, for accumulators with the input zero point folded in
    multiplier  int32 [out_c]
    shift       int32 [out_c], each channel's own, whose bias includes the output zero point; None: all channels have
                SHIFT
    """

    weights: Array
    bias: Array
    multiplier: Array
    shift: Array | None = None

    def channels(self, extra: Array | int = 0) -> Array:
        """Array [out_c] of SINGLE_ROUNDING, or of CHANNEL_SHIFT_ROUNDING if each channel has its own shift, with
        `extra` 256ths added to each bias. Biases wrap, because sums may leave int32 on their way."""
        channels = np.zeros(len(self.bias), SINGLE_ROUNDING if self.shift is None else CHANNEL_SHIFT_ROUNDING)
        channels["bias"] = (self.bias + extra).astype(np.int32)
        channels["multiplier"] = self.multiplier
        if self.shift is not None:
            channels["shift"] = self.shift
        return channels


@lru_cache(maxsize=2048)
def single_rounding(op: Op, own_shifts: bool = False) -> SingleRounding | None:
    """Parameters of a layer; None if a channel has no exact ones. For an estimate: a placeholder that is only tested
    against None."""
    if op.estimate_mark:
        facts = layer_facts(op)
        if not _is_likely(facts, own_shifts):
            return None
        shifts = facts.shifts if own_shifts else None
        return SingleRounding(channel_weights(op), facts.bias, facts.multipliers, shifts)
    return fit_to_tables(op, None, own_shifts)


def any_single_rounding(op: Op) -> SingleRounding | None:
    """Parameters with one shift for all channels if they are exact, otherwise with a shift per channel, for kernels
    that have both forms."""
    return single_rounding(op) or single_rounding(op, own_shifts=True)


def _is_likely(facts: LayerFacts, own_shifts: bool) -> bool:
    """Estimates whether all channels have exact parameters: nearly all do, except those that reach outputs of both
    signs, because TensorFlow Lite Micro rounds halves away from zero. Hardly any layer of FLOAT_HALF_EVEN has exact
    parameters in all channels."""
    if not _is_supported(facts) or not facts.has_two_roundings:
        return False
    least, most, shifts = facts.least, facts.most, facts.shifts
    low, high = (end - facts.op.output.zero_point for end in (facts.low, facts.high))
    of_one_sign = low >= 0 or high <= 0
    is_small = least.min() > -(2**23) and most.max() < 2**23 and (own_shifts or shifts.max() <= 7 - SHIFT)
    if of_one_sign and is_small:
        return True
    scales = facts.multipliers * 2.0 ** (shifts - 31)
    least_output, most_output = np.maximum(least * scales, low), np.minimum(most * scales, high)
    inexact = (least_output < -0.5) & (most_output > 0.5)
    too_large = (np.maximum(-least, most) >= 2**23) | (not own_shifts and scales >= 2.0 ** (7 - SHIFT))
    inexact |= too_large & (least_output < most_output)
    return not inexact.any()


def _is_supported(facts: LayerFacts) -> bool:
    """Tells whether the form is possible for the layer's quantization. It is not if a left shift wraps, because then
    requantization is not monotone."""
    return facts.is_bounded and facts.low <= facts.high and not facts.left_shift_wraps.any()


def fit_to_tables(op: Op, tables: Array | None, own_shifts: bool = False) -> SingleRounding | None:
    """Parameters of a layer whose outputs go through `tables`: int8 [256] or [out_c, 256], the result for each stored
    value, that of -128 first; None: no tables. None if a channel has no exact parameters."""
    found = single_rounding_by_channel(op, tables, own_shifts, every=True)
    return None if found is None else found[0]


def single_rounding_by_channel(
    op: Op, tables: Array | None = None, own_shifts: bool = False, zero_point: bool = False, every: bool = False
) -> tuple[SingleRounding, Array] | None:
    """Single-rounding parameters of a layer, and a bool [out_c] that is True where a channel's parameters are exact.

    Other channels' parameters mean nothing. None if the layer's quantization or range of sums excludes the method, or,
    with `every`, if a channel has no exact parameters.

    tables      as in `fit_to_tables`.
    own_shifts  each channel has its own shift.
    zero_point  biases include the output's zero point, as they do with own shifts.
    """
    facts = layer_facts(op)
    if not _is_supported(facts):
        return None
    least, most, shifts = facts.least, facts.most, facts.shifts
    outputs = np.arange(facts.low + 1, facts.high + 1)
    steps = layer_steps(facts, outputs)
    weights, bias = channel_weights(op).copy(), facts.bias * 256
    fitted = np.zeros(len(bias), np.int64)
    # with its own shift, a channel keeps its multiplier: 2^31 of its units are 2^24 units here
    post_shifts = np.clip(7 - shifts, 0, _MOST_SHIFT) if own_shifts else np.full(len(bias), SHIFT)
    ideal = np.rint(facts.multipliers * 2.0 ** np.minimum(shifts - 7 + post_shifts, 31)).astype(np.int64)
    used = (least[:, None] < steps) & (steps <= most[:, None])
    if tables is None:
        near = with_neighbours(used)
    else:
        near = np.broadcast_to((np.diff(tables) != 0)[..., outputs + 127], used.shape)
        used = used & near
    added = 0 if own_shifts or zero_point else op.output.zero_point
    levels = 2 * outputs if own_shifts else 2 * (outputs - added) - 1
    goals = levels << (31 + post_shifts[:, None])  # smallest product for each output
    plain, offsets = fit_ideal_multipliers(steps, near, goals, ideal, least, most)
    constant = ~used.any(axis=1)
    fitted, offsets = np.where(plain, ideal, fitted), np.where(constant, 0, offsets)
    there = plain | constant
    for channel in np.flatnonzero(~there):
        at = near[channel]
        ends = int(least[channel]), int(most[channel])
        found = fit_parameters(steps[channel][at], goals[channel][at], int(ideal[channel]), *ends)
        if found is not None:
            (offsets[channel], fitted[channel]), there[channel] = found, True
        elif every:
            return None
    reach = np.maximum(np.abs(least * 256 + offsets), np.abs(most * 256 + offsets))
    there &= constant | (reach < 2**31)
    if every and not there.all():
        return None
    offsets, fitted = np.where(there, offsets, 0), np.where(there, fitted, 0)
    bias += offsets
    weights[constant], fitted[constant], post_shifts[constant] = 0, 1 << (19 + SHIFT), SHIFT
    result = facts.low + (steps[constant] <= least[constant, None]).sum(axis=1)
    bias[constant] = (result - added) << 13
    line = SingleRounding(weights, bias, fitted.astype(np.int32), post_shifts.astype(np.int32) if own_shifts else None)
    return line, there


def with_neighbours(used: Array) -> Array:
    """Return a bool [..., outputs]: True for each used output and the outputs next to it."""
    near = used.copy()
    near[..., 1:] |= used[..., :-1]
    near[..., :-1] |= used[..., 1:]
    return near


def layer_steps(facts: LayerFacts, outputs: Array) -> Array:
    """Least accumulators, int64 [channels, outputs], in least..most that give at least each output of a layer (before
    the clamp) by its own rounding rule; most + 1 if none does."""
    least, most, multipliers, shifts = facts.least, facts.most, facts.multipliers, facts.shifts
    zero_point = facts.op.output.zero_point
    if facts.has_two_roundings:
        return output_thresholds(least, most, multipliers, shifts, zero_point, outputs)
    return _searched_steps(facts, multipliers * 2.0 ** (shifts - 31), outputs - zero_point)


def _searched_steps(facts: LayerFacts, scales: Array, levels: Array) -> Array:
    """Find the result of `layer_steps` by bisection with the layer's exact rule. The rule must be monotone, and may
    differ from exact products only by rounding to float32 or double. levels: outputs less the zero point."""
    least, most = facts.least, facts.most
    about = (levels - 0.5) / np.maximum(scales, 2.0**-60)[:, None]
    about = np.floor(np.clip(about, least[:, None] - 1.0, most[:, None] + 1.0)).astype(np.int64)
    # a float32 of an accumulator, and its product, are off by 2^-24 each
    room = 2 + (np.abs(about) >> 21)
    low = np.maximum(about - room, least[:, None] - 1)
    high: Array = np.minimum(about + room, most[:, None] + 1)
    while (high - low > 1).any():
        middle = (low + high) >> 1
        reaches = scaled_sums(facts.op, middle.T).T - levels >= 0
        # neither end is evaluated: it may be no accumulator
        split = high - low > 1
        high, low = np.where(split & reaches, middle, high), np.where(split & ~reaches, middle, low)
    return high


def output_thresholds(
    least: Array, most: Array, multipliers: Array, shifts: Array, zero_point: int, outputs: Array
) -> Array:
    """Least accumulators, int64 [channels, outputs], in least..most that give at least each output (before the clamp);
    most + 1 if none does. No accumulator may wrap when it is shifted left.

    Both roundings round halves up, except the second for negative values. Each is undone by a division.
    """
    right, left = np.maximum(-shifts, 0)[:, None], np.clip(shifts, 0, 31)[:, None]
    wanted = outputs - zero_point
    # least result of the first rounding from which the second rounding gives `wanted`
    halves = (1 << np.maximum(right - 1, 0)) * (right > 0)
    product = (wanted << right) - halves + ((wanted <= 0) & (right > 0))
    product = np.clip(product, -(2**31) - 1, 2**31)
    least_of = -(-((product << 31) - (1 << 30)) // (np.maximum(multipliers, 1)[:, None] << left))
    nothing = np.where(wanted <= 0, least[:, None], most[:, None] + 1)  # multiplier 0
    found: Array = np.where(multipliers[:, None] > 0, least_of, nothing)
    return np.clip(found, least[:, None], most[:, None] + 1)


def fit_ideal_multipliers(
    steps: Array, near: Array, goals: Array, ideal: Array, least: Array, most: Array
) -> tuple[Array, Array]:
    """Results of `fit_parameters` with the ideal multiplier, which is mostly exact, for all channels at once: bool
    [channels], whether it is exact, and int64 [channels], the bias. `steps` int64 [channels, levels]: first accumulator
    of each level; `near` bool [channels, levels]: whether the level counts; `goals` [channels or 1, levels]: as in
    `fit_parameters`."""
    first = -(-goals // np.maximum(ideal, 1)[:, None]) - 256 * steps
    low = np.where(near & (steps <= most[:, None]), first, _LEAST).max(axis=1, initial=_LEAST)
    high = np.where(near & (steps > least[:, None]), first, _MOST - 255).min(axis=1, initial=_MOST - 255) + 255
    return (low <= high) & (ideal > 0) & (ideal < 2**31), (low + high) // 2


def fit_parameters(steps: Array, goals: Array, ideal: int, least: int, most: int) -> tuple[int, int] | None:
    """Finds (bias in 256ths, multiplier) with which, over the accumulators least..most, the product reaches goals[i]
    exactly from accumulator steps[i] on. A step `least` means all accumulators, most + 1 none. None if there is no such
    pair."""
    every = _multipliers_near(ideal, int(steps[-1] - steps[0]))
    multipliers = every[(every > 0) & (every < 2**31)]
    low_end, high_end = steps <= most, steps > least

    def biases(multipliers: Array, some: Array) -> tuple[Array, Array]:
        """(low, high), int64 [multipliers]: the biases from `low` to `high` round the sums at the chosen steps (`some`,
        indexes) as required. One step allows 256 biases."""
        first = -(-goals[None, some] // multipliers[:, None]) - 256 * steps[None, some]
        low = first[:, low_end[some]].max(axis=1, initial=_LEAST)
        return low, first[:, high_end[some]].min(axis=1, initial=_MOST - 255) + 255

    # the steps that leave the ideal multiplier the least room exclude nearly all multipliers
    room = -(-goals // max(ideal, 1)) - 256 * steps
    order = np.argsort(room)
    tight = np.array([0, len(steps) - 1, *order[:_TIGHT], *order[-_TIGHT:]])
    for some in (multipliers[:_NEAREST], multipliers[_NEAREST:]):
        low, high = biases(some, tight)
        some = some[low <= high]
        for multiplier in (some[i : i + 1] for i in range(len(some))):
            (low,), (high,) = biases(multiplier, np.arange(len(steps)))
            if low <= high:
                return int(low + high) // 2, int(multiplier[0])
    return None


def _multipliers_near(ideal: int, span: int) -> Array:
    """Multipliers near the ideal one, nearest first. The last differ by one accumulator over `span`. Then finer steps
    follow if the multiplier is large enough."""
    step = max(1, ideal // max(span, 1) // MULTIPLIERS)
    steps = (step, step // _FINER) if step >= _FINER else (step,)
    return ideal + np.concatenate([each * _DISTANCES for each in steps])
