"""A step of UNIDIRECTIONAL_SEQUENCE_LSTM in float32, every operation rounded in TFLM's order (lstm_eval.cc)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyfuse.ir import Array, Op, float_math, given
from tinyfuse.ir.float_math import Floats
from tinyfuse.ops.core.real import FLOAT_MAX, clamp_real
from tinyfuse.ops.sequence.lstm_scaling import GATES, Lstm

#: beyond this LOGISTIC is 1
_LOGISTIC_ONE = np.float32(16.619047164916992188)
_ONE = np.float32(1)


def logistic(x: Floats) -> Floats:
    """Return 1 / (1 + exp(-x)); below -9, exp(x)."""
    middle = _ONE / (_ONE + float_math.exp(-x))
    return np.where(x > _LOGISTIC_ONE, _ONE, np.where(x < np.float32(-9), float_math.exp(x), middle))


def real_step(op: Op, x: Array, hidden: Array, cell: Array, inputs: Sequence[Array | None]) -> tuple[Array, Array]:
    """Hidden state and cell [B, S] after one step of x [B, I]."""
    sums = {}
    with np.errstate(all="ignore"):
        for gate, (from_input, from_hidden, bias) in GATES.items():
            of_input = _products(x, given(inputs[from_input])) + given(inputs[bias])
            of_hidden = _products(hidden, given(inputs[from_hidden])) + np.float32(0)
            sums[gate] = _finite(of_input) + _finite(of_hidden)
        forget, entry, output = (logistic(sums[gate]) for gate in ("forget", "input", "output"))
        cell = _finite(forget * cell) + _finite(entry * float_math.tanh(sums["cell"]))
        clip = np.float32(op.attributes_as(Lstm).cell_clip)
        if clip > 0:
            cell = np.where(clip < cell, clip, cell)
            cell = np.where(cell < -clip, -clip, cell)
        return _finite(float_math.tanh(cell) * output), cell


def _products(values: Array, weights: Array) -> Array:
    """float32 [B, n] and [S, n] -> [B, S]: each product added to the sum before it."""
    total = np.zeros((values.shape[0], weights.shape[0]), np.float32)
    for i in range(weights.shape[1]):
        total += values[:, i, None] * weights[:, i]
    return total


def _finite(values: Array) -> Array:
    return clamp_real(values, -FLOAT_MAX, FLOAT_MAX)
