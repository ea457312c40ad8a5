"""Our kernels of ADD and SUB of int8 on a plane (runtime_c/tinyfuse_single_rounding_sum.h).

TensorFlow Lite Micro rescales both operands and their sum, with six roundings. But both are int8, so there are 65,536
sums, and whatever gives the same results for all of them is the same function. Looked for are integers such that

    out = clamp((a * a_factor + b * b_factor + offset) >> shift)

with nothing beyond int32. Two factors leave an interval of offsets to each pair of operands; they do where all pairs
have an offset in common. The real factors mostly do, with as many bits as int32 holds, or their neighbours. (Halves
that go away from zero lie on a plane that is a little steeper than the real one.) Operands with scales far above the
output's leave int32 too few bits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import islice

import numpy as np

from tinyfuse.ir import Array, Op
from tinyfuse.ir.fixedpoint import RANGE
from tinyfuse.kernels.core.element import Element
from tinyfuse.kernels.core.kernel import Context, proven
from tinyfuse.kernels.counts.common import Counts, element_counts
from tinyfuse.kernels.elementwise.binary import EqualShapes, Fields
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.core.convolution import clamp_range

#: factors that are tried to either side of the nearest one
_NEIGHBOURS = 12

#: pairs whose real results lie so near to where rounding changes decide between neighbours, 1 in 32 of them mostly; so
#: many of these neighbours are held against all pairs
_NEAR, _HELD = 1 / 64, 32
#: one of so many pairs is looked at first, if there are many: these rule most neighbours out
_FEW = 8
_MANY = 256
#: so many neighbours are looked at together
_TOGETHER = 64

#: of an estimated operator's values one of so many is looked at, both ends among them
_APART = 5

#: shifts that tinyfuse_saturate_right has an instruction for
_SATURATED = range(19, 24)

#: what SMLAW's halves of 256 times a factor and 256 times an operand leave room for
_MOST_FACTOR = 1 << 23

#: shifts that are tried, from the most that int32 has room for
_SHIFTS, _MOST_SHIFT = 2, 28


@dataclass(frozen=True)
class Plane:
    """The numbers of tinyfuse_single_rounding_sum."""

    a_factor: int
    b_factor: int
    offset: int
    shift: int


class SingleRoundingSum(EqualShapes):
    """ADD or SUB of operands of the output's shape, where a plane is found."""

    def __init__(self) -> None:
        super().__init__("single_rounding_sum", "int8", _fields, "tinyfuse_single_rounding_sum.h")

    def accepts(self, op: Op, context: Context) -> bool:
        equal = all(tensor.elements == op.output.elements for tensor in op.operands)
        return op.output.dtype == "int8" and equal and plane(op) is not None

    def counts(self, op: Op, by_row: bool) -> Counts:
        """Outputs take more that are clamped, or whose shift has no instruction that saturates too."""
        clamped = op.output.elements if clamp_range(op) != RANGE["int8"] else 0
        shifted = op.output.elements if proven(plane(op)).shift not in _SATURATED else 0
        return {**element_counts(op, by_row), "clamped_outputs": clamped, "shifted_outputs": shifted}

    def element(self, op: Op) -> Element | None:
        if op.output.dtype != "int8" or plane(op) is None:
            return None
        return Element("single_rounding_sum", "planes", _fields(op))


def _fields(op: Op) -> Fields:
    found, (low, high) = proven(plane(op)), clamp_range(op)
    fields = {"a_factor": found.a_factor, "b_factor": found.b_factor, "offset": found.offset, "shift": found.shift}
    return "tinyfuse_single_rounding_sum", fields | {"act_min": low, "act_max": high}


@lru_cache(maxsize=512)
def plane(op: Op) -> Plane | None:
    """The plane whose results are those of an int8 ADD or SUB for all stored values, of an estimated one for some;
    None where none is found."""
    (x, y), out = op.operands, op.output
    values = np.arange(-128, 128, _APART if op.estimate_mark else 1)
    of_a, of_b = values[:, None], values[None]
    a, b = (np.broadcast_to(of, (len(values), len(values))).reshape(-1) for of in (of_a, of_b))
    # each operand alone is rescaled before they are added up
    results = FAMILIES[op.kind].reference(op, of_a.astype(np.int8), of_b.astype(np.int8))[0]
    results = results.astype(np.int64).reshape(-1)
    slopes = x.scale / out.scale, (-1 if op.kind == "SUB" else 1) * y.scale / out.scale
    middle = out.zero_point - x.zero_point * slopes[0] - y.zero_point * slopes[1] + 0.5

    def real(a: Array, b: Array) -> Array:
        """The sums, not rounded."""
        sums: Array = a * slopes[0] + b * slopes[1] + middle
        return sums.reshape(-1)

    # the sums with a part of them alone, whatever the clamp makes of them; the largest are those of the ends
    room = np.abs(real(of_a[[0, -1]], of_b[:, [0, -1]])).max() + 128 * sum(map(abs, slopes)) + 1
    most = min(_MOST_SHIFT, int(np.floor(31 - np.log2(room))))
    pairs = _Pairs(a, b, results, *clamp_range(op))
    near = few = None
    for shift in range(most, max(most - _SHIFTS, 0), -1):
        (a_factor, b_factor), about = (round(slope * 2**shift) for slope in slopes), round(middle * 2**shift)
        found = pairs.plane(a_factor, b_factor, shift, about)  # mostly is one
        if found is not None:
            return found
        if near is None or few is None:
            rounded = real(of_a, of_b)
            near = pairs.some(np.abs(rounded - np.rint(rounded)) < _NEAR)
            few = near.some(slice(None, None, _FEW))
        neighbours = np.array([a_factor, b_factor]) + _around()
        possible = few.leave_offsets(neighbours, shift)
        for factors in islice(near.likely(neighbours[possible], shift), _HELD):
            found = pairs.plane(*factors, shift, about)
            if found is not None:
                return found
    return None


@cache
def _around() -> Array:
    """int64 [neighbours, 2]: how far neighbours lie from the nearest factors, the nearest first."""
    steps = sorted(range(-_NEIGHBOURS, _NEIGHBOURS + 1), key=abs)
    return np.array(sorted(((i, j) for i in steps for j in steps), key=lambda away: max(map(abs, away))))


@dataclass(frozen=True)
class _Pairs:
    """Operands and results, int64 arrays of one length; low, high: the clamp of the results."""

    a: Array
    b: Array
    results: Array
    low: int
    high: int

    def some(self, which: Array | slice) -> _Pairs:
        return _Pairs(self.a[which], self.b[which], self.results[which], self.low, self.high)

    def likely(self, factors: Array, shift: int) -> Iterator[tuple[int, int]]:
        """Of int64 [n, 2] those that leave an offset to all pairs."""
        for some in np.split(factors, range(_TOGETHER, len(factors), _TOGETHER)):
            yield from map(tuple, some[self.leave_offsets(some, shift)].tolist())

    def leave_offsets(self, factors: Array, shift: int) -> Array:
        """bool [n]: which of int64 [n, 2] do. Where there are many pairs, some of them rule most factors out first."""
        if len(self.a) > _MANY:
            possible = self.some(slice(None, None, _FEW)).leave_offsets(factors, shift)
            possible[possible] = self._leave_offsets(factors[possible], shift)
            return possible
        return self._leave_offsets(factors, shift)

    def _leave_offsets(self, factors: Array, shift: int) -> Array:
        # real numbers hold these integers, and are multiplied faster
        ab, edges = np.stack((self.a, self.b), axis=1).astype(np.float64), (self.results << shift)[:, None]
        starts = ab @ factors.T.astype(np.float64)
        np.subtract(edges, starts, out=starts)
        least = starts[self.results > self.low].max(axis=0, initial=-(2**62))
        most = starts[self.results < self.high].min(axis=0, initial=2**62) + (1 << shift) - 1
        possible: Array = np.greater_equal(most, least)
        return possible

    def plane(self, a_factor: int, b_factor: int, shift: int, about: int) -> Plane | None:
        """The one of these factors whose offset is the nearest to `about`; None where there is none."""
        offset = self.offset(a_factor, b_factor, shift, about)
        return (
            None if offset is None or not fits(a_factor, b_factor, offset) else Plane(a_factor, b_factor, offset, shift)
        )

    def offset(self, a_factor: int, b_factor: int, shift: int, about: int) -> int | None:
        """Of the offsets that fit all pairs the nearest to `about`; None where there is none."""
        sums = self.a * a_factor + self.b * b_factor
        starts = (self.results << shift) - sums
        # what is clamped may lie beyond
        least = int(starts[self.results > self.low].max(initial=-(2**62)))
        most = int((starts + (1 << shift) - 1)[self.results < self.high].min(initial=2**62))
        return None if least > most else min(max(about, least), most)


def fits(a_factor: int, b_factor: int, offset: int) -> bool:
    """Whether int32 holds everything on the way, factors 256 times as large too."""
    if max(abs(a_factor), abs(b_factor)) >= _MOST_FACTOR:
        return False
    # what is linear is largest at the ends of operands
    first = [a * a_factor + offset for a in (-128, 127)]
    return all(abs(part) < 2**31 for part in (*first, *(part + b * b_factor for part in first for b in (-128, 127))))
