"""Least distances between the places of an arena: its two ends, and the buffers of a search.

demands[p][q] says how far place q must lie above place p at least. How far that is depends on p's offset modulo M, the
least common multiple of all alignments, once a path from p to q goes through a buffer that is aligned more strictly
than p. With one alignment for all (`Distances`) a demand is a number. Else (`DistancesByResidue`) it is a tuple, with
a number for every offset that p may have modulo M. -1 stands for no demand.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from math import lcm
from operator import le
from typing import Any, Protocol

BOTTOM, TOP = 0, 1  # places of the arena's ends; buffers follow. Nothing lies above the top: its row is empty

#: of int or of tuple[int, ...], by who made them
Demands = list[list[Any]]


class DemandKind(Protocol):
    """`aligns` has an alignment for each place."""

    modulus: int

    def start(self, size: int) -> Demands:
        """Of an arena without buffers that has `size` bytes at least."""

    def entered(self, demands: Demands, aligns: list[int], size: int) -> Demands:
        """A copy with one place more, the last of `aligns`, for a buffer of `size` bytes."""

    def least(self, demand: Any) -> int:
        """The demand at an offset that M divides."""

    def add(self, demands: Demands, aligns: list[int], low: int, high: int, apart: int) -> None:
        """Adds "high lies at least `apart` above low" and all that follows."""

    def key(self, demands: Demands) -> tuple[int, ...]:
        """All numbers of all demands."""


def demands_of(aligns: Iterable[int]) -> DemandKind:
    """The simplest kind for buffers of these alignments."""
    different = set(aligns)
    return Distances(*different) if len(different) == 1 else DistancesByResidue(lcm(*different))


class Distances:
    """All offsets are multiples of `modulus`, and so are all distances but those to the top."""

    def __init__(self, modulus: int):
        self.modulus = modulus

    def start(self, size: int) -> Demands:
        return [[0, size], []]

    def entered(self, demands: Demands, aligns: list[int], size: int) -> Demands:
        bottom, top, *others = demands
        bottom = [*bottom, 0]
        bottom[TOP] = max(bottom[TOP], size)
        last = [-1] * len(aligns)
        last[TOP] = size
        return [bottom, top, *([*row, -1] for row in others), last]

    def least(self, demand: int) -> int:
        return demand

    def add(self, demands: Demands, aligns: list[int], low: int, high: int, apart: int) -> None:
        edge = -(-apart // self.modulus) * self.modulus
        if edge <= demands[low][high]:
            return
        after = [(q, demand) for q, demand in enumerate(demands[high]) if demand >= 0]
        for p, row in enumerate(demands):
            if p == low:
                first = edge
            elif p != TOP and row[low] >= 0:
                first = row[low] + edge
            else:
                continue
            if row[high] < first:
                row[high] = first
            for q, demand in after:
                if row[q] < first + demand:
                    row[q] = first + demand

    def key(self, demands: Demands) -> tuple[int, ...]:
        return tuple(chain.from_iterable(demands))


#: a number for each offset modulo M
_Demand = tuple[int, ...]


class DistancesByResidue:
    """For alignments that differ."""

    def __init__(self, modulus: int):
        self.modulus = modulus

    def start(self, size: int) -> Demands:
        return [[(0,), (size,)], []]

    def entered(self, demands: Demands, aligns: list[int], size: int) -> Demands:
        here = len(demands)
        nothing = [(-1,) * (self.modulus // align) for align in aligns]
        found = [[*row, nothing[p]] if row else row for p, row in enumerate(demands)]
        found.append([nothing[here]] * (here + 1))
        found[BOTTOM][here] = (0,)
        found[BOTTOM][TOP] = (max(*demands[BOTTOM][TOP], size),)
        found[here][TOP] = (size,) * len(nothing[here])
        return found

    def least(self, demand: _Demand) -> int:
        return demand[0]

    def add(self, demands: Demands, aligns: list[int], low: int, high: int, apart: int) -> None:
        step = aligns[high]
        edge = tuple(-(-(residue + apart) // step) * step - residue for residue in range(0, self.modulus, aligns[low]))
        if all(map(le, edge, demands[low][high])):
            return
        after = [(q, demand) for q, demand in enumerate(demands[high]) if demand[0] >= 0]
        for p, row in enumerate(demands):
            if p == low:
                first = edge
            elif p != TOP and row[low][0] >= 0:
                first = self._chain(row[low], self._along(row[low], aligns[p], aligns[low]), edge)
            else:
                continue
            row[high] = _either(row[high], first)
            along = self._along(first, aligns[p], step)
            for q, demand in after:
                row[q] = _either(row[q], self._chain(first, along, demand))

    def _along(self, first: _Demand, align: int, middle_align: int) -> _Demand | None:
        """Which numbers of another demand a path goes on with: after `first`, from a place aligned to `align` to one
        aligned to `middle_align`. None where there is but one."""
        modulus = self.modulus
        if modulus == middle_align:
            return None
        return tuple([(r + d) % modulus // middle_align for r, d in zip(range(0, modulus, align), first, strict=True)])

    @staticmethod
    def _chain(first: _Demand, along: _Demand | None, second: _Demand) -> _Demand:
        """The demand of a path: `first`, then `second`, of which `along` says what goes on where."""
        if along is None:
            rest = second[0]
            return tuple([d + rest for d in first])
        return tuple([d + second[k] for d, k in zip(first, along, strict=True)])

    def key(self, demands: Demands) -> tuple[int, ...]:
        return tuple(chain.from_iterable(chain.from_iterable(demands)))


def _either(one: _Demand, other: _Demand) -> _Demand:
    """The demand that both hold."""
    if len(one) == 1:
        return one if one[0] >= other[0] else other
    return tuple(map(max, one, other))
