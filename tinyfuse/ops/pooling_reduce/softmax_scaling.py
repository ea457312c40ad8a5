"""Multipliers and limits that SOFTMAX and LOG_SOFTMAX derive from their input's quantization."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tinyfuse.ir import Op
from tinyfuse.ir.fixedpoint import quantize_multiplier

#: integer bits of the scaled difference that exp reads (Q5.26)
SCALED_DIFFERENCE_BITS = 5


@dataclass(frozen=True)
class Softmax:
    """Attributes of SOFTMAX: `beta`, a factor of the input before exp."""

    beta: float = 0.0


def softmax_scaling(op: Op) -> tuple[int, int, int]:
    """`difference_scaling` of a SOFTMAX."""
    return difference_scaling(op.attributes_as(Softmax).beta * op.input.scale)


def int16_scaling(op: Op) -> tuple[int, int]:
    """(multiplier, shift) of a SOFTMAX of int16: from a difference of stored values to one where 65535 means 10."""
    return quantize_multiplier(op.input.scale * op.attributes_as(Softmax).beta / (10.0 / 65535.0))


def difference_scaling(scale: float) -> tuple[int, int, int]:
    """(multiplier, left shift, least difference): a difference d of stored values, which means
    d * scale, is d * 2^left_shift * multiplier / 2^31 in Q5.26; below `least` its exp counts as zero."""
    real = scale * 2.0 ** (31 - SCALED_DIFFERENCE_BITS)
    multiplier, left_shift = quantize_multiplier(min(real, 2.0**31 - 1.0))
    radius = ((1 << SCALED_DIFFERENCE_BITS) - 1) * 2.0 ** (31 - SCALED_DIFFERENCE_BITS) / 2.0**left_shift
    return multiplier, left_shift, -math.floor(radius)


def reverse_scaling(scale: float) -> tuple[int, int]:
    """(multiplier, shift) from Q5.26 back to a difference of stored values."""
    multiplier, left_shift, _ = difference_scaling(scale)
    return quantize_multiplier(2.0 ** (31 - left_shift) / multiplier)
