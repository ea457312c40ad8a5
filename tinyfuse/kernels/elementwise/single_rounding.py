"""Kernels of int8 ADD, SUB and MUL with a single rounding (runtime_c/tinyfuse_single_rounding_{sum,product}.h).

Both operands are int8, so there are only 65,536 pairs, and any function with the same results for all of them is exact.
TensorFlow Lite Micro rescales both operands of a sum and the sum, with six roundings. This file searches for integers
with

    out = clamp((a * a_factor + b * b_factor + offset) >> shift)

and no intermediate result beyond int32. For two factors, each pair of operands leaves an interval of offsets. The
factors are exact if all intervals have a common offset. The real factors mostly are, with as many bits as int32 allows,
or their neighbours. (Because halves are rounded away from zero, exact factors are slightly larger than the real ones.)
If the operands' scales are far above the output's, int32 leaves too few bits.

onnxruntime multiplies the product of both operands by a float32 factor, adds the zero point, and rounds halves to even.
The result is a staircase of the product, which is an integer below 2^16. This file searches for integers with

    out = clamp((floor(product * multiplier / 2^15) + offset) >> shift).

A multiplier leaves each product an interval of offsets, too. The real factor is exact in 7 of 8 random operators. If
ties round up and down in turn, no multiplier is exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import islice
from typing import NamedTuple

import numpy as np

from tinyfuse.ir import Array, Op
from tinyfuse.ir.fixedpoint import RANGE
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.element import Element
from tinyfuse.kernels.core.kernel import require_proven
from tinyfuse.kernels.counts.common import Counts, element_counts
from tinyfuse.kernels.elementwise.binary import EqualShapes, Fields, have_one_size
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.core.binary import FloatBinary, product_factor
from tinyfuse.ops.core.convolution import clamp_range

#: number of factors tried on either side of the nearest one
_NEIGHBOURS = 12

#: distance from a rounding boundary within which pairs decide between neighbours (about 1 in 32 pairs), and number of
#: neighbours that pass these pairs and are tested with all pairs
_NEAR, _TESTED = 1 / 64, 32
#: if there are more than _MANY pairs, every _FEW-th pair is tested first, which excludes most neighbours
_FEW = 8
_MANY = 256
#: number of neighbours tested together
_TOGETHER = 64

#: step between the operand values that an estimate tests, both ends included
_ESTIMATE_STEP = 5

#: shifts for which tinyfuse_saturate_right is a single instruction
_SATURATED = range(19, 24)

#: exclusive bound on factors: SMLAW multiplies 256 * factor by 256 * operand
_MOST_FACTOR = 1 << 23

#: number of shifts tried, from the largest that int32 allows, and maximum shift
_SHIFTS, _MOST_SHIFT = 2, 28


class Plane(NamedTuple):
    """Parameters of the C function tinyfuse_single_rounding_sum."""

    a_factor: int
    b_factor: int
    offset: int
    shift: int


class SingleRoundingSum(EqualShapes):
    """ADD or SUB of operands with the output's shape, if `fit_plane` finds exact parameters."""

    def __init__(self) -> None:
        super().__init__("single_rounding_sum", "int8", _plane_fields, "tinyfuse_single_rounding_sum.h")

    def accepts(self, op: Op, context: Context) -> bool:
        return op.output.dtype == "int8" and have_one_size(op) and fit_plane(op) is not None

    def counts(self, op: Op, by_row: bool) -> Counts:
        """`element_counts`, outputs that must be clamped, and outputs whose shift is not part of an instruction that
        saturates."""
        clamped = op.output.elements if clamp_range(op) != RANGE["int8"] else 0
        shifted = op.output.elements if require_proven(fit_plane(op)).shift not in _SATURATED else 0
        return {**element_counts(op, by_row), "clamped_outputs": clamped, "shifted_outputs": shifted}

    def element(self, op: Op) -> Element | None:
        if op.output.dtype != "int8" or fit_plane(op) is None:
            return None
        return Element("single_rounding_sum", "planes", _plane_fields(op))


def _plane_fields(op: Op) -> Fields:
    found, (low, high) = require_proven(fit_plane(op)), clamp_range(op)
    return "tinyfuse_single_rounding_sum", {**found._asdict(), "act_min": low, "act_max": high}


def _results_of_pairs(op: Op) -> tuple[Array, Array, Array]:
    """Return (values of the first operand [n, 1], values of the second [1, n], results [n * n] of all pairs), int64."""
    values = np.arange(-128, 128, _ESTIMATE_STEP if op.estimate_mark else 1)
    of_a, of_b = values[:, None], values[None]
    results = FAMILIES[op.kind].reference(op, of_a.astype(np.int8), of_b.astype(np.int8))[0]
    return of_a, of_b, results.astype(np.int64).reshape(-1)


@lru_cache(maxsize=512)
def fit_plane(op: Op) -> Plane | None:
    """Parameters with the results of an int8 ADD or SUB for all pairs of stored values, or for some of them in an
    estimate; None if none are found."""
    (x, y), out = op.operands, op.output
    of_a, of_b, results = _results_of_pairs(op)
    a, b = (np.broadcast_to(of, (of_a.size, of_b.size)).reshape(-1) for of in (of_a, of_b))
    slopes = x.scale / out.scale, (-1 if op.kind == "SUB" else 1) * y.scale / out.scale
    middle = out.zero_point - x.zero_point * slopes[0] - y.zero_point * slopes[1] + 0.5

    def real(a: Array, b: Array) -> Array:
        """Sums before rounding."""
        sums: Array = a * slopes[0] + b * slopes[1] + middle
        return sums.reshape(-1)

    # the largest sum or partial sum before the clamp occurs at the ends of the operands' ranges
    room = np.abs(real(of_a[[0, -1]], of_b[:, [0, -1]])).max() + 128 * sum(map(abs, slopes)) + 1
    most = min(_MOST_SHIFT, int(np.floor(31 - np.log2(room))))
    pairs = _Pairs(a, b, results, *clamp_range(op))
    near = few = None
    for shift in range(most, max(most - _SHIFTS, 0), -1):
        (a_factor, b_factor), about = (round(slope * 2**shift) for slope in slopes), round(middle * 2**shift)
        found = pairs.fit_plane(a_factor, b_factor, shift, about)  # most often the nearest factors are exact
        if found is not None:
            return found
        if near is None or few is None:
            rounded = real(of_a, of_b)
            near = pairs.select(np.abs(rounded - np.rint(rounded)) < _NEAR)
            few = near.select(slice(None, None, _FEW))
        neighbours = np.array([a_factor, b_factor]) + _neighbours()
        possible = few.have_offset(neighbours, shift)
        for factors in islice(near.filter_factors(neighbours[possible], shift), _TESTED):
            found = pairs.fit_plane(*factors, shift, about)
            if found is not None:
                return found
    return None


@cache
def _neighbours() -> Array:
    """Differences from the nearest factors, int64 [neighbours, 2], the smallest first."""
    steps = sorted(range(-_NEIGHBOURS, _NEIGHBOURS + 1), key=abs)
    return np.array(sorted(((i, j) for i in steps for j in steps), key=lambda away: max(map(abs, away))))


@dataclass(frozen=True)
class _Pairs:
    """Pairs of operands and their results.

    a, b, results  int64 [pairs]
    low, high      clamp of the results
    """

    a: Array
    b: Array
    results: Array
    low: int
    high: int

    def select(self, which: Array | slice) -> _Pairs:
        """Copies only the pairs that `which` selects."""
        return _Pairs(self.a[which], self.b[which], self.results[which], self.low, self.high)

    def filter_factors(self, factors: Array, shift: int) -> Iterator[tuple[int, int]]:
        """Yields those factors, of int64 [n, 2], for which all pairs have a common offset."""
        for some in np.split(factors, range(_TOGETHER, len(factors), _TOGETHER)):
            yield from map(tuple, some[self.have_offset(some, shift)].tolist())

    def have_offset(self, factors: Array, shift: int) -> Array:
        """Tells for which factors, of int64 [n, 2], all pairs have a common offset: bool [n]. With many pairs, some of
        them exclude most factors first."""
        if len(self.a) > _MANY:
            possible = self.select(slice(None, None, _FEW)).have_offset(factors, shift)
            possible[possible] = self._have_offset(factors[possible], shift)
            return possible
        return self._have_offset(factors, shift)

    def _have_offset(self, factors: Array, shift: int) -> Array:
        # float64 represents these integers exactly, and multiplies faster
        ab, edges = np.stack((self.a, self.b), axis=1).astype(np.float64), (self.results << shift)[:, None]
        starts = ab @ factors.T.astype(np.float64)
        np.subtract(edges, starts, out=starts)
        least = starts[self.results > self.low].max(axis=0, initial=-(2**62))
        most = starts[self.results < self.high].min(axis=0, initial=2**62) + (1 << shift) - 1
        possible: Array = np.greater_equal(most, least)
        return possible

    def fit_plane(self, a_factor: int, b_factor: int, shift: int, about: int) -> Plane | None:
        """Parameters with these factors and the offset nearest to `about`; None if there are none."""
        sums = self.a * a_factor + self.b * b_factor
        offset = fit_offset(self.results, sums, (self.low, self.high), shift, about)
        fits = offset is not None and _fits_int32(a_factor, b_factor, offset)
        return Plane(a_factor, b_factor, offset, shift) if offset is not None and fits else None


def fit_offset(results: Array, sums: Array, limits: tuple[int, int], shift: int, about: int) -> int | None:
    """Offset nearest to `about` for which (sum + offset) >> `shift`, clamped to `limits`, equals the result of every
    sum; None if there is none."""
    low, high = limits
    starts = (results << shift) - sums
    # a result that equals a limit bounds the offset on one side only
    least = int(starts[results > low].max(initial=-(2**62)))
    most = int((starts + (1 << shift) - 1)[results < high].min(initial=2**62))
    return None if least > most else min(max(about, least), most)


def _fits_int32(a_factor: int, b_factor: int, offset: int) -> bool:
    """Tells whether all intermediate results fit into int32, also with factors 256 times as large."""
    if max(abs(a_factor), abs(b_factor)) >= _MOST_FACTOR:
        return False
    # linear functions are largest at the ends of the operands' ranges
    first = [a * a_factor + offset for a in (-128, 127)]
    return all(abs(part) < 2**31 for part in (*first, *(part + b * b_factor for part in first for b in (-128, 127))))


#: exclusive bound of multipliers
_MOST_MULTIPLIER = 1 << 29

#: distances of multipliers tried on either side of the nearest one
_DISTANCES = tuple(sorted({sign * step * away for step in (1, 16) for away in range(17) for sign in (-1, 1)}, key=abs))


class ProductLine(NamedTuple):
    """Parameters of the C function tinyfuse_single_rounding_product."""

    multiplier: int
    offset: int
    shift: int


class SingleRoundingProduct(EqualShapes):
    """MUL by FloatBinary of operands with the output's shape, if `fit_product` finds exact parameters."""

    def __init__(self) -> None:
        super().__init__("single_rounding_product", "int8", _line_fields, "tinyfuse_single_rounding_product.h")

    def accepts(self, op: Op, context: Context) -> bool:
        return have_one_size(op) and fit_product(op) is not None

    def element(self, op: Op) -> Element | None:
        if fit_product(op) is None:
            return None
        return Element("single_rounding_product", "rounded_products", _line_fields(op))


def _line_fields(op: Op) -> Fields:
    found, (low, high) = require_proven(fit_product(op)), clamp_range(op)
    return "tinyfuse_single_rounding_product", {
        "a_zero_point": op.operand(0).zero_point, "b_zero_point": op.operand(1).zero_point,
        **found._asdict(), "act_min": low, "act_max": high,
    }  # fmt: skip


@lru_cache(maxsize=512)
def fit_product(op: Op) -> ProductLine | None:
    """Parameters with the results of an int8 MUL by FloatBinary for all pairs of stored values, or for some of them in
    an estimate; None if none are found, and for other operators."""
    if op.kind != "MUL" or not isinstance(op.attributes, FloatBinary):
        return None
    x, y = op.operands
    if not all(-128 <= tensor.zero_point <= 127 for tensor in (x, y, op.output)):
        return None
    of_a, of_b, results = _results_of_pairs(op)
    products = ((of_a - x.zero_point) * (of_b - y.zero_point)).reshape(-1)
    factor = float(product_factor(op))
    room = float(np.abs(products).max()) * factor + 512
    shift = min(_MOST_SHIFT, int(np.floor(30 - np.log2(room))))
    about = round((op.output.zero_point + 0.5) * 2**shift)
    for multiplier in (round(factor * 2 ** (15 + shift)) + away for away in _DISTANCES):
        if shift < 1 or not 0 < multiplier < _MOST_MULTIPLIER:
            continue
        floors = products * multiplier >> 15
        offset = fit_offset(results, floors, clamp_range(op), shift, about)
        if offset is not None and int(np.abs(floors).max()) + abs(offset) < 2**31:
            return ProductLine(multiplier, offset, shift)
    return None
