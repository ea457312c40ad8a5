"""What operators on float32 share: the ranges of fused activations, clamps, and sums in TFLM's order.

Every operation is rounded to float32, none is left out or reordered: so the C computes the same bits.
"""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import Array, Op
from tinyfuse.ops.core.convolution import Clamped

#: the largest finite float32
FLOAT_MAX = float(np.finfo(np.float32).max)

_RANGES = {
    "NONE": (-FLOAT_MAX, FLOAT_MAX),
    "RELU": (0.0, FLOAT_MAX),
    "RELU6": (0.0, 6.0),
    "RELU_N1_TO_1": (-1.0, 1.0),
}


def real_range(activation: str) -> tuple[float, float]:
    """(low, high) to which a fused activation clamps. Even NONE clamps infinities to the largest finite values, as TFLM
    does."""
    return _RANGES[activation]


def real_clamp(op: Op) -> tuple[float, float]:
    """(low, high) of the float32 output of an operator that ends in a clamp."""
    attributes = op.attributes_as(Clamped)
    return real_range(attributes.activation) if attributes.clamp is None else attributes.clamp


def clamp_real(values: Array, low: float, high: float) -> Array:
    """float32 values clamped as C++'s std::max and std::min do: -0.0 is not below 0.0, and NaN stays."""
    floor, ceiling = np.float32(low), np.float32(high)
    raised = np.where(values < floor, floor, values)
    clamped: Array = np.where(ceiling < raised, ceiling, raised)
    return clamped


def greatest(values: Array) -> Array:
    """float32 [..., n] -> [..., 1]: the greatest element along the last dimension, the first of equal ones. NaN is
    skipped, and the result is at least -FLOAT_MAX."""
    most = np.full((*values.shape[:-1], 1), -FLOAT_MAX, np.float32)
    for column in range(values.shape[-1]):
        value = values[..., column : column + 1]
        most = np.where(most < value, value, most)
    return most


def sum_in_order(terms: Array) -> Array:
    """float32 [n, ...] -> [...]: 0 plus the first term, plus the second, and so on, each sum rounded."""
    zero = np.zeros((1, *terms.shape[1:]), np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        sums = np.add.accumulate(np.concatenate([zero, terms]), axis=0, dtype=np.float32)
    return np.array(sums[-1], order="C")


def real_bias(op: Op) -> Array:
    """The bias of a float32 layer, zeros where it is absent."""
    bias = op.optional(2)
    return np.zeros(op.output.shape[-1], np.float32) if bias is None else bias.values.reshape(-1)


def real_outputs(op: Op, sums: Array) -> Array:
    """float32 outputs of a layer from float32 sums [..., out_c] that have no bias yet."""
    with np.errstate(all="ignore"):
        total = sums + real_bias(op)
    return clamp_real(total, *real_clamp(op))
