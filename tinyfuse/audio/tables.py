"""Computes the constants of a front end, as TFLM's signal library does in Python (python/tflite_micro/signal).

Functions of libm are computed in double and rounded to float32. That is the C library's float32 result except for its
own errors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tinyfuse.ir import Array
from tinyfuse.ops.sequence.signal_filter_bank import GAINS

_F32 = np.float32


def hann_window(samples: int, bits: int) -> Array:
    """Hann window, int16 [samples], with `bits` fraction bits; its period begins half a sample before the first one."""
    at = (np.arange(samples) + 0.5) * (2 * np.pi / samples)
    weights: Array = np.round((0.5 - 0.5 * np.cos(at)) * 2**bits).astype(np.int16)
    return weights


def mel(frequency: float) -> np.float32:
    """Frequency in Hz on the mel scale."""
    share = _F32(frequency) / _F32(700.0)
    return _F32(1127.0) * _F32(math.log1p(float(share)))


@dataclass(frozen=True)
class FilterTables:
    """Tables of SignalFilterBank, int16. Bins from `start` up to `end` (exclusive) have weights."""

    weights: Array
    unweights: Array
    bins: Array
    starts: Array
    widths: Array
    start: int
    end: int


def filter_tables(bins: int, sample_rate: int, channels: int, low: float, high: float, bits: int) -> FilterTables:
    """Triangular filters at equal distances on the mel scale, from `low` to `high` Hz, over the `bins` of a spectrum.

    Each bin has a weight for the channel whose peak comes next, and the rest of 1 for the channel after it; weights
    have `bits` fraction bits. All channels without bins share one bin of weight 0. ValueError if the filters reach the
    spectrum's last bin.
    """
    per_bin = (sample_rate / 2) / (bins - 1)
    lowest, highest = mel(low), mel(high)
    spacing = (highest - lowest) / _F32(channels + 1)
    peaks = lowest + spacing * np.arange(1, channels + 2, dtype=np.float32)
    start = bin_number = round(1 + low / per_bin)
    first: list[int] = []
    widths: list[int] = []
    for peak in peaks:
        first.append(bin_number)
        while mel(bin_number * per_bin) <= peak:
            bin_number += 1
        widths.append(bin_number - first[-1])
    if bin_number >= bins:
        raise ValueError(f"{high:g} Hz is not below half of the sample rate")
    weights: list[int] = [0] if 0 in widths else []
    unweights = weights.copy()
    places = []
    for number, (begin, width) in enumerate(zip(first, widths, strict=True)):
        places.append(len(weights) if width else 0)
        below = peaks[number - 1] if number else lowest
        for i in range(begin, begin + width):
            share = _F32(peaks[number] - mel(i * per_bin)) / _F32(peaks[number] - below)
            weights.append(int(share * (1 << bits)))
            unweights.append(int((1 - share) * (1 << bits)))
    begins = [begin if width else 0 for begin, width in zip(first, widths, strict=True)]
    widths = [width or 1 for width in widths]
    stored = [np.array(table, np.int16) for table in (weights, unweights, begins, places, widths)]
    return FilterTables(stored[0], stored[1], stored[2], stored[3], stored[4], start, bin_number)


def gain_table(strength: float, offset: float, input_bits: int, gain_bits: int) -> Array:
    """Gains of SignalPCAN, int16 [GAINS]: gain(x) = (x + offset)^-strength with `gain_bits` fraction bits, for noise x
    with `input_bits` fraction bits. Each octave of x has a polynomial of degree 2 through three points."""

    def gain(noise: int) -> int:
        level = _F32(noise) / _F32(1 << input_bits) + _F32(offset)
        value = _F32(1 << gain_bits) * _F32(math.pow(float(level), -float(_F32(strength))))
        return 32767 if value > 32767 else int(value + _F32(0.5))

    table = [gain(0), gain(1)]
    for octave in range(2, 33):
        x = 1 << (octave - 1)
        y, middle, last = gain(x), gain(x + (x >> 1)), gain(2 * x if octave < 32 else 2 * x - 1)
        rise = 4 * (middle - y) - (last - y)
        table += [y, rise, (last - y) - rise, 0]
    return np.array(table[:GAINS]).astype(np.int16)
