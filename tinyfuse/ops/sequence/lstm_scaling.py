"""Multipliers, shifts and zero points that UNIDIRECTIONAL_SEQUENCE_LSTM derives from its tensors' quantization as TFLM
does. The operator's reference and its kernels use them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from tinyfuse.ir import Array, Op, Tensor
from tinyfuse.ir.fixedpoint import quantize_multiplier

#: gates in the order in which our kernel computes them -> places of the operator's inputs: weights of the input,
#: weights of the hidden state, bias
GATES = {"forget": (2, 6, 13), "input": (1, 5, 12), "cell": (3, 7, 14), "output": (4, 8, 15)}
HIDDEN, CELL = 18, 19
#: inputs that the plain LSTM has: peepholes, projection and layer normalization are left out
PRESENT = (0, *range(1, 9), *range(12, 16), HIDDEN, CELL)
INPUTS = 24

#: scale of a gate before its nonlinearity (Q3.12), and of what that gives (Q0.15)
_BEFORE, _AFTER = 2.0**-12, 2.0**-15

#: where TFLM's table of the logistic function is 1 above the nearest integer
_ROUNDED_UP = (
    4,
    8,
    12,
    14,
    15,
    16,
    17,
    19,
    20,
    21,
    22,
    25,
    27,
    28,
    29,
    30,
    31,
    33,
    34,
    35,
    37,
    39,
    40,
    41,
    43,
    44,
    45,
    46,
    49,
    50,
    54,
    62,
    63,
    64,
    66,
    82,
    86,
    93,
    100,
    103,
    112,
    116,
    135,
    255,
)


@dataclass(frozen=True)
class Lstm:
    """Attributes of UNIDIRECTIONAL_SEQUENCE_LSTM.

    activation      activation of the cell gate
    cell_clip       clamp of the cell in real units; 0 for none
    time_major      the input is [T, B, I], else [B, T, I]
    last_step_only  the output is the hidden state after the last step, of length 1 along time
    """

    activation: str = "NONE"
    cell_clip: float = 0.0
    time_major: bool = False
    last_step_only: bool = False


@cache
def logistic_table() -> Array:
    """65536 / (1 + exp(-i / 24)) for i in 0..255, uint16, read-only: what int16 logistic and tanh interpolate."""
    table = np.array([round(65536 / (1 + math.exp(-i / 24))) for i in range(256)])
    table[list(_ROUNDED_UP)] += 1
    table = table.astype(np.uint16)
    table.flags.writeable = False
    return table


def gate_multipliers(op: Op, gate: str) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the multipliers of a gate's products with the input and with the hidden state, to its sum in Q3.12."""
    from_input, from_hidden, _ = (op.operand(i) for i in GATES[gate])
    return _gate_multiplier(op.operand(0), from_input), _gate_multiplier(op.operand(HIDDEN), from_hidden)


def _gate_multiplier(values: Tensor, weights: Tensor) -> tuple[int, int]:
    # the product of the scales is float32, the quotient a double
    return quantize_multiplier(float(np.float32(values.scale) * np.float32(weights.scale)) / _BEFORE)


def cell_multipliers(op: Op) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the multipliers of forget gate times cell, and of input gate times cell gate, to the cell."""
    scale = op.operand(CELL).scale
    return quantize_multiplier(_AFTER * scale / scale), quantize_multiplier(_AFTER * _AFTER / scale)


def hidden_multiplier(op: Op) -> tuple[int, int]:
    """Return the multiplier of output gate times tanh of the cell, to the hidden state."""
    return quantize_multiplier(_AFTER * _AFTER / op.operand(HIDDEN).scale)


def cell_power(op: Op) -> int:
    """The power of two that is nearest to the cell's scale."""
    return round(math.log2(op.operand(CELL).scale))


def tanh_input(op: Op) -> tuple[int, int]:
    """(multiplier, right shift) from the cell to the input of tanh, 3/4 times Q3.12."""
    shift = 15 + cell_power(op) - 3
    return (3, -shift) if shift < 0 else (3 << shift, 0)


def cell_clip(op: Op) -> int:
    """The clip of the cell in its stored units, 0: none."""
    clip = op.attributes_as(Lstm).cell_clip
    if clip <= 0:
        return 0
    return int(min(float(np.float32(clip)) / op.operand(CELL).scale, 32767.0))
