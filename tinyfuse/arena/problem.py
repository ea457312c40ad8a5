"""Data classes of the placement problem: buffers with lifetimes, overlaps that are allowed, and placements."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple

from tinyfuse.errors import InternalFault


@dataclass(frozen=True)
class Buffer:
    """`bytes` of memory that keep their content from `first_step` to `last_step`, both included.

    align      its offset is a multiple of this
    owner      description for people
    live_sets  numbers of the live sets of its first step in which it is alive; None: all.
               In later steps it is alive all the time
    """

    name: str
    bytes: int
    first_step: int
    last_step: int
    align: int = 16
    owner: str = ""
    live_sets: frozenset[int] | None = None

    def is_alive_in(self, step: int) -> bool:
        """Tells whether it holds anything in some live set of a step."""
        return self.first_step <= step <= self.last_step

    def meets(self, other: Buffer) -> bool:
        """Tells whether both buffers are ever alive together."""
        if self.first_step > other.last_step or other.first_step > self.last_step:
            return False
        if self.first_step != other.first_step or min(self.last_step, other.last_step) > self.first_step:
            return True  # a common step is not the first step of both
        return self.live_sets is None or other.live_sets is None or bool(self.live_sets & other.live_sets)


class Overlap(NamedTuple):
    """Permission for `below` to reach into `above` while both are alive, if it starts at least `distance` bytes before
    it.

    An output may overwrite input bytes that are no longer needed. Distance 0 is in place.
    """

    below: str
    above: str
    distance: int


@dataclass(frozen=True)
class Placement:
    """Byte offsets of all buffers.

    offsets      buffer name -> byte offset from the arena's start
    arena_bytes  end of the highest buffer, not rounded
    lower_bound  bytes that every placement takes at least
    optimal      proven: no placement is smaller than this one
    """

    offsets: dict[str, int]
    arena_bytes: int
    lower_bound: int
    optimal: bool


def _contradiction(what: str) -> InternalFault:
    return InternalFault("the planner of the arena", what)


class Problem:
    """Buffers by number, and for each pair that is alive together the least distance between starts.

    `apart[i][j]` is the least offset(j) - offset(i) with which i may lie below j: the bytes of i, or the distance of an
    Overlap. Pairs without a restriction are absent: pairs never alive together, with a buffer of zero bytes, or with
    overlaps in place both ways. `near` has the distances of all pairs that are alive together and may share bytes,
    those in place both ways included.

    Raises InternalFault if buffers or overlaps contradict themselves.
    """

    def __init__(self, buffers: Iterable[Buffer], overlaps: Iterable[Overlap] = ()):
        self.buffers = tuple(buffers)
        number = {buffer.name: i for i, buffer in enumerate(self.buffers)}
        if len(number) < len(self.buffers):
            raise _contradiction("two buffers have one name")
        for b in self.buffers:
            if b.bytes < 0 or b.align < 1:
                raise _contradiction(f"{b.name}: {b.bytes} bytes, alignment {b.align}")
            if not 0 <= b.first_step <= b.last_step:
                raise _contradiction(f"{b.name}: steps {b.first_step} to {b.last_step}")
        self.apart: list[dict[int, int]] = [{} for _ in self.buffers]
        for i, j in self._meeting():
            self.apart[i][j], self.apart[j][i] = self.buffers[i].bytes, self.buffers[j].bytes
        for o in overlaps:
            if o.below not in number or o.above not in number:
                raise _contradiction(f"no such buffer: {o}")
            below, above = number[o.below], number[o.above]
            if not 0 <= o.distance <= self.buffers[below].bytes or below == above:
                raise _contradiction(f"impossible: {o}")
            if above in self.apart[below]:
                self.apart[below][above] = min(self.apart[below][above], o.distance)
        self.near: list[dict[int, int]] = [
            {j: distance for j, distance in others.items() if distance < self.buffers[i].bytes}
            for i, others in enumerate(self.apart)
        ]
        self._free_mutual_pairs()
        self._refuse_circles()

    def _meeting(self) -> list[tuple[int, int]]:
        """Pairs that are ever alive together, the higher number first, sorted."""
        found: list[tuple[int, int]] = []
        open_ones: list[int] = []
        for i in sorted((i for i, b in enumerate(self.buffers) if b.bytes), key=lambda i: self.buffers[i].first_step):
            buffer = self.buffers[i]
            open_ones = [j for j in open_ones if self.buffers[j].last_step >= buffer.first_step]
            found += [(max(i, j), min(i, j)) for j in open_ones if buffer.meets(self.buffers[j])]
            open_ones.append(i)
        return sorted(found)

    def _free_mutual_pairs(self) -> None:
        for i, others in enumerate(self.apart):
            for j in [j for j in others if others[j] == self.apart[j][i] == 0]:
                del self.apart[i][j], self.apart[j][i]

    def _refuse_circles(self) -> None:
        """Raises InternalFault if in-place overlaps form a cycle. Only equal offsets would satisfy one, which no order
        of placing expresses. No schedule has a cycle: each output would begin when the next ends."""
        in_place = {i: [j for j, d in others.items() if d == 0] for i, others in enumerate(self.apart)}
        try:
            TopologicalSorter(in_place).prepare()
        except CycleError as error:
            names = ", ".join(self.buffers[i].name for i in error.args[1])
            raise _contradiction(f"in-place overlaps form a circle: {names}") from None

    @cached_property
    def live_sets(self) -> list[list[int]]:
        """Maximal sets of buffers that are alive together, without buffers of zero bytes; each sorted."""
        begin: dict[int, list[int]] = {}
        for i, buffer in enumerate(self.buffers):
            if buffer.bytes:
                begin.setdefault(buffer.first_step, []).append(i)
        found: set[frozenset[int]] = set()
        there: list[int] = []
        for step, new in sorted(begin.items()):
            there = [i for i in there if self.buffers[i].last_step >= step]
            here = [*((i, None) for i in there), *((i, self.buffers[i].live_sets) for i in new)]
            there += new
            for live_set in frozenset().union(*(live_sets or () for _, live_sets in here)) or {0}:
                found.add(frozenset(i for i, live_sets in here if live_sets is None or live_set in live_sets))
        having: dict[int, list[frozenset[int]]] = {}
        for alive in found:
            for i in alive:
                having.setdefault(i, []).append(alive)
        # a superset also holds the rarest of the set's buffers
        fewest = {alive: min((having[i] for i in alive), key=len, default=[]) for alive in found}
        return sorted(sorted(alive) for alive in found if not any(alive < other for other in fewest[alive]))

    def place(self, order: Iterable[int]) -> dict[int, int]:
        """Places each buffer at its lowest valid offset, in the given order."""
        offsets = self.place_below(math.inf, order)
        assert offsets is not None, "none ends beyond all"
        return offsets

    def place_below(self, most: float, order: Iterable[int]) -> dict[int, int] | None:
        """Places each buffer at its lowest valid offset, in the given order; None once one ends at `most` or beyond."""
        offsets: dict[int, int] = {}
        for item in order:
            offset = self._lowest_offset(item, offsets)
            if offset + self.buffers[item].bytes >= most:
                return None
            offsets[item] = offset
        return offsets

    def place_within(self, most: int, order: Iterable[int], placed: Mapping[int, int]) -> dict[int, int]:
        """Adds buffers to those already `placed`, in the given order, each at its lowest valid offset; skips those that
        would end beyond `most`."""
        offsets = dict(placed)
        for item in order:
            offset = self._lowest_offset(item, offsets)
            if offset + self.buffers[item].bytes <= most:
                offsets[item] = offset
        return offsets

    def _lowest_offset(self, item: int, offsets: dict[int, int]) -> int:
        """Lowest aligned offset at which `item` may lie beside the buffers in `offsets`."""
        align = self.buffers[item].align
        # [start, end) of starts of `item` that a placed buffer forbids
        forbidden = sorted(
            [
                (offsets[other] - distance + 1, offsets[other] + self.apart[other][item])
                for other, distance in self.apart[item].items()
                if other in offsets
            ]
        )
        candidate = 0
        for start, end in forbidden:
            if start <= candidate < end:
                candidate = -(-end // align) * align
        return candidate

    def top(self, offsets: dict[int, int]) -> int:
        """End of the highest buffer, in bytes."""
        return max((offset + self.buffers[i].bytes for i, offset in offsets.items()), default=0)
