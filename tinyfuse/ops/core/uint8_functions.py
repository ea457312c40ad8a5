"""Functions of one uint8 value with the arithmetic of LiteRT's reference kernels, which differs from TFLM's for int8.

Stored values and zero points are passed as int8, 128 less than in the uint8 model. Results are int64, not yet clamped
to int8.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tinyfuse.ir import Array, Op
from tinyfuse.ir.fixedpoint import multiply_by_quantized_multiplier, quantize_multiplier

_F32 = np.float32


def nearest(values: Array) -> Array:
    """Values rounded to integers, halves away from zero, and clamped to -2^31..2^31."""
    exact = values.astype(np.float64)
    rounded: Array = np.copysign(np.floor(np.abs(exact) + 0.5), exact).clip(-(2.0**31), 2.0**31).astype(np.int64)
    return rounded


def by_floats(op: Op, values: Array, function: Callable[[float], float]) -> Array:
    """Stored results of `function` for stored values. Real numbers are float32, and so are the results, which
    `function` computes in double (LiteRT, LUTPopulate)."""
    numbers = _F32(op.input.scale) * (values - op.input.zero_point).astype(_F32)
    results = np.array([function(x) for x in numbers.astype(np.float64).tolist()], _F32)
    return nearest(results * (_F32(1) / _F32(op.output.scale))) + op.output.zero_point


def logistic(x: float) -> float:
    """1 / (1 + exp(-x)), each step rounded to float32."""
    power = _F32(math.exp(-x)) if x > -88.0 else _F32(np.inf)
    return float(_F32(1) / (_F32(1) + power))


def rescaled(op: Op, values: Array, factor: float = 1.0) -> Array:
    """Stored values times `factor`, requantized to the output; the real multiplier is computed in float32."""
    ratio = float(_F32(op.input.scale) * _F32(factor) / _F32(op.output.scale))
    scaled = multiply_by_quantized_multiplier(values - op.input.zero_point, *quantize_multiplier(abs(ratio)))
    return op.output.zero_point + (-scaled if ratio < 0 else scaled)


def clamped(op: Op, values: Array, most: float | None) -> Array:
    """Stored outputs of real numbers clamped from 0 to `most` (None: no upper limit)."""
    zero, high = op.output.zero_point, 127
    if most is not None:
        high = min(high, zero + int(nearest(np.array(_F32(most) / _F32(op.output.scale)))))
    return np.clip(rescaled(op, values), max(zero, -128), high)
