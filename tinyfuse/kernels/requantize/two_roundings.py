"""Requantization by two roundings, as in TensorFlow Lite Micro, in forms that are proven exact
(runtime_c/tinyfuse_requantize.h)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from tinyfuse.ir import Array, Op
from tinyfuse.ir.fixedpoint import clamp, multiply_by_quantized_multiplier
from tinyfuse.kernels.requantize.layer_facts import LayerFacts, layer_facts
from tinyfuse.ops.weight_sums import channel_weights

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

    facts      those of the layer
    term       int64 [out_c], rounding and zero point: (2 * zero_point + 1) * 2^(s - 1) with the right shift s. The C
               adds it to the scaled accumulator before the shift.
    shiftable  bool [out_c], whether multiplier and shift are in range for the form
    """

    facts: LayerFacts
    term: Array
    shiftable: Array

    @cached_property
    def _ends(self) -> Array:
        """Least and greatest output of each channel, int8 [2, out_c]. Requantization is monotone unless its left shift
        wraps."""
        facts = self.facts
        scaled = multiply_by_quantized_multiplier(np.array((facts.least, facts.most)), facts.multipliers, facts.shifts)
        return clamp(scaled + facts.op.output.zero_point, facts.low, facts.high)

    @cached_property
    def constant(self) -> Array:
        """bool [out_c], whether the channel's output is constant."""
        at_least, at_most = self._ends
        found: Array = ~self.facts.left_shift_wraps & (at_least == at_most)
        return found

    @cached_property
    def weights(self) -> Array:
        """Weights, int8 [out_c, terms], in the file's order; zeros for channels whose output is constant."""
        return np.where(self.constant[:, None], np.int8(0), channel_weights(self.facts.op))

    @cached_property
    def channels(self) -> Array:
        """tinyfuse_requant [out_c] in the bounded form."""
        facts, constant, (at_least, _) = self.facts, self.constant, self._ends
        # any accumulator gives the constant: take the nearest to 0
        accumulator = np.minimum(np.maximum(0, facts.least), facts.most)
        as_it_is = self.shiftable & (np.abs(accumulator + self.term) < 2**31)
        as_it_is &= np.abs(accumulator) < LANE_SUMS  # otherwise the whole layer could not use lanes
        plain = constant & ~as_it_is  # multiplied by 1/2, which is exact
        channels = np.zeros(len(constant), REQUANT)
        channels["bias"] = np.where(constant, accumulator, facts.bias)
        channels["bias"][plain] = 2 * (at_least.astype(np.int64) - facts.op.output.zero_point)[plain]
        channels["multiplier"] = np.where(plain, 0, 2 * facts.multipliers - 2**32)
        channels["shift"] = np.where(plain, 0, -facts.shifts - 1)
        return channels

    @property
    def fits_lanes(self) -> bool:
        """True if all sums in packed lanes stay below LANE_SUMS; those of constant channels always do."""
        far = self.facts.reach >= LANE_SUMS
        return not far.any() or not (far & ~self.constant).any()


@lru_cache(maxsize=512)
def bounded(op: Op) -> Bounded | None:
    """The layer in the bounded form, or None if the proof fails for a channel."""
    facts = layer_facts(op)
    if not facts.has_two_roundings or not facts.is_bounded:
        return None
    rounding = 2 * op.output.zero_point + 1
    term = rounding * 2 ** np.maximum(-facts.shifts - 1, 0)
    # the shifted value is between the term and its sum with the accumulator
    shiftable = (facts.multipliers > 0) & (facts.shifts <= -1) & (np.abs(term) < 2**31)
    fits = shiftable & (facts.least + term > -(2**31)) & (facts.most + term < 2**31)
    layer = Bounded(facts, term, shiftable)
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
    facts = layer_facts(op)
    if not facts.has_two_roundings or not facts.is_bounded:
        return None
    shifts = facts.shifts
    plain = Bounded(facts, np.zeros(len(shifts)), np.zeros(len(shifts), bool))
    fits = facts.reach < LANE_SUMS
    fits &= (shifts >= -_MOST_RIGHT) & (shifts <= _MOST_LEFT)
    constant = plain.constant
    if not (fits | constant).all():
        return None
    channels = np.zeros(len(shifts), REQUANT)
    channels["bias"] = np.where(constant, plain.channels["bias"], facts.bias)
    channels["multiplier"] = np.where(constant, 2**30, facts.multipliers)
    channels["shift"] = np.where(constant, 0, np.maximum(-shifts, 0) + 256 * np.maximum(shifts, 0))
    return Shifted(plain.weights, channels)
