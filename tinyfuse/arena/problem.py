"""Buffers with lifetimes, what may overlap, and what a placement is. Plain data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Buffer:
    """`bytes` of memory that keep their content from `first_step` to `last_step`, both included.

    align    its offset is a multiple of this
    owner    what it is, for people
    moments  of a buffer that lives in one step alone: the numbered moments of that step at which it
             does; None: all of them
    """

    name: str
    bytes: int
    first_step: int
    last_step: int
    align: int = 16
    owner: str = ""
    moments: frozenset[int] | None = None

    def meets(self, other: Buffer) -> bool:
        """Whether both are ever alive together."""
        if self.first_step > other.last_step or other.first_step > self.last_step:
            return False
        return self.moments is None or other.moments is None or bool(self.moments & other.moments)


@dataclass(frozen=True)
class Overlap:
    """Though both are alive, `below` may reach into `above` if it starts at least `distance` bytes
    before it: an output that overwrites input bytes which are no longer needed. 0: in place."""

    below: str
    above: str
    distance: int


@dataclass(frozen=True)
class Placement:
    """offsets      buffer name -> byte offset from the arena's start
    arena_bytes  the end of the highest buffer, not rounded
    lower_bound  no placement is smaller
    optimal      proven: no placement is smaller than this one
    """

    offsets: dict[str, int]
    arena_bytes: int
    lower_bound: int
    optimal: bool


class Problem:
    """The buffers by number, and for each pair that is alive together the distance between starts.

    `apart[i][j]` is the least offset(j) - offset(i) with which i may lie below j: the bytes of i,
    or the distance of an Overlap. Pairs that are never alive together are absent.
    """

    def __init__(self, buffers: tuple[Buffer, ...], overlaps: tuple[Overlap, ...]):
        self.buffers = buffers
        names = [buffer.name for buffer in buffers]
        assert len(set(names)) == len(names), "two buffers have one name"
        allowed = {(o.below, o.above): o.distance for o in overlaps}
        self.apart: list[dict[int, int]] = [{} for _ in buffers]
        for i, a in enumerate(buffers):
            for j, b in enumerate(buffers):
                if i != j and a.meets(b) and a.bytes and b.bytes:
                    self.apart[i][j] = min(a.bytes, allowed.get((a.name, b.name), a.bytes))

    def lowest_offset(self, item: int, offsets: dict[int, int]) -> int:
        """The lowest aligned offset at which `item` may lie beside what is placed already."""
        align = self.buffers[item].align
        # [start, end) of starts of `item` that a placed buffer forbids
        forbidden = sorted(
            (offsets[other] - self.apart[item][other] + 1, offsets[other] + self.apart[other][item])
            for other in self.apart[item]
            if other in offsets
        )
        candidate = 0
        for start, end in forbidden:
            if start <= candidate < end:
                candidate = -(-end // align) * align
        return candidate

    def above(self, item: int, offsets: dict[int, int]) -> int:
        """The lowest aligned offset at which `item` lies above every placed buffer it conflicts with."""
        align = self.buffers[item].align
        lowest = max(
            (offsets[o] + self.apart[o][item] for o in self.apart[item] if o in offsets), default=0
        )
        return -(-lowest // align) * align

    def top(self, offsets: dict[int, int]) -> int:
        return max((offset + self.buffers[i].bytes for i, offset in offsets.items()), default=0)
