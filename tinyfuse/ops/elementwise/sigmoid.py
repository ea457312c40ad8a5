"""LOGISTIC and TANH of int16: interpolation in one table, as in TFLM (reference/integer_ops/logistic.h, tanh.h)."""

from __future__ import annotations

import math

import numpy as np

from tinyfuse.ir import Array, Op, Tensor
from tinyfuse.ops.core.family import Rule

#: indexes at which TFLM's table is 1 above the nearest integer
_ONE_MORE = (
    4, 8, 12, 14, 15, 16, 17, 19, 20, 21, 22, 25, 27, 28, 29, 30, 31, 33, 34, 35, 37, 39, 40, 41, 43, 44, 45,
    46, 49, 50, 54, 62, 63, 64, 66, 82, 86, 93, 100, 103, 112, 116, 135, 255,
)  # fmt: skip
#: sigmoid(i / 24) in 65536ths, uint16[256]
SIGMOID_TABLE = np.array(
    [min(65535, math.floor(65536 / (1 + math.exp(-i / 24)) + 0.5) + (i in _ONE_MORE)) for i in range(256)], np.uint16
)
SIGMOID_TABLE.setflags(write=False)


def power_of_two(scale: float) -> int | None:
    """Exponent of a scale that TFLM treats as a power of two, compared in float32; None for other scales."""
    exponent = np.float32(math.log(scale)) * np.float32(1 / np.float32(math.log(2)))
    rounded = np.copysign(np.floor(np.abs(exponent) + np.float32(0.5)), exponent)
    return int(rounded) if abs(exponent - rounded) < np.float32(1e-3) else None


def sigmoid_scaling(op: Op, left_shifts: tuple[int, ...]) -> tuple[int, int]:
    """(multiplier, right shift) that convert an input to units of 1 / (3 * 4096). `left_shifts`: left shifts for which
    a power-of-two scale needs no other multiplier than 3."""
    exponent = power_of_two(op.input.scale)
    if exponent is not None and 12 + exponent in left_shifts:
        return 3 << (12 + exponent), 0
    multiplier, shift = op.input.scale * 4096.0 * 3.0, 0
    while multiplier <= 32767.0 / 2.0 and shift <= 30:
        multiplier, shift = 2.0 * multiplier, shift + 1
    return int(multiplier), shift


def interpolated(values: Array, multiplier: int, shift: int, bits: int) -> tuple[Array, Array]:
    """(inputs in units of 1 / (3 * 4096), table values at their magnitudes, with `bits` further fraction bits), int64.
    The lowest `bits` bits of a magnitude interpolate between two table entries."""
    data = (values.astype(np.int64) * multiplier + (1 << shift >> 1)) >> shift
    size = np.abs(data)
    index, fraction = np.minimum(size >> bits, 254), size & ((1 << bits) - 1)
    table = SIGMOID_TABLE.astype(np.int64)
    between = (table[index] << bits) + fraction * (table[index + 1] - table[index])
    return data, np.where(size >> bits >= 255, (0x7FFF << 10) if bits == 9 else (0xFFFF << 8), between)


def _bad_input(op: Op) -> Tensor | None:
    # else the product with an int16 takes more than 31 bits
    return op.input if op.input.dtype == "int16" and not 2.0**-44 <= op.input.scale <= 2.0 else None


SIGMOID_RULES = (
    Rule(
        "an int16 output's scale is 1/32768",
        lambda op: op.output if op.output.dtype == "int16" and power_of_two(op.output.scale) != -15 else None,
        "that is the range of the function; quantize with a converter that knows it",
    ),
    Rule("an int16 input's scale is from 2^-44 to 2", _bad_input),
)
