"""Rings of a group in a stack: one above the other in a single buffer, each with exactly the rows that are needed.

A ring that slides leaves its last row's bytes to others for most of the time, but only to what lies there anyway: the
rows of another ring that are always needed can't come and go. In a stack they do. A row that is made opens a gap behind
its ring's last row, for which all rings above move up; a row that is used up closes one. So the stack never holds more
than the rows that are needed at the moment, whose most bytes no placement can fall below. The scratch of the stage that
runs lies on top.

An output of the group may be the lowest in it, of which every row stays: while its rows come, those of the rings go, so
that the stack holds less at its fullest than the whole output and the fullest rings apart. In the end it is all that is
left, and is moved to where the groups after this one read it, if that is elsewhere.

Less still is needed where a row is written over one that is used up by the very call: the first row of the ring above,
if the call reads that in an order that keeps in front of what it writes (`Kernel.row_access_orders`). A convolution's
row lies there over the first row of its window, a sum over one of its terms. So rings that may be taken are laid above
those that take them; else stages are in order, the last one's ring at the bottom, for it moves least.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tinyfuse.cached import cached_property
from tinyfuse.ir import ITEM_BYTES
from tinyfuse.plan.loop import NEVER, Loop, first_rows
from tinyfuse.plan.plan import STACK_ALIGN, StackedRing, Stage

#: what a ring in a stack begins at a multiple of: its elements are no larger
_UNIT = 4


class _Taking(NamedTuple):
    """So many bytes of each row that a stage makes at these events lie over the first row of another one's ring."""

    below: int
    above: int
    taken: int
    events: np.ndarray


class RingStack:
    """The stack of a group's rings, on the output of the stage `growing`, where there is one.

    members  the stages whose rings are in it, and that one
    rings    bottom first
    bytes    event by event what it holds, the scratch of the stage that runs among it
    """

    def __init__(self, stages: Sequence[Stage], loop: Loop, growing: int | None = None):
        self._stages, self._loop, self._made, self._growing = stages, loop, loop.made_before, growing
        rings = [s for s in loop.rings if may_be_stacked(stages[s])]
        self.members = frozenset(rings if growing is None else [*rings, growing])
        makers = {stages[m].op.output: m for m in self.members}
        # per stage those of whose rows it reads
        self._reads = [sorted({makers[t] for t in stage.op.inputs if t in makers}) for stage in stages]
        self._oldest = {s: loop.oldest_kept(s) for s in rings}
        if growing is not None:
            self._oldest[growing] = np.zeros(len(loop.order), np.int32)
        self._before = {s: self._made[s] - self._oldest[s] for s in self.members}  # rows of its ring before each event
        held = np.zeros(len(loop.order), np.int64)
        for s in self.members:
            held += (self._before[s] + loop.made_now(s)) * _row_bytes(stages[s])
        scratch = np.array([stage.scratch_bytes for stage in stages])[loop.order]
        self._takings = self._chosen(held + scratch)
        self._order = list(self._upwards())
        taken = {taking.above: taking.taken for taking in self._takings.values()}
        self.rings = tuple(StackedRing(stages[s].op.output, taken.get(s, 0)) for s in self._order)
        for taking in self._takings.values():
            held[taking.events] -= taking.taken
        self.bytes = np.where(scratch > 0, -(-held // STACK_ALIGN) * STACK_ALIGN + scratch, held)

    def _chosen(self, held: np.ndarray) -> dict[int, _Taking]:
        """By the stage below: such that each ring takes one, and is taken by one; first where most is `held`."""
        pairs = ((m, above) for m in sorted(self.members) for above in self._reads[m] if above != self._growing)
        found = [taking for taking in (self._taking(*pair) for pair in pairs) if taking is not None]
        chosen: dict[int, _Taking] = {}
        for taking in sorted(found, key=lambda taking: -int(held[taking.events].max())):
            if taking.below not in chosen and all(other.above != taking.above for other in chosen.values()):
                chosen[taking.below] = taking
        return chosen

    def _upwards(self) -> Iterator[int]:
        """The members from the bottom up."""
        above = {taking.above for taking in self._takings.values()}
        for s in sorted(self.members - above, key=lambda s: (s == self._growing, s), reverse=True):
            at: int | None = s
            while at is not None:
                yield at
                at = self._takings[at].above if at in self._takings else None

    def _taking(self, below: int, above: int) -> _Taking | None:
        """How a stage may write its rows over the first of the ring that `above` makes; None where it may not."""
        stage, source = self._stages[below], self._stages[above]
        use = stage.row_access_order(source.op.output)
        read, written = _row_bytes(source), _row_bytes(stage)
        if use is None or written > read:
            return None
        index, order = use
        taken = (written - order.distance(read, written)) // _UNIT * _UNIT
        first = self._oldest[above]
        last = np.append(first[1:], NEVER) > first  # event by event, whether a row leaves the ring behind it
        events = np.flatnonzero((self._loop.order == below) & last & (first < self._made[above]))
        reads = first_rows(stage.window(index), stage.op.output.shape[1])[self._made[below][events]]
        if taken <= 0 or not len(events) or (reads != first[events]).any():
            return None
        return _Taking(below, above, taken, events)

    @cached_property
    def moves(self) -> Mapping[int, tuple[int, int]]:
        """Per stage how often the stack is looked at for it, and how many bytes are moved."""
        found: dict[int, tuple[int, int]] = {}
        sizes = {s: _row_bytes(self._stages[s]) for s in self.members}
        held = np.array([self._before[m].astype(np.int64) * sizes[m] for m in self._order])
        # of each, the bytes above it before each event
        over = dict(zip(self._order, np.cumsum(held[::-1], axis=0)[::-1] - held, strict=True))
        for s in range(len(self._stages)):
            events = np.flatnonzero(self._loop.order == s)
            settled = np.zeros(len(events), bool)  # what is taken is what is made
            if s in self._takings and self._takings[s].taken == sizes[s]:
                settled = np.isin(events, self._takings[s].events)
            looks = moved = 0
            for m in self._reads[s]:
                if m != self._growing:
                    looks += len(events)
                    left = np.append(self._oldest[m][1:], NEVER)[events]
                    drops = left > self._oldest[m][events]
                    if s in self._takings and self._takings[s].above == m:
                        drops &= ~settled
                    kept = np.maximum(self._made[m][events] - left, 0) * sizes[m]
                    moved += int((over[m][events] + kept)[drops].sum())
            if s in self.members:
                looks += len(events)
                moved += int(over[s][events][~settled].sum())
            found[s] = looks, moved
        return found


def _row_bytes(stage: Stage) -> int:
    return stage.op.output.bytes // stage.op.output.shape[1]


def may_be_stacked(stage: Stage) -> bool:
    """Whether the rows of what a stage makes can be moved, and lie anywhere."""
    rows_of_words = _row_bytes(stage) % _UNIT == 0 and ITEM_BYTES[stage.op.output.dtype] <= _UNIT
    return rows_of_words and not stage.kernel.accumulates and stage.op.output.planes == 1
