"""How Helium's kernels requantize vectors of outputs: by a single rounding where the compiler proves it
(tinyfuse_vector_output of runtime_c/tinyfuse_half_even.h)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tinyfuse.ir import Array, Op
from tinyfuse.ir.fixedpoint import RANGE
from tinyfuse.kernels.layers.common.params import rectified
from tinyfuse.kernels.requantize.half_even import scale_bits, share_of_single_rounding
from tinyfuse.kernels.requantize.layer_facts import layer_facts
from tinyfuse.kernels.requantize.single_rounding import single_rounding, single_rounding_by_channel
from tinyfuse.ops.core.convolution import FLOAT_HALF_EVEN, clamp_range, rounds_by
from tinyfuse.ops.weight_sums import channel_weights


def by_shifts(op: Op) -> str:
    """Return the variant of two-rounding requantization for a layer with a multiplier and a shift per channel.

    "rectified", "saturated" and "each" are those of runtime_c/tinyfuse_matmul_4x2_mve.h; "shifted" if some channel does
    not shift right.
    """
    facts = layer_facts(op)
    if facts.shifts_left or (not rectified(op) and (facts.shifts == 0).any()):
        return "shifted"
    if rectified(op):
        return "rectified"
    return "saturated" if clamp_range(op) == RANGE["int8"] else "each"


def requantized(op: Op) -> str:
    """Return a layer's variant of requantization: single rounding if it is exact for all channels, half-even if the
    model rounds so, otherwise `by_shifts`."""
    once = _all_single_rounding(op)
    if not once and not rounds_by(op, FLOAT_HALF_EVEN):
        return by_shifts(op)
    name = "single_rounding" if once else "half_even"
    return f"{name}_saturated" if clamp_range(op) == RANGE["int8"] else name


@lru_cache(maxsize=2048)
def _all_single_rounding(op: Op) -> bool:
    if op.estimate_mark:
        return single_rounding(op) is not None
    lines = single_rounding_by_channel(op, zero_point=True)
    return lines is not None and bool(lines[1].all())


def cost_path(op: Op) -> str:
    """Return the cost path of a layer: "single_rounding", "half_even", "shifted", or "each" for the other forms
    of two roundings. Clamps are counted (`requantizing_counts`). Rectified layers take two instructions fewer per
    group, but have no path of their own: nearly all of them have a single rounding."""
    name = requantized(op).removesuffix("_saturated")
    return "each" if name in ("saturated", "rectified") else name


def requantizing_counts(op: Op, groups: float, together: int) -> dict[str, float]:
    """Return two counts of output groups (`together` channels each, `groups` in all): those multiplied in float32, and
    those that need a clamp besides saturation."""
    return {
        "float_groups": groups * share_of_floats(op, together),
        "clamped_groups": groups * (not requantized(op).endswith(("saturated", "rectified"))),
    }


@dataclass(frozen=True, eq=False)
class VectorChannels:
    """Constants of an int8 layer for Helium: int8 weights [out_c, terms], and int32 channels [out_c][3], which the
    header describes."""

    weights: Array
    channels: Array


@lru_cache(maxsize=512)
def vector_channels(op: Op, together: int) -> VectorChannels:
    """Return the constants of a layer for the requantization that `requantized` returns, for C that computes `together`
    channels together."""
    lines = single_rounding_by_channel(op, zero_point=True)
    half_even, shifts = rounds_by(op, FLOAT_HALF_EVEN), np.zeros(op.output.shape[-1], np.int64)
    facts, weights = layer_facts(op), channel_weights(op)
    bias, multipliers = facts.bias, scale_bits(op) if half_even else facts.multipliers
    use = np.zeros(len(bias), bool)
    if _all_single_rounding(op) or half_even:
        shifts += half_even
        if lines is not None:
            use = lines[1].reshape(-1, together).all(axis=1).repeat(together)
    else:
        shifts = facts.shifts
    fields = np.stack([bias, multipliers, shifts], axis=1)
    if lines is not None:
        line = np.stack([lines[0].bias, lines[0].multiplier, np.zeros(len(bias), np.int64)], axis=1)
        fields = np.where(use[:, None], line, fields)
        weights = np.where(use[:, None], lines[0].weights, weights)
    return VectorChannels(weights, fields.astype(np.int32))


def share_of_floats(op: Op, together: int) -> float:
    """Return the share of groups of `together` channels that are multiplied in float32, which takes longer."""
    return 1.0 - share_of_single_rounding(op, together, True) if rounds_by(op, FLOAT_HALF_EVEN) else 0.0
