"""The two requantizations of SVDF, as TFLM derives them: the operator and its kernels need them."""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import Op, Tensor
from tinyfuse.ir.fixedpoint import quantize_multiplier


def feature_multiplier(op: Op) -> tuple[int, int]:
    """(multiplier, shift) from the features' sums to the state; TFLM multiplies and divides the scales in float32."""
    x, features, _, _, state = op.operands
    return _multiplier(x, features, state)


def time_multiplier(op: Op) -> tuple[int, int]:
    """(multiplier, shift) from the sums over time to the output; TFLM multiplies and divides the scales in float32."""
    _, _, time, _, state = op.operands
    return _multiplier(state, time, op.output)


def _multiplier(a: Tensor, b: Tensor, to: Tensor) -> tuple[int, int]:
    with np.errstate(over="ignore"):  # the rules refuse what is too large
        return quantize_multiplier(float(np.float32(a.scale) * np.float32(b.scale) / np.float32(to.scale)))
