"""Functions that are computed in float64 and rounded to float32 at the end, with the same operations as
runtime_c/tinyfuse_double.h.

They take arrays and return arrays of the same shape, with exactly the bits that the C computes (a NaN is any NaN).
Methods: W. J. Cody and W. Waite, Software Manual for the Elementary Functions (1980). The complementary error function
is an exponential of -x^2 times a polynomial of 1 / (1 + x / 2), fitted at Chebyshev's nodes.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from tinyfuse.ir.float_math import Floats

_Doubles = npt.NDArray[np.float64]

#: ln(2) in two parts, of which the first has zeros enough for exact products with an exponent; 1/2!, 1/3!, ... 1/13!
_LN2_HIGH, _LN2_LOW, _PER_LN2 = 0.693147180369123816490, 1.90821492927058770002e-10, 1.44269504088896338700
_INVERSE_FACTORIALS = tuple(1 / math.factorial(n) for n in range(13, 1, -1))
#: bits of sqrt(1/2)
_ROOT_HALF = np.uint64(0x3FE6A09E667F3BCD)


def exp(x: _Doubles) -> _Doubles:
    """Return e^x: a power of two times a polynomial."""
    inside = np.clip(np.where(np.isnan(x), 0.0, x), -745.2, 709.8)
    exponent = np.trunc(inside * _PER_LN2 + np.where(inside < 0, -0.5, 0.5))
    r = (inside - exponent * _LN2_HIGH) - exponent * _LN2_LOW
    total = 1.0 + (r + (r * r) * _polynomial(r, _INVERSE_FACTORIALS))
    half = np.trunc(exponent / 2)
    with np.errstate(over="ignore"):  # just below the limit
        result = (total * _two_to(half)) * _two_to(exponent - half)
    result = np.where(x > 709.8, np.inf, np.where(x < -745.2, 0.0, result))
    return np.where(np.isnan(x), x, result)


#: 1/19, 1/17, ... 1/3
_ODD_INVERSES = tuple(1 / n for n in range(19, 1, -2))


def _log(x: _Doubles) -> _Doubles:
    """Return the natural logarithm of normal numbers above 0."""
    bits = x.view(np.uint64) - _ROOT_HALF
    k = (bits.view(np.int64) >> 52).astype(np.float64)
    f = ((bits & np.uint64(0xFFFFFFFFFFFFF)) + _ROOT_HALF).view(np.float64) - 1.0
    s = f / (2.0 + f)
    twice, z = 2.0 * s, s * s
    return k * _LN2_HIGH + (k * _LN2_LOW + (twice + twice * (z * _polynomial(z, _ODD_INVERSES))))


def power(x: Floats, y: Floats) -> Floats:
    """Return x^y, with C99's results for infinities, zeros and NaN."""
    with np.errstate(all="ignore"):
        size, far = np.abs(x), np.abs(y)
        ordinary = (size > 0) & np.isfinite(x) & np.isfinite(y)
        log = _log(np.where(ordinary, size, np.float32(1)).astype(np.float64))
        result = exp(np.where(ordinary, y, np.float32(0)).astype(np.float64) * log).astype(np.float32)
        # with a zero or an infinity for x or y the result is 0 or infinity, or 1 for |x| = 1
        grows = (size > 1) == (y > 0)
        limit = np.where(grows, np.float32(np.inf), np.float32(0))
        result = np.where(ordinary, result, np.where(size == 1, np.float32(1), limit))
        whole = (far >= np.float32(2**23)) | (np.trunc(y) == y)
        odd = whole & (far < np.float32(2**24)) & (np.fmod(far, np.float32(2)) == 1)
        result = np.where(odd & np.signbit(x), -result, result)
        result = np.where(ordinary & (x < 0) & ~whole, np.float32(np.nan), result)
        result = np.where(np.isnan(x) | np.isnan(y), np.float32(np.nan), result)
        return np.where((y == 0) | (x == 1), np.float32(1), result)


#: of 1 / (1 + x / 2) - 1/2, from the highest power down: what exp takes beside -x^2; the error is below 2e-10
_ERFC = (
    0.18611825903521728, -0.2578405510382019, -0.09081336400188084, 0.32963817045838534, -0.03678124089281836,
    -0.2990816491238119, 0.11249089566577684, 0.28235142908197997, -0.15796015916786213, -0.37516405418589216,
    0.1893731955283681, 1.3452864435513452, -0.6717940840069534,
)  # fmt: skip


def erfc(x: Floats) -> Floats:
    """Return the complementary error function."""
    with np.errstate(all="ignore"):
        size = np.minimum(np.where(np.isnan(x), np.float32(0), np.abs(x)), np.float32(10.5)).astype(np.float64)
        t = 2.0 / (2.0 + size)
        result = t * exp(_polynomial(t - 0.5, _ERFC) - size * size)
        result = np.where(x < 0, 2.0 - result, result).astype(np.float32)
        return np.where(np.isnan(x), x, result)


def _polynomial(x: _Doubles, coefficients: tuple[float, ...]) -> _Doubles:
    """Evaluate a polynomial by Horner's scheme; the highest coefficient comes first."""
    total: _Doubles = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        total = coefficient + total * x
    return total


def _two_to(exponent: _Doubles) -> _Doubles:
    return ((exponent.astype(np.int64) + 1023) << 52).view(np.float64)
