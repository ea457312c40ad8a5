"""Requantization by two roundings, as in TensorFlow Lite Micro, in forms that are proven exact
(runtime_c/tinyfuse_requantize.h)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from tinyfuse.ir import Array, Int64s, Op
from tinyfuse.ir.fixedpoint import clamp, multiply_by_quantized_multiplier
from tinyfuse.kernels.core.kernel import require_proven
from tinyfuse.ops.core.convolution import TWO_ROUNDINGS, bias_values, channel_multipliers, clamp_range, rounds_by
from tinyfuse.ops.weight_sums import channel_weights, sums_by_sign

#: C struct tinyfuse_requant
REQUANT = np.dtype([("bias", "<i4"), ("multiplier", "<i4"), ("shift", "<i4")])


def has_one_scale(multipliers: Array, shifts: Array) -> bool:
    """Tells whether all channels have the same multiplier and shift."""
    return bool((multipliers == multipliers[0]).all() and (shifts == shifts[0]).all())


#: exclusive bound on sums in packed lanes (runtime_c/tinyfuse_matmul.h)
LANE_SUMS = 2**23


@dataclass(frozen=True, eq=False)
class Bounded:
    """Layer that is proven to give the same outputs by tinyfuse_requantize_bounded. A channel with a constant output
    needs no proof: it gets zero weights and a bias that gives the constant, if possible with its own multiplier, so
    that all channels may share one. The arrays for the C are computed when they are first needed.

    op         layer
    term       int64 [out_c], rounding and zero point: (2 * zero_point + 1) * 2^(s - 1) with the right shift s. The C
               adds it to the scaled accumulator before the shift.
    shiftable  bool [out_c], whether multiplier and shift are in range for the form
    """

    op: Op
    term: Array
    shiftable: Array

    @cached_property
    def _ends(self) -> Array:
        """Least and greatest output of each channel, int8 [2, out_c]. Requantization is monotone unless its left shift
        wraps."""
        op = self.op
        scaled = multiply_by_quantized_multiplier(np.array(accumulator_range(op)), *channel_multipliers(op))
        return clamp(scaled + op.output.zero_point, *clamp_range(op))

    @cached_property
    def constant(self) -> Array:
        """bool [out_c], whether the channel's output is constant."""
        at_least, at_most = self._ends
        found: Array = ~left_shift_wraps(self.op) & (at_least == at_most)
        return found

    @cached_property
    def weights(self) -> Array:
        """Weights, int8 [out_c, terms], in the file's order; zeros for channels whose output is constant."""
        return np.where(self.constant[:, None], np.int8(0), channel_weights(self.op))

    @cached_property
    def channels(self) -> Array:
        """tinyfuse_requant [out_c] in the bounded form."""
        op, constant, (at_least, _), (least, most) = self.op, self.constant, self._ends, accumulator_range(self.op)
        multipliers, shifts = channel_multipliers(op)
        # any accumulator gives the constant: take the nearest to 0
        accumulator = np.minimum(np.maximum(0, require_proven(least)), require_proven(most))
        as_it_is = self.shiftable & (np.abs(accumulator + self.term) < 2**31)
        as_it_is &= np.abs(accumulator) < LANE_SUMS  # otherwise the whole layer could not use lanes
        plain = constant & ~as_it_is  # multiplied by 1/2, which is exact
        channels = np.zeros(len(constant), REQUANT)
        channels["bias"] = np.where(constant, accumulator, folded_bias(op))
        channels["bias"][plain] = 2 * (at_least.astype(np.int64) - op.output.zero_point)[plain]
        channels["multiplier"] = np.where(plain, 0, 2 * multipliers - 2**32)
        channels["shift"] = np.where(plain, 0, -shifts - 1)
        return channels

    @property
    def fits_lanes(self) -> bool:
        """True if all sums in packed lanes stay below LANE_SUMS; those of constant channels always do."""
        positive, negative = sums_by_sign(self.op)
        far = np.abs(folded_bias(self.op)) + 128 * (positive - negative) >= LANE_SUMS
        return not far.any() or not (far & ~self.constant).any()


@lru_cache(maxsize=512)
def bounded(op: Op) -> Bounded | None:
    """The layer in the bounded form, or None if the proof fails for a channel."""
    multipliers, shifts = channel_multipliers(op)
    zero_point = op.output.zero_point
    if not rounds_by(op, TWO_ROUNDINGS) or not -128 <= op.input.zero_point <= 127 or not -128 <= zero_point <= 127:
        return None
    least, most = accumulator_range(op)
    if least is None or most is None:
        return None
    rounding = 2 * zero_point + 1
    term = rounding * 2 ** np.maximum(-shifts - 1, 0)
    # the shifted value is between the term and its sum with the accumulator
    shiftable = (multipliers > 0) & (shifts <= -1) & (np.abs(term) < 2**31)
    fits = shiftable & (least + term > -(2**31)) & (most + term < 2**31)
    layer = Bounded(op, term, shiftable)
    return layer if fits.all() or (fits | layer.constant).all() else None


#: maximum shifts of tinyfuse_requantize_shifted, to the right and to the left
_MOST_RIGHT, _MOST_LEFT = 22, 6


@dataclass(frozen=True, eq=False)
class Shifted:
    """Layer fit for tinyfuse_requantize_shifted, which allows scales of 1/2 and more beside smaller ones.

    weights   int8 [out_c, terms]; zeros if a channel's output is constant
    channels  tinyfuse_requant [out_c]: folded bias, multiplier, and both shifts in one number
    """

    weights: Array
    channels: Array


@lru_cache(maxsize=512)
def shifted(op: Op) -> Shifted | None:
    """Layer requantized by the shifted form, whose channels may shift either way; None if a channel's sums or shifts
    are too large for it."""
    zero_point = op.output.zero_point
    if not -128 <= op.input.zero_point <= 127 or not -128 <= zero_point <= 127 or accumulator_range(op)[0] is None:
        return None
    if not rounds_by(op, TWO_ROUNDINGS):
        return None
    multipliers, shifts = channel_multipliers(op)
    plain = Bounded(op, np.zeros(len(shifts)), np.zeros(len(shifts), bool))
    bias, (positive, negative) = folded_bias(op), sums_by_sign(op)
    fits = np.abs(bias) + 128 * (positive - negative) < LANE_SUMS
    fits &= (shifts >= -_MOST_RIGHT) & (shifts <= _MOST_LEFT)
    constant = plain.constant
    if not (fits | constant).all():
        return None
    channels = np.zeros(len(shifts), REQUANT)
    channels["bias"] = np.where(constant, plain.channels["bias"], bias)
    channels["multiplier"] = np.where(constant, 2**30, multipliers)
    channels["shift"] = np.where(constant, 0, np.maximum(-shifts, 0) + 256 * np.maximum(shifts, 0))
    return Shifted(plain.weights, channels)


@lru_cache(maxsize=512)
def accumulator_range(op: Op) -> tuple[Array, Array] | tuple[None, None]:
    """(least, most) accumulators of each channel, int64 [out_c], bias included, over all int8 inputs (padding is an
    int8 value, too). (None, None) if an accumulator may leave int32, also on its way. Callers must not change the
    arrays."""
    bias, (positive, negative) = folded_bias(op), sums_by_sign(op)
    if (np.abs(bias) + 128 * (positive - negative) >= 2**31).any():
        return None, None
    return bias - 128 * positive + 127 * negative, bias + 127 * positive - 128 * negative


def left_shift_wraps(op: Op) -> Array:
    """bool [out_c]: whether an accumulator of the channel leaves int32 when it is shifted left. Requires an
    `accumulator_range`."""
    least, most = accumulator_range(op)
    left = np.minimum(np.maximum(channel_multipliers(op)[1], 0), 31) * rounds_by(op, TWO_ROUNDINGS)
    found: Array = np.maximum(-require_proven(least), require_proven(most)) << left >= 2**31
    return found


@lru_cache(maxsize=512)
def folded_bias(op: Op) -> Int64s:
    """bias - input zero point * sum of weights, int64 [out_c]. Padding then counts as the zero point. Callers must not
    change the array."""
    positive, negative = sums_by_sign(op)
    return bias_values(op) - op.input.zero_point * (positive + negative)


@lru_cache(maxsize=512)
def shifts_right(op: Op) -> bool:
    """Tells whether a layer of TWO_ROUNDINGS shifts no channel left and all folded biases fit into int32."""
    return rounds_by(op, TWO_ROUNDINGS) and not shifts_left(op) and biases_fit(op)


def shifts_left(op: Op) -> bool:
    """Tells whether a layer of TWO_ROUNDINGS shifts some channel left: its ratio of scales is 1 or more."""
    return rounds_by(op, TWO_ROUNDINGS) and bool((channel_multipliers(op)[1] > 0).any())


def biases_fit(op: Op) -> bool:
    """Tells whether all folded biases fit into int32."""
    return bool((np.abs(folded_bias(op)) < 2**31).all())
