"""Functions of libm in numpy's float32, operation for operation those of runtime_c/tinyfuse_math.h.

Functions map float32 arrays to float32 arrays of the same shape, with exactly the bits that the C computes (a NaN is
any NaN). The header describes the methods; `ULP` has the errors.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
_Words = npt.NDArray[np.uint32]

#: upper bounds of the error in units of the last place, measured on every seventh float32, and on all in the ranges
#: with the largest errors; tests/exact/test_float_math.py measures a sample
ULP = {"exp": 0.78, "expm1": 1.04, "log": 0.85, "tanh": 1.1, "sin": 0.85, "cos": 0.85}

_INFINITY, _SIGN = np.uint32(0x7F800000), np.uint32(0x80000000)
#: ln(2), in two parts, and its inverse
_LN2_HIGH, _LN2_LOW, _PER_LN2 = np.float32(0.693145752), np.float32(1.42860677e-6), np.float32(1.44269502)


def exp(x: Floats) -> Floats:
    """Return e^x."""
    with np.errstate(all="ignore"):
        size = np.abs(x)
        inside = np.where(size < np.float32(104), x, np.float32(0))
        high, low, exponent = _exp_parts(inside)
        result = _scaled(high + low, exponent)
        result = np.where(size < np.float32(104), result, np.where(x > 0, np.float32(np.inf), np.float32(0)))
        return np.where(np.isnan(x), x, result)


def expm1(x: Floats) -> Floats:
    """Return e^x - 1."""
    with np.errstate(all="ignore"):
        size = np.abs(x)
        small = x + (x * x) * _exp_polynomial(x)
        high, low, exponent = _exp_parts(np.where(size < np.float32(27), x, np.float32(0)))
        scale = _power_of_two(exponent)
        high, low = high * scale, low * scale
        total = high - np.float32(1)
        tail = np.where(x < 0, high - (total + np.float32(1)), (high - total) - np.float32(1))
        result = total + (tail + low)
        result = np.where(_bits(size) < 0x3EB17218, small, result)
        result = np.where(size >= np.float32(27), np.where(x < 0, np.float32(-1), exp(x)), result)
        return np.where(np.isnan(x) | (size < np.float32(2.0**-25)), x, result)


def log(x: Floats) -> Floats:
    """Return the natural logarithm; NaN below 0."""
    with np.errstate(all="ignore"):
        tiny = _bits(x) < 0x800000
        bits = _bits(np.where(tiny, x * np.float32(2**23), x)) - np.uint32(0x3F3504F3)
        k = ((bits.view(np.int32) >> 23) + np.where(tiny, -23, 0)).astype(np.float32)
        f = _of_bits((bits & np.uint32(0x7FFFFF)) + np.uint32(0x3F3504F3)) - np.float32(1)
        s = f / (np.float32(2) + f)
        z = s * s
        even = _polynomial(z, 0.666666627, 0.400009722, 0.284987926, 0.242788181) * z
        half_square = (np.float32(0.5) * f) * f
        rest = s * (half_square + even) + k * _LN2_LOW
        result = k * _LN2_HIGH - ((half_square - rest) - f)
        result = np.where(x < 0, np.float32(np.nan), np.where(x == 0, -np.float32(np.inf), result))
        return np.where(np.isnan(x) | (x == np.float32(np.inf)), x, result)


def tanh(x: Floats) -> Floats:
    """Return the hyperbolic tangent."""
    with np.errstate(all="ignore"):
        size = np.abs(x)
        z = x * x
        odd = _polynomial(
            z,
            -0.333333284,
            0.133331746,
            -0.0539507158,
            0.0217743553,
            -8.57107434e-3,
            3.04812356e-3,
            -8.21203983e-4,
            1.16208641e-4,
        )
        large = np.float32(1) - np.float32(2) / (exp(np.float32(2) * size) + np.float32(1))
        large = np.copysign(np.where(size < np.float32(10), large, np.float32(1)), x)
        result = np.where(size < np.float32(1), x + x * (z * odd), large)
        return np.where(np.isnan(x) | (size < np.float32(2.0**-12)), x, result)


def sin(x: Floats) -> Floats:
    """Return the sine, for arguments of any size; NaN for infinities."""
    return _sine_from(x, 0)


def cos(x: Floats) -> Floats:
    """Return the cosine, for arguments of any size; NaN for infinities."""
    return _sine_from(x, 1)


# --- parts -----------------------------------------------------------------------------------


def _bits(x: Floats) -> _Words:
    return np.asarray(x, np.float32).view(np.uint32)


def _of_bits(bits: _Words) -> Floats:
    return np.asarray(bits, np.uint32).view(np.float32)


def _polynomial(z: Floats, *coefficients: float) -> Floats:
    """Evaluate a polynomial by Horner's scheme; the constant coefficient comes first."""
    *others, highest = (np.float32(c) for c in coefficients)
    total = np.full_like(z, highest)
    for coefficient in reversed(others):
        total = coefficient + total * z
    return total


def _power_of_two(exponent: npt.NDArray[np.int32]) -> Floats:
    """Return 2^exponent for exponents from -126 to 127."""
    return _of_bits((exponent + 127).astype(np.uint32) << np.uint32(23))


def _scaled(value: Floats, exponent: npt.NDArray[np.int32]) -> Floats:
    half = exponent >> 1
    return (value * _power_of_two(half)) * _power_of_two(exponent - half)


def _exp_polynomial(r: Floats) -> Floats:
    return _polynomial(r, 0.5, 0.166666672, 0.0416664816, 8.33320804e-3, 1.39335648e-3, 1.99442657e-4)


def _exp_parts(x: Floats) -> tuple[Floats, Floats, npt.NDArray[np.int32]]:
    """(high, low, exponent) such that e^x is about (high + low) * 2^exponent."""
    exponent = (x * _PER_LN2 + np.where(np.signbit(x), np.float32(-0.5), np.float32(0.5))).astype(np.int32)
    multiples = exponent.astype(np.float32)
    first, second = x - multiples * _LN2_HIGH, multiples * _LN2_LOW
    rest = first - second
    tail = (first - rest) - second
    total = (rest * rest) * _exp_polynomial(rest) + tail
    high = np.float32(1) + rest
    return high, (rest - (high - np.float32(1))) + total, exponent


_TWO_OVER_PI = np.array(
    [0, 0xA2F9836E, 0x4E441529, 0xFC2757D1, 0xF534DDC0, 0xDB629599, 0x3C439041, 0xFE5163AB], np.uint64
)
_LOW_32 = np.uint64(0xFFFFFFFF)


def _reduced_angle(x: Floats) -> tuple[Floats, Floats, _Words]:
    """(high, low, quarter turns modulo 4) of finite values of at least 1/2 in size."""
    bits = _bits(x).astype(np.uint64)
    mantissa = (bits & np.uint64(0x7FFFFF)) | np.uint64(0x800000)
    start = ((bits >> np.uint64(23)) & np.uint64(0xFF)) - np.uint64(120)
    word, shift = (start // np.uint64(32)).astype(np.int64), start % np.uint64(32)
    window = [
        (_TWO_OVER_PI[word + i] << shift & _LOW_32) | _TWO_OVER_PI[word + i + 1] >> (np.uint64(32) - shift)
        for i in range(3)
    ]
    product = ((mantissa * window[0] & _LOW_32) << np.uint64(32)) + mantissa * window[1]
    product = product + (mantissa * window[2] >> np.uint64(32))
    quarters = (product + np.uint64(1 << 61)) >> np.uint64(62)
    product = product - (quarters << np.uint64(62))
    below = product >> np.uint64(63) != 0
    product = np.where(below, np.uint64(0) - product, product)
    quarters = np.where(np.signbit(x), np.uint64(0) - quarters, quarters) & np.uint64(3)
    zeros = np.zeros(x.shape, np.uint64)
    for step in (32, 16, 8, 4, 2, 1):
        short = product >> np.uint64(64 - step) == 0
        product = np.where(short, product << np.uint64(step), product)
        zeros = np.where(short, zeros + np.uint64(step), zeros)
    top = (product >> np.uint64(32)) * np.uint64(0xC90FDAA2) >> np.uint64(32)
    scale = _power_of_two((-29 - zeros.astype(np.int32)).astype(np.int32))
    scale = np.where(below != np.signbit(x), -scale, scale)
    high, low = (top & np.uint64(0xFFFFFF00)).astype(np.float32), (top & np.uint64(0xFF)).astype(np.float32)
    return high * scale, low * scale, quarters.astype(np.uint32)


def _sine_from(x: Floats, quarters: int) -> Floats:
    with np.errstate(all="ignore"):
        finite, large = np.isfinite(x), _bits(np.abs(x)) >= 0x3F490FDB
        high, low, quadrants = _reduced_angle(np.where(finite & large, x, np.float32(1)))
        high, low = np.where(large, high, x), np.where(large, low, np.float32(0))
        quadrants = np.where(large, quadrants, np.uint32(0)) + np.uint32(quarters)
        odd = quadrants & np.uint32(1) != 0
        result = np.where(odd, _cos_polynomial(high, low), _sin_polynomial(high, low))
        result = np.where(quadrants & np.uint32(2) != 0, -result, result)
        result = np.where(np.abs(x) < np.float32(2.0**-12), np.float32(1) if quarters else x, result)
        return np.where(finite, result, np.float32(np.nan))


def _sin_polynomial(r: Floats, low: Floats) -> Floats:
    z = r * r
    odd = _polynomial(z, -0.166666672, 8.33338033e-3, -1.98534981e-4, 2.83724762e-6)
    rest: Floats = low - (np.float32(0.5) * z) * low
    return np.add(r, rest + (r * z) * odd)


def _cos_polynomial(r: Floats, low: Floats) -> Floats:
    z = r * r
    half = np.float32(0.5) * z
    most = np.float32(1) - half
    even = (_polynomial(z, 0.0416666456, -1.38873013e-3, 2.44306611e-5) * z) * z - r * low
    result: Floats = most + (((np.float32(1) - most) - half) + even)
    return result


#: functions by the names of `ULP`
FUNCTIONS: dict[str, Callable[[Floats], Floats]] = {
    "exp": exp,
    "expm1": expm1,
    "log": log,
    "tanh": tanh,
    "sin": sin,
    "cos": cos,
}
