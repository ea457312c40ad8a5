"""Warns if the values of data do not suit an input. These are heuristics, which never refuse anything."""

from __future__ import annotations

import numpy as np

from tinyfuse.data.inputs import InputSpec
from tinyfuse.ir import Array

#: ranges in which data and networks usually have their values, the narrowest first
_USUAL = ((0.0, 1.0), (-1.0, 1.0), (0.0, 255.0), (-128.0, 127.0), (-32768.0, 32767.0))
#: a warning is given if more than the first share of the values is beyond an input's range, or if they fill less than
#: the second share of that range
_MOST_BEYOND, _LEAST_FILLED = 0.25, 1 / 16
#: the largest magnitude of data that suits a float network trained on 0 to 1, -1 to 1, or normalized data
_NORMALIZED = 16.0


def range_doubts(spec: InputSpec, real: Array, dtype: np.dtype[np.generic]) -> str | None:
    """Warning if real numbers, which files hold as `dtype`, do not suit an input; None if they may."""
    low, high = float(real.min()), float(real.max())
    values = f"input {spec.name!r}: values from {low:g} to {high:g}"
    if low == high and real.size > 1:
        return f"input {spec.name!r}: every value is {low:g}"
    given = _usual(low, high)
    if spec.dtype == "float32":
        if max(-low, high) <= _NORMALIZED or given is None:
            return None
        return f"{values} for a float input: was it trained on 0 to 1 ({_way(given, (0, 1))}) or -1 to 1?"
    limits = spec.real_range
    if limits is None or dtype.kind != "f":
        return None
    step = (limits[1] - limits[0]) / 255
    beyond = float(((real < limits[0] - step) | (real > limits[1] + step)).mean())
    filled = (high - low) / (limits[1] - limits[0])
    if beyond <= _MOST_BEYOND and filled >= _LEAST_FILLED:
        return None
    told = f"{values} for an input quantized for {limits[0]:g} to {limits[1]:g}"
    wanted = _nearest(limits)
    return told if given is None or wanted is None or given == wanted else f"{told}: {_way(given, wanted)}?"


def _usual(low: float, high: float) -> tuple[float, float] | None:
    """The narrowest usual range of values that contains `low` to `high`; None if these fill only a small part of it."""
    found = next((each for each in _USUAL if each[0] <= low and high <= each[1]), None)
    return found if found and high - low >= _LEAST_FILLED * (found[1] - found[0]) else None


def _nearest(limits: tuple[float, float]) -> tuple[float, float] | None:
    """The usual range whose ends are near those of an input, because calibration rarely gives them exactly."""
    near = 0.1 * (limits[1] - limits[0])
    return next((each for each in _USUAL if all(abs(a - b) <= near for a, b in zip(each, limits, strict=True))), None)


def _way(given: tuple[float, float], wanted: tuple[float, float]) -> str:
    """Words that say how to convert numbers from one range to another."""
    factor = (wanted[1] - wanted[0]) / (given[1] - given[0])
    offset = wanted[0] - given[0] * factor
    words = []
    if factor < 1:
        words.append(f"divide by {1 / factor:g}")
    elif factor > 1:
        words.append(f"multiply by {factor:g}")
    if offset:
        words.append(f"{'add' if offset > 0 else 'subtract'} {abs(offset):g}")
    return " and ".join(words)
