"""Single-rounding requantization of a layer with one scale for all channels (runtime_c/tinyfuse_requantize.h).

With one scale, all outputs are the same function of their accumulators. So a proof over all accumulators that any
channel can have (as kernels/requantize/single_rounding.py and kernels/requantize/signed_rounding.py give for each
channel) holds for all. Outputs of one sign, for instance after a RELU, have plain single-rounding parameters. Outputs
of both signs need sign-dependent rounding. TensorFlow Lite Micro first rounds to a multiple of 2^-shift, with the
scale's shift, and then to an integer, halves away from zero. So levels above zero (level: output less zero point) begin
one such multiple earlier. `bend` is that multiple in units of 2^-shift of these parameters: 1 with the scale's shift,
and twice as much with each additional bit of shift.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tinyfuse.ir import Op
from tinyfuse.kernels.requantize.layer_facts import layer_facts
from tinyfuse.kernels.requantize.single_rounding import fit_parameters, output_thresholds, with_neighbours
from tinyfuse.kernels.requantize.two_roundings import has_one_scale

#: number of leading bits that are copies of the sign in a sum within STEADY. The C masks the bend with them, so the
#: bend must fit into as many bits
_SIGN_BITS = 3
STEADY = 2 ** (32 - _SIGN_BITS)

#: maximum shift with sign-dependent rounding: the zero point takes 8 more bits of 32
_MOST_SHIFT = 22


@dataclass(frozen=True)
class PerTensorRounding:
    """Parameters of the requantization. With A = 256 * accumulator + bias, the output is the floor of

        A * multiplier / 2^(32 + shift);

    with sign-dependent rounding, it is the floor of

        (floor(A * multiplier / 2^32) + rounding - (bend if A < 0 else 0)) / 2^shift.

    bend    0 without sign-dependent rounding; otherwise the lowest bits of the rounding
    steady  all |A| are below STEADY
    """

    bend: int
    shift: int
    multiplier: int
    bias: int
    rounding: int
    steady: bool


def per_tensor_rounding(op: Op, shift: int) -> PerTensorRounding | None:
    """Parameters of a layer: without sign-dependent rounding and with `shift`; or with it and `shift`, if it is steady;
    or with it and the scale's shift. None if no parameters are exact, or if channels have different scales."""
    facts = layer_facts(op)
    multipliers, shifts, low, high = facts.multipliers, facts.shifts, facts.low, facts.high
    zero_point, right = op.output.zero_point, -int(shifts[0])
    if not facts.has_two_roundings or not facts.is_bounded or low >= high:
        return None
    if not has_one_scale(multipliers, shifts) or right < 0:
        return None
    outputs = np.arange(low + 1, high + 1)
    ends = int(facts.least.min()), int(facts.most.max())
    least, most = np.array(ends[:1]), np.array(ends[1:])
    (steps,) = output_thresholds(least, most, multipliers[:1], shifts[:1], zero_point, outputs)
    used = (ends[0] < steps) & (steps <= ends[1])
    near = with_neighbours(used)
    levels = (outputs - zero_point)[near]
    forms = [(0, shift, 2**31), (1, right, 2**31)]
    if 0 <= shift - right < _SIGN_BITS:
        forms.insert(1, (1 << (shift - right), shift, STEADY))
    for bend, by, max_sum in forms:
        ideal = round(int(multipliers[0]) * 2.0 ** (by - right - 31 + 24))
        if not (used.any() and 0 < ideal < 2**31 and 0 < by <= _MOST_SHIFT):
            continue
        # smallest product for each output, or for its level with sign-dependent rounding
        goals = (levels << (32 + by)) - np.where(levels > 0, bend << 32, 0) if bend else outputs[near] << (32 + by)
        found = fit_parameters(steps[near], goals, ideal, *ends)
        if found is None:
            continue
        bias, multiplier = found
        reach = max(abs(256 * end + bias) for end in ends)
        if reach < max_sum:
            rounding = (zero_point << by) + bend if bend else 0
            return PerTensorRounding(bend, by, multiplier, bias, rounding, reach < STEADY)
    return None
