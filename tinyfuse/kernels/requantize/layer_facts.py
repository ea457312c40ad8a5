"""Facts about a layer's sums and about their requantization, from which every form of requantization is proven."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tinyfuse.ir import Array, Int64s, Op
from tinyfuse.ops.core.convolution import TWO_ROUNDINGS, bias_values, channel_multipliers, clamp_range, rounds_by
from tinyfuse.ops.weight_sums import sums_by_sign


@dataclass(frozen=True, eq=False)
class LayerFacts:
    """Bounds of a layer's sums, and the scales and the clamp by which sums become outputs. Arrays are int64 [out_c];
    callers must not change them.

    op           the layer
    bias         bias - input zero point * sum of weights. Padding then counts as the zero point
    reach        greatest magnitude that a sum may have on its way, over all int8 inputs. Padding is such an input, too
    least, most  least and greatest sum
    multipliers, shifts  see `channel_multipliers`
    low, high    least and greatest stored output
    """

    op: Op
    bias: Int64s
    reach: Int64s
    least: Int64s
    most: Int64s
    multipliers: Array
    shifts: Array
    low: int
    high: int

    @property
    def has_two_roundings(self) -> bool:
        """True if the layer requantizes by TWO_ROUNDINGS."""
        return rounds_by(self.op, TWO_ROUNDINGS)

    @property
    def channels(self) -> Array:
        """int32 [out_c, 3]: bias, multiplier and shift of each channel."""
        return np.stack([self.bias, self.multipliers, self.shifts], axis=1).astype(np.int32)

    @property
    def is_bounded(self) -> bool:
        """True if zero points are int8 values, and no sum leaves int32, not even on its way."""
        zero_points_fit = all(-128 <= t.zero_point <= 127 for t in (self.op.input, self.op.output))
        return zero_points_fit and bool((self.reach < 2**31).all())

    @property
    def biases_fit(self) -> bool:
        """True if all biases fit into int32."""
        return bool((np.abs(self.bias) < 2**31).all())

    @property
    def shifts_left(self) -> bool:
        """True if TWO_ROUNDINGS shift some channel left: its ratio of scales is 1 or more."""
        return self.has_two_roundings and bool((self.shifts > 0).any())

    @property
    def shifts_right(self) -> bool:
        """True if TWO_ROUNDINGS shift no channel left, and all biases fit into int32."""
        return self.has_two_roundings and not self.shifts_left and self.biases_fit

    @property
    def left_shift_wraps(self) -> Array:
        """bool [out_c]: whether TWO_ROUNDINGS shift a sum of the channel left until it leaves int32. Means nothing
        unless `is_bounded`."""
        left = np.clip(self.shifts, 0, 31) * self.has_two_roundings
        found: Array = np.maximum(-self.least, self.most) << left >= 2**31
        return found


@lru_cache(maxsize=2048)
def layer_facts(op: Op) -> LayerFacts:
    """Facts about a layer with int8 weights and a constant bias."""
    positive, negative = sums_by_sign(op)
    bias = bias_values(op) - op.input.zero_point * (positive + negative)
    return LayerFacts(
        op,
        bias,
        np.abs(bias) + 128 * (positive - negative),
        bias - 128 * positive + 127 * negative,
        bias + 127 * positive - 128 * negative,
        *channel_multipliers(op),
        *clamp_range(op),
    )
