"""Fourier transforms of real signals, as KISS FFT computes them: in int16, int32 or float32.

A mixed-radix decimation in time (radices 4, 2, 3 and 5) of the even and odd samples as one complex signal, then, or
before it for the inverse, one pass that separates the two spectra. In fixed point every butterfly divides its inputs by
its radix, so that nothing overflows; every product is rounded, halves upwards, and sums wrap. Source of the algorithm
and of its roundings: KISS FFT v130 (M. Borgerding), which TFLM's signal library calls.

Complex numbers are pairs (real, imaginary) of arrays of one shape; fixed-point values are in int64 arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np

from tinyfuse.ir import Array

Complex = tuple[Array, Array]


class Arithmetic(Protocol):
    """Arithmetic of an FFT that depends on the dtype."""

    def add(self, a: Array, b: Array) -> Array: ...
    def sub(self, a: Array, b: Array) -> Array: ...
    def mul(self, a: Array, b: Array) -> Array: ...
    def cmul(self, a: Complex, b: Complex) -> Complex: ...
    def half(self, a: Array) -> Array: ...
    def half_sum(self, a: Array, b: Array) -> Array: ...
    def half_difference(self, a: Array, b: Array) -> Array: ...
    def divide(self, a: Array, by: int) -> Array: ...
    def twiddle(self, phase: float) -> tuple[float, float]: ...


@dataclass(frozen=True)
class Fixed:
    """Fixed-point arithmetic with `bits` bits: a sign bit and fraction bits."""

    bits: int

    def wrap(self, value: Array) -> Array:
        return value.astype(f"int{self.bits}").astype(np.int64)

    def round(self, product: Array) -> Array:
        return self.wrap((product + (1 << (self.bits - 2))) >> (self.bits - 1))

    def add(self, a: Array, b: Array) -> Array:
        return self.wrap(a + b)

    def sub(self, a: Array, b: Array) -> Array:
        return self.wrap(a - b)

    def mul(self, a: Array, b: Array) -> Array:
        return self.round(a * b)

    def cmul(self, a: Complex, b: Complex) -> Complex:
        return self.round(a[0] * b[0] - a[1] * b[1]), self.round(a[0] * b[1] + a[1] * b[0])

    def half(self, a: Array) -> Array:
        return a >> 1

    def half_sum(self, a: Array, b: Array) -> Array:
        """Half of the sum. A sum of int16 keeps its carry, a sum of int32 wraps."""
        return self.wrap((a + b) >> 1) if self.bits == 16 else self.add(a, b) >> 1

    def half_difference(self, a: Array, b: Array) -> Array:
        return self.wrap((a - b) >> 1) if self.bits == 16 else self.sub(a, b) >> 1

    def divide(self, a: Array, by: int) -> Array:
        return self.round(a * (self.most // by))

    def twiddle(self, phase: float) -> tuple[float, float]:
        return (math.floor(0.5 + self.most * math.cos(phase)), math.floor(0.5 + self.most * math.sin(phase)))

    @property
    def most(self) -> int:
        return (1 << (self.bits - 1)) - 1


class Float:
    """float32, each operation rounded; nothing is scaled."""

    def add(self, a: Array, b: Array) -> Array:
        return a + b

    def sub(self, a: Array, b: Array) -> Array:
        return a - b

    def mul(self, a: Array, b: Array) -> Array:
        return a * b

    def cmul(self, a: Complex, b: Complex) -> Complex:
        return a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]

    def half(self, a: Array) -> Array:
        return a * np.float32(0.5)

    def half_sum(self, a: Array, b: Array) -> Array:
        return self.half(a + b)

    def half_difference(self, a: Array, b: Array) -> Array:
        return self.half(a - b)

    def divide(self, a: Array, by: int) -> Array:
        return a

    def twiddle(self, phase: float) -> tuple[float, float]:
        return math.cos(phase), math.sin(phase)


#: dtype -> its arithmetic, and the dtype of the arrays that it works on
ARITHMETIC: dict[str, tuple[Arithmetic, str]] = {
    "int16": (Fixed(16), "int64"),
    "int32": (Fixed(32), "int64"),
    "float32": (Float(), "float32"),
}


def factors(points: int) -> tuple[int, ...] | None:
    """The radices of a complex transform, the last stage's first; None if `points` has a prime factor above 5."""
    found = []
    for radix in (4, 2, 3, 5):
        while points % radix == 0:
            found.append(radix)
            points //= radix
    return tuple(found) if points == 1 and found else None


def positions(radices: tuple[int, ...]) -> Array:
    """int64 [points]: where in the work area each input of the first stage lies (its digits in reverse)."""
    place = np.zeros(1, np.int64)
    points = math.prod(radices)
    for radix in radices:
        points //= radix
        place = (np.arange(radix)[:, None] * points + place[None, :]).reshape(-1)
    return place


@lru_cache(maxsize=64)
def twiddles(points: int, inverse: bool, dtype: str) -> tuple[Array, Array]:
    """The factors of the stages and those of the pass over real signals: [points, 2] and [points / 2, 2] of the
    dtype, real and imaginary part."""
    arithmetic, _ = ARITHMETIC[dtype]
    sign = -1 if inverse else 1
    stages = [arithmetic.twiddle(sign * (-2 * math.pi * i / points)) for i in range(points)]
    halves = [arithmetic.twiddle(sign * (-math.pi * ((i + 1) / points + 0.5))) for i in range(points // 2)]
    return np.array(stages, dtype).reshape(-1, 2), np.array(halves, dtype).reshape(-1, 2)


def _pair(table: Array, dtype: str) -> Complex:
    table = table.astype(dtype)
    return table[:, 0], table[:, 1]


def _transform(work: Complex, radices: tuple[int, ...], inverse: bool, dtype: str) -> Complex:
    """Compute all stages of an FFT over [signals, points], whose points are in the order of `positions`."""
    arithmetic, kind = ARITHMETIC[dtype]
    points, signals = math.prod(radices), work[0].shape[0]
    table = _pair(twiddles(points, inverse, dtype)[0], kind)
    length = 1  # length of the transforms that a stage combines
    for radix in reversed(radices):
        stride = points // (length * radix)
        parts = [
            tuple(a.reshape(signals, stride, radix, length)[:, :, q] for a in work) for q in range(radix)
        ]  # of each: real and imaginary [signals, stride, length]
        divided = [(arithmetic.divide(re, radix), arithmetic.divide(im, radix)) for re, im in parts]
        rotated = [divided[0]]
        for q in range(1, radix):
            at = q * stride * np.arange(length)
            rotated.append(arithmetic.cmul(divided[q], (table[0][at], table[1][at])))
        root = (table[0][stride * length % points], table[1][stride * length % points])
        second = (table[0][2 * stride * length % points], table[1][2 * stride * length % points])
        results = _BUTTERFLIES[radix](arithmetic, rotated, inverse, root, second)
        work = (
            np.stack([re for re, _ in results], axis=2).reshape(signals, points),
            np.stack([im for _, im in results], axis=2).reshape(signals, points),
        )
        length *= radix
    return work


def _sum(a: Arithmetic, x: Complex, y: Complex) -> Complex:
    return a.add(x[0], y[0]), a.add(x[1], y[1])


def _difference(a: Arithmetic, x: Complex, y: Complex) -> Complex:
    return a.sub(x[0], y[0]), a.sub(x[1], y[1])


def _radix_2(a: Arithmetic, x: list[Complex], inverse: bool, root: Complex, second: Complex) -> list[Complex]:
    return [_sum(a, x[0], x[1]), _difference(a, x[0], x[1])]


def _radix_4(a: Arithmetic, x: list[Complex], inverse: bool, root: Complex, second: Complex) -> list[Complex]:
    even, odd = _sum(a, x[0], x[2]), _sum(a, x[1], x[3])
    rest, rotated = _difference(a, x[0], x[2]), _difference(a, x[1], x[3])
    plus = (a.add(rest[0], rotated[1]), a.sub(rest[1], rotated[0]))
    minus = (a.sub(rest[0], rotated[1]), a.add(rest[1], rotated[0]))
    first, third = (minus, plus) if inverse else (plus, minus)
    return [_sum(a, even, odd), first, _difference(a, even, odd), third]


def _radix_3(a: Arithmetic, x: list[Complex], inverse: bool, root: Complex, second: Complex) -> list[Complex]:
    both, rest = _sum(a, x[1], x[2]), _difference(a, x[1], x[2])
    middle = (a.sub(x[0][0], a.half(both[0])), a.sub(x[0][1], a.half(both[1])))
    rotated = (a.mul(rest[0], root[1]), a.mul(rest[1], root[1]))
    return [
        _sum(a, x[0], both),
        (a.sub(middle[0], rotated[1]), a.add(middle[1], rotated[0])),
        (a.add(middle[0], rotated[1]), a.sub(middle[1], rotated[0])),
    ]


def _radix_5(a: Arithmetic, x: list[Complex], inverse: bool, root: Complex, second: Complex) -> list[Complex]:
    outer, inner = _sum(a, x[1], x[4]), _sum(a, x[2], x[3])
    outer_rest, inner_rest = _difference(a, x[1], x[4]), _difference(a, x[2], x[3])

    def real(one: Array, two: Array) -> Complex:
        """Complex sums of a radix-5 butterfly without the parts that are rotated by 90 degrees; `one` and `two` are the
        real twiddles of the outer and inner pairs."""
        return (
            a.add(a.add(x[0][0], a.mul(outer[0], one)), a.mul(inner[0], two)),
            a.add(a.add(x[0][1], a.mul(outer[1], one)), a.mul(inner[1], two)),
        )

    near, far = real(root[0], second[0]), real(second[0], root[0])
    near_rotated = (
        a.add(a.mul(outer_rest[1], root[1]), a.mul(inner_rest[1], second[1])),
        a.sub(-a.mul(outer_rest[0], root[1]), a.mul(inner_rest[0], second[1])),
    )
    far_rotated = (
        a.add(-a.mul(outer_rest[1], second[1]), a.mul(inner_rest[1], root[1])),
        a.sub(a.mul(outer_rest[0], second[1]), a.mul(inner_rest[0], root[1])),
    )
    return [
        _sum(a, x[0], _sum(a, outer, inner)),
        _difference(a, near, near_rotated),
        _sum(a, far, far_rotated),
        _difference(a, far, far_rotated),
        _sum(a, near, near_rotated),
    ]


_Butterfly = Callable[[Arithmetic, list[Complex], bool, Complex, Complex], list[Complex]]
_BUTTERFLIES: dict[int, _Butterfly] = {2: _radix_2, 3: _radix_3, 4: _radix_4, 5: _radix_5}


def rfft(signal: Array, length: int, dtype: str) -> Array:
    """[signals, samples], samples at most `length` -> [signals, length + 2]: the spectrum of the signal with zeros
    after it, real and imaginary parts in turn."""
    arithmetic, kind = ARITHMETIC[dtype]
    points, radices = length // 2, factors(length // 2) or ()
    padded = np.zeros((signal.shape[0], length), kind)
    padded[:, : signal.shape[1]] = signal
    place = positions(radices)
    work = (np.empty((signal.shape[0], points), kind), np.empty((signal.shape[0], points), kind))
    work[0][:, place], work[1][:, place] = padded[:, 0::2], padded[:, 1::2]
    re, im = _transform(work, radices, False, dtype)

    spectrum = np.zeros((signal.shape[0], points + 1, 2), kind)
    first = arithmetic.divide(re[:, 0], 2), arithmetic.divide(im[:, 0], 2)
    spectrum[:, 0, 0], spectrum[:, points, 0] = arithmetic.add(*first), arithmetic.sub(*first)
    k = np.arange(1, points // 2 + 1)
    both, rest = _halves(re, im, k, points, dtype)
    rotated = arithmetic.cmul(rest, _pair(twiddles(points, False, dtype)[1], kind))
    spectrum[:, k, 0] = arithmetic.half_sum(both[0], rotated[0])
    spectrum[:, k, 1] = arithmetic.half_sum(both[1], rotated[1])
    spectrum[:, points - k, 0] = arithmetic.half_difference(both[0], rotated[0])
    spectrum[:, points - k, 1] = arithmetic.half_difference(rotated[1], both[1])
    return spectrum.reshape(signal.shape[0], length + 2).astype(dtype)


def _halves(re: Array, im: Array, k: Array, points: int, dtype: str) -> tuple[Complex, Complex]:
    """Return half the sum and half the difference of bins `k` and the conjugates of bins `points` - `k`."""
    arithmetic, _ = ARITHMETIC[dtype]
    low = arithmetic.divide(re[:, k], 2), arithmetic.divide(im[:, k], 2)
    mirrored = _negated(im[:, points - k], dtype)
    high = arithmetic.divide(re[:, points - k], 2), arithmetic.divide(mirrored, 2)
    return _sum(arithmetic, low, high), _difference(arithmetic, low, high)


def irfft(spectrum: Array, length: int, dtype: str) -> Array:
    """[signals, length + 2], real and imaginary parts in turn -> the signals [signals, length]; integer signals are
    divided by the length, and rounded at every stage."""
    arithmetic, kind = ARITHMETIC[dtype]
    points, radices = length // 2, factors(length // 2) or ()
    values = spectrum.astype(kind).reshape(spectrum.shape[0], points + 1, 2)
    re, im = values[:, :, 0], values[:, :, 1]
    mixed = (np.zeros((spectrum.shape[0], points), kind), np.zeros((spectrum.shape[0], points), kind))
    mixed[0][:, 0] = arithmetic.divide(arithmetic.add(re[:, 0], re[:, points]), 2)
    mixed[1][:, 0] = arithmetic.divide(arithmetic.sub(re[:, 0], re[:, points]), 2)
    k = np.arange(1, points // 2 + 1)
    even, rest = _halves(re, im, k, points, dtype)
    odd = arithmetic.cmul(rest, _pair(twiddles(points, True, dtype)[1], kind))
    mixed[0][:, k], mixed[1][:, k] = _sum(arithmetic, even, odd)
    above = _difference(arithmetic, even, odd)
    mixed[0][:, points - k], mixed[1][:, points - k] = above[0], _negated(above[1], dtype)

    place = positions(radices)
    work = (np.empty_like(mixed[0]), np.empty_like(mixed[1]))
    work[0][:, place], work[1][:, place] = mixed
    re, im = _transform(work, radices, True, dtype)
    signal = np.stack([re, im], axis=2).reshape(spectrum.shape[0], length).astype(dtype)
    return signal / np.float32(length) if dtype == "float32" else signal


def _negated(value: Array, dtype: str) -> Array:
    """-value; the lowest integer, whose negative does not exist, is kept."""
    return -value if dtype == "float32" else (-value).astype(dtype).astype(np.int64)
