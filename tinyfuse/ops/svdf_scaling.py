"""The two requantizations of SVDF, as TFLM derives them: the operator and its kernels need them."""

from __future__ import annotations

import numpy as np

from tinyfuse.fixedpoint import quantize_multiplier
from tinyfuse.ir import Op


def feature_multiplier(op: Op) -> tuple[int, int]:
    """From features' sums to the state; TFLM multiplies and divides the scales in float32."""
    x, features, _, _, state = op.inputs
    scale = np.float32(x.scale) * np.float32(features.scale) / np.float32(state.scale)
    return quantize_multiplier(float(scale))


def time_multiplier(op: Op) -> tuple[int, int]:
    """From sums over time to the output; in float32, too."""
    _, _, time, _, state = op.inputs
    scale = np.float32(state.scale) * np.float32(time.scale) / np.float32(op.output.scale)
    return quantize_multiplier(float(scale))
