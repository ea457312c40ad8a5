"""float32 functions of one value, bit by bit as onnxruntime computes them.

A function is a tuple of variants. The first one gives the results. If no algorithm is fixed (Eigen's exp and log differ
between vector widths), two more variants give results a few units in the last place lower and higher. A table is proven
if all variants give the same one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import zip_longest

import numpy as np

from tinyfuse.ir import Array

Compute = Callable[[Array], Array]
Variants = tuple[Compute, ...]

_F32 = np.float32
#: relative error of functions without a fixed algorithm: 4 units in the last place
_NEAR = 2.0**-21


def chained(inner: Variants, outer: Variants) -> Variants:
    """Return outer(inner(x))."""
    return combined(inner, outer, lambda f, g: lambda x: g(f(x)))


def combined(a: Variants, b: Variants, join: Callable[[Compute, Compute], Compute]) -> Variants:
    """Return the function of each pair of variants of `a` and `b`, by `join`. A function with a single variant is
    paired with each variant of the other."""
    return tuple(join(f or a[0], g or b[0]) for f, g in zip_longest(a, b))


def exactly(function: Compute) -> Variants:
    """Return a function whose every bit is known."""
    return (lambda x: np.asarray(function(x), _F32),)


#: the function that returns its argument
IDENTITY: Variants = (lambda x: x,)


def constant(number: float) -> Variants:
    """Return the function that gives one number everywhere."""
    return (lambda x: np.full(x.shape, number, _F32),)


def _fma(a: Array, b: Array, c: Array | np.float32) -> Array:
    """a * b + c of float32 numbers, rounded once."""
    rounded: Array = (a.astype(np.float64) * b.astype(np.float64) + np.float64(c)).astype(_F32)
    return rounded


def _polynomial(x: Array, coefficients: tuple[float, ...]) -> Array:
    """A polynomial by Horner's rule with fused multiply-adds, highest power first."""
    total = np.full(x.shape, coefficients[0], _F32)
    for coefficient in coefficients[1:]:
        total = _fma(total, x, _F32(coefficient))
    return total


#: quotients of polynomials, (odd powers, even powers), highest power first: tanh from -9 to 9, and sigmoid - 1/2 from
#: -18 to 18 (Eigen; onnxruntime, core/mlas/lib/tanh.cpp and logistic.cpp)
_TANH = (
    (-2.76076847742355e-16, 2.00018790482477e-13, -8.60467152213735e-11, 5.12229709037114e-08, 1.48572235717979e-05,
     6.37261928875436e-04, 4.89352455891786e-03),
    (1.19825839466702e-06, 1.18534705686654e-04, 2.26843463243900e-03, 4.89352518554385e-03),
)  # fmt: skip
_SIGMOID = (
    (4.37031012579801e-11, 1.15627324459942e-07, 6.08574864600143e-05, 8.51377133304701e-03, 2.48287947061529e-01),
    (6.10247389755681e-13, 5.76102136993427e-09, 6.29106785017040e-06, 1.70198817374094e-03, 1.16817656904453e-01,
     9.93151921023180e-01),
)  # fmt: skip


def _rational(x: Array, reach: float, coefficients: tuple[tuple[float, ...], tuple[float, ...]]) -> Array:
    x = np.clip(x, _F32(-reach), _F32(reach))
    over, under = (_polynomial(x * x, each) for each in coefficients)
    quotient: Array = over * x / under
    return quotient


def _tanh(x: Array) -> Array:
    return _rational(x, 9, _TANH)


def _sigmoid(x: Array) -> Array:
    return np.clip(_rational(x, 18, _SIGMOID) + _F32(0.5), _F32(0), _F32(1))


#: erf: a polynomial of squares up to 0.921875, then 1 - exp of a polynomial; and the polynomial of that exp
#: (onnxruntime, core/mlas/lib/erf.cpp)
_ERF_SMALL = (-5.99104969e-4, 4.99339588e-3, -2.67667342e-2, 1.12818025e-1, -3.76124859e-1, 1.28379151e-1)
_ERF_LARGE = (
    1.72948930e-5, -3.83208680e-4, 3.88393435e-3, -2.42545605e-2, 1.06777847e-1, 6.34846687e-1, 1.28717512e-1,
)  # fmt: skip
_ERF_EXP = (1.38319808e-3, 8.37550033e-3, 4.16689515e-2, 1.66664466e-1, 4.99999851e-1, 1.0, 1.0)
_ERF_SPLIT, _ERF_REACH = _F32(0.921875), _F32(3.925)
#: added to a float32 and subtracted again, it rounds that to the nearest integer
_TO_INTEGER = _F32(1.5 * 2**23)


def _erf(x: Array) -> Array:
    size = np.minimum(np.abs(x), _ERF_REACH)
    small = _fma(_polynomial(size * size, _ERF_SMALL), size, size)
    exponent = -_fma(_polynomial(size, _ERF_LARGE), size, size)
    whole = _fma(np.full(x.shape, 1 / math.log(2), _F32), exponent, _TO_INTEGER) - _TO_INTEGER
    rest = _fma(whole, np.full(x.shape, -6.93145752e-1, _F32), exponent)
    rest = _fma(whole, np.full(x.shape, -1.42860677e-6, _F32), rest)
    large = _F32(1) - np.ldexp(_polynomial(rest, _ERF_EXP), whole.astype(np.int32))
    signed: Array = np.copysign(np.where(size > _ERF_SPLIT, large, small), x)
    return signed


def _gelu(x: Array) -> Array:
    return _F32(0.5) * x * (_erf(x * _F32(math.sqrt(0.5))) + _F32(1))


def _gelu_by_tanh(x: Array) -> Array:
    inside = x * (_F32(0.044715 * math.sqrt(2 / math.pi)) * x * x + _F32(math.sqrt(2 / math.pi)))
    return _F32(0.5) * x * (_tanh(inside) + _F32(1))


def _nearly(function: Compute, absolute: float = 0.0) -> Variants:
    """Variants of a function without a fixed algorithm: the float64 function rounded to float32, then the same lowered
    and raised by its error, _NEAR relative plus `absolute`."""

    def variant(side: int) -> Compute:
        return lambda x: (function(x.astype(np.float64)) * (1 + side * _NEAR) + side * absolute).astype(_F32)

    return variant(0), variant(-1), variant(1)


_EXP = _nearly(np.exp)
#: log(1 + exp(x)), with the error of rounding 1 + exp(-|x|)
_SOFTPLUS = combined(
    exactly(lambda x: np.maximum(x, _F32(0))), _nearly(lambda x: np.log1p(np.exp(-np.abs(x))), 2.0**-23),
    lambda f, g: lambda x: f(x) + g(x),
)  # fmt: skip


def _near_tanh(side: int) -> Compute:
    return lambda x: np.where(x < 9, _tanh(x) * _F32(1 + side * _NEAR), _F32(1))


#: tanh of positive numbers by Eigen; from 9 on it is 1
_NEAR_TANH = (_tanh, _near_tanh(-1), _near_tanh(1))


def elu(alpha: np.float32) -> Variants:
    """Return the function x, or alpha * (exp(x) - 1) where x is below 0."""
    # the error is that of exp
    below = chained(_EXP, exactly(lambda e: alpha * (e - _F32(1))))
    return combined(IDENTITY, below, lambda f, g: lambda x: np.where(x >= 0, f(x), g(x)))


def clip(low: float, high: float) -> Variants:
    """x, at least `low` and at most `high`."""
    return exactly(lambda x: np.minimum(np.maximum(x, _F32(low)), _F32(high)))


def leaky_relu(alpha: np.float32) -> Variants:
    """Return the function x, or alpha * x where x is below 0."""
    return exactly(lambda x: np.where(x >= 0, x, alpha * x))


def hard_sigmoid(alpha: np.float32, beta: np.float32) -> Variants:
    """alpha * x + beta, at least 0 and at most 1."""
    return exactly(lambda x: np.clip(alpha * x + beta, _F32(0), _F32(1)))


def gelu(approximate: str) -> Variants:
    """Return the function Gelu, by erf or, if `approximate`, by tanh."""
    return exactly(_gelu_by_tanh if approximate == "tanh" else _gelu)


#: kinds of nodes without attributes
FUNCTIONS: dict[str, Variants] = {
    "Relu": clip(0.0, math.inf),
    "Sigmoid": exactly(_sigmoid),
    "Tanh": exactly(_tanh),
    # onnxruntime fuses nodes that compute Gelu by Erf; the fused one multiplies by sqrt(1/2) instead of dividing by
    # sqrt(2)
    "Erf": (_erf, *_nearly(lambda x: _erf(x.astype(_F32)).astype(np.float64))[1:]),
    "HardSwish": exactly(lambda x: x * np.clip(_F32(1 / 6) * x + _F32(0.5), _F32(0), _F32(1))),
    "Softplus": _SOFTPLUS,
    "Mish": combined(IDENTITY, chained(_SOFTPLUS, _NEAR_TANH), lambda f, g: lambda x: f(x) * g(x)),
    "Abs": exactly(np.abs),
    "Neg": exactly(np.negative),
    "Sqrt": exactly(np.sqrt),
    "Reciprocal": exactly(lambda x: _F32(1) / x),
    "Floor": exactly(np.floor),
    "Ceil": exactly(np.ceil),
    "Exp": _EXP,
    "Softsign": exactly(lambda x: x * (_F32(1) / (_F32(1) + np.abs(x)))),
}
