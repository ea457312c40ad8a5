"""Requantization of a layer of one scale along one line that all its outputs share (runtime_c/tinyfuse_requantize.h).

Outputs of one scale are one function of their accumulators, so what is proven of it over all accumulators that any
of them may have (as kernels/requantize/single_rounding.py and kernels/requantize/signed_rounding.py do of each
channel's) serves all. Outputs of one sign, such as a RELU leaves, have a step line. Those of both have a
signed_rounding one: TensorFlow Lite Micro rounds to multiples of 2^-shift, with the shift of the scale, and then halves
of these away from zero, so levels above zero begin one such multiple earlier. On a line of the same shift that is a
bend of 1, and of twice that with each bit more."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tinyfuse.ir import Op
from tinyfuse.kernels.requantize.single_rounding import fit, requantized_steps
from tinyfuse.kernels.requantize.two_roundings import accumulator_range, one_scale
from tinyfuse.ops.core.convolution import TWO_ROUNDINGS, channel_multipliers, clamp_range, rounds_by

#: bits that are a sum's sign where sums are within STEADY: a bend that is to be told by them is within so many
_SIGN_BITS = 3
STEADY = 2 ** (32 - _SIGN_BITS)

#: of a signed_rounding line: a zero point takes 8 bits more, of 32
_MOST_SHIFT = 22


@dataclass(frozen=True)
class PerTensorRounding:
    """Of an accumulator, 256 times of which plus `bias` is A, the output is the floor of

    A * multiplier / 2^(32 + shift), where the line is not signed_rounding,
    ((A * multiplier / 2^32) + rounding - (bend if A < 0 else 0)) / 2^shift, where it is; in parentheses a floor, too.

    bend     0, where it is not signed_rounding; else the rounding's lowest bits
    steady   whether all A are within STEADY
    """

    bend: int
    shift: int
    multiplier: int
    bias: int
    rounding: int
    steady: bool


def per_tensor_rounding(op: Op, shift: int) -> PerTensorRounding | None:
    """The layer's line: a step line of that shift, a signed-rounding one of that shift if it is steady, or a
    signed_rounding one of the scale's shift; None where there is none, or where scales differ."""
    least, most = accumulator_range(op)
    multipliers, shifts = channel_multipliers(op)
    low, high = clamp_range(op)
    zero_point, right = op.output.zero_point, -int(shifts[0])
    zero_points_fit = all(-128 <= t.zero_point <= 127 for t in (op.input, op.output))
    if not rounds_by(op, TWO_ROUNDINGS) or least is None or most is None or not zero_points_fit or low >= high:
        return None
    if not one_scale(multipliers, shifts) or right < 0:
        return None
    outputs = np.arange(low + 1, high + 1)
    ends = int(least.min()), int(most.max())
    steps = requantized_steps(np.array(ends[:1]), np.array(ends[1:]), multipliers[:1], shifts[:1], zero_point, outputs)[
        0
    ]
    used = (ends[0] < steps) & (steps <= ends[1])
    near = used.copy()  # one output more to either side, where there is one
    near[1:] |= used[:-1]
    near[:-1] |= used[1:]
    levels = (outputs - zero_point)[near]
    lines = [(0, shift, 2**31), (1, right, 2**31)]
    if 0 <= shift - right < _SIGN_BITS:
        lines.insert(1, (1 << (shift - right), shift, STEADY))
    for bend, by, most_sum in lines:
        ideal = round(int(multipliers[0]) * 2.0 ** (by - right - 31 + 24))
        if not (used.any() and 0 < ideal < 2**31 and 0 < by <= _MOST_SHIFT):
            continue
        # what a product must reach for an output, on a signed_rounding line for its level
        goals = (levels << (32 + by)) - np.where(levels > 0, bend << 32, 0) if bend else outputs[near] << (32 + by)
        found = fit(steps[near], goals, ideal, *ends)
        if found is None:
            continue
        bias, multiplier = found
        reach = max(abs(256 * end + bias) for end in ends)
        if reach < most_sum:
            return PerTensorRounding(
                bend, by, multiplier, bias, (zero_point << by) + bend if bend else 0, reach < STEADY
            )
    return None
