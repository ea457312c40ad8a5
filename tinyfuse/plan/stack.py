"""Stacks of rings: a group's rings, one above the other in a single buffer, each with exactly the rows that are needed.

A sliding ring frees its last row's bytes most of the time, but only for buffers at fixed places; the rows of another
ring that is always alive cannot use them. In a stack they can. A new row opens a gap behind its ring's last row, for
which all rings above move up; a used-up row closes one. So the stack holds only the rows that are needed at the moment,
and its peak is a lower bound for any placement. The scratch of the running stage lies on top.

An output of the group may be at the bottom, where all its rows stay. While its rows are added, rows of rings are
dropped, so the peak is below the output's size plus the rings' peak. At the end of the group, only the output is left.
It is moved to the place where the next groups read it, if it is not there already.

A new row may also overwrite the one that its call uses up: the first row of the ring above, if the call reads ahead of
what it writes (`Kernel.row_access_orders`). A convolution's row overwrites the first row of its window, a sum one of
its terms. The overwritten ring of such a pair lies directly above the other one. Otherwise rings lie in reverse order
of stages: the ring at the bottom, the last stage's, moves least.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from tinyfuse.ir import ITEM_BYTES
from tinyfuse.plan.loop import NEVER, Loop, Played, first_rows
from tinyfuse.plan.plan import STACK_ALIGN, StackedRing, Stage

#: alignment in bytes of rings in a stack; larger elements are not stacked
_UNIT = 4


class _Taking(NamedTuple):
    """At these events, the stage that makes rows of `below` writes `taken` bytes of its row over the first row of the
    ring of `above`."""

    below: int
    above: int
    taken: int
    events: np.ndarray


class RingStack:
    """The stack of a group's rings, on top of the output of stage `resident_output`, if given.

    members  stages whose rings are in it, and `resident_output`
    rings    bottom first
    bytes    size per event, with the scratch of the running stage
    """

    def __init__(self, stages: Sequence[Stage], loop: Loop, resident_output: int | None = None):
        self._stages, self._loop, self._resident_output = stages, loop, resident_output
        rings = [s for s in loop.rings if may_be_stacked(stages[s])]
        self.members = frozenset(rings if resident_output is None else [*rings, resident_output])
        # member -> row in matrices of [members, events]
        self._row = {s: row for row, s in enumerate(sorted(self.members))}
        makers = {stages[m].op.output: m for m in self.members}
        # per stage, the members whose rows it reads
        self._reads = [sorted({makers[t] for t in stage.op.inputs if t in makers}) for stage in stages]
        self._row_bytes = {m: _row_bytes(stages[m]) for m in self._row}
        self._sizes = np.array([*self._row_bytes.values()], np.int64)[:, None]
        played, of_members = Played(loop), list(self._row)
        # rows made, and the first row kept, before each event; `_left` is the first row kept after it
        self._made = played.made[of_members]
        self._oldest = np.minimum(played.oldest[of_members], self._made)
        if resident_output is not None:
            self._oldest[self._row[resident_output]] = 0
        self._left = np.full_like(self._oldest, NEVER)
        self._left[:, :-1] = self._oldest[:, 1:]
        filled = ((self._made - self._oldest + played.now[of_members]) * self._sizes).sum(axis=0)
        scratch = np.array([stage.scratch_bytes for stage in stages])[loop.order]
        self._takings = self._chosen(filled + scratch)
        self._order = list(self._upwards())
        taken = {taking.above: taking.taken for taking in self._takings.values()}
        self.rings = tuple(StackedRing(stages[s].op.output, taken.get(s, 0)) for s in self._order)
        for taking in self._takings.values():
            filled[taking.events] -= taking.taken
        self.bytes = np.where(scratch > 0, -(-filled // STACK_ALIGN) * STACK_ALIGN + scratch, filled)

    def _chosen(self, filled: np.ndarray) -> dict[int, _Taking]:
        """Greedily pairs rings so that a new row of one overwrites the first row of the other; returns the pairs by the
        stage that writes. Each ring is below in at most one pair, and above in at most one. Pairs at events with the
        most bytes `filled` come first."""
        pairs = ((m, above) for m in sorted(self.members) for above in self._reads[m] if above != self._resident_output)
        found = [taking for taking in (self._taking(*pair) for pair in pairs) if taking is not None]
        chosen: dict[int, _Taking] = {}
        for taking in sorted(found, key=lambda taking: -int(filled[taking.events].max())):
            if taking.below not in chosen and all(other.above != taking.above for other in chosen.values()):
                chosen[taking.below] = taking
        return chosen

    def _upwards(self) -> Iterator[int]:
        """Yields the members from the bottom up."""
        above = {taking.above for taking in self._takings.values()}
        for s in sorted(self.members - above, key=lambda s: (s == self._resident_output, s), reverse=True):
            at: int | None = s
            while at is not None:
                yield at
                at = self._takings[at].above if at in self._takings else None

    def _taking(self, below: int, above: int) -> _Taking | None:
        """Computes how `below` may write its rows over the first row of the ring that `above` makes; None if it may
        not."""
        stage, source = self._stages[below], self._stages[above]
        read, written = self._row_bytes[above], self._row_bytes[below]
        use = stage.row_access_order(source.op.output) if written <= read else None
        if use is None:
            return None
        index, order = use
        taken = (written - order.distance(read, written)) // _UNIT * _UNIT
        if taken <= 0:
            return None
        row, events = self._row[above], self._loop.events[below]
        oldest = self._oldest[row, events]
        first_goes = (self._left[row, events] > oldest) & (oldest < self._made[row, events])
        events, oldest = events[first_goes], oldest[first_goes]
        reads = first_rows(stage.window(index), stage.op.output.shape[1])[self._made[self._row[below], events]]
        if not len(events) or (reads != oldest).any():
            return None
        return _Taking(below, above, taken, events)

    @cached_property
    def moves(self) -> Mapping[int, tuple[int, int]]:
        """Cost of moving per stage: (number of checks of the stack, bytes moved)."""
        # a new row moves all rings above it; a row that goes also moves the rows left in its ring
        bottom_first = [self._row[m] for m in self._order]
        filled = ((self._made - self._oldest) * self._sizes)[bottom_first]
        over = np.empty_like(filled)
        over[bottom_first] = np.cumsum(filled[::-1], axis=0)[::-1] - filled
        kept = np.maximum(self._made - self._left, 0) * self._sizes
        going = np.where(self._left > self._oldest, over + kept, 0)
        for taking in self._takings.values():
            if taking.taken == self._row_bytes[taking.below]:  # the new row replaces the old one exactly: nothing moves
                over[self._row[taking.below], taking.events] = 0
                going[self._row[taking.above], taking.events] = 0
        come, gone = self._by_stage(over), self._by_stage(going)
        found: dict[int, tuple[int, int]] = {}
        for s, calls in enumerate(self._loop.calls.tolist()):
            read = [self._row[m] for m in self._reads[s] if m != self._resident_output]
            moved = sum(gone[row][s] for row in read) + (come[self._row[s]][s] if s in self.members else 0)
            found[s] = calls * (len(read) + (s in self.members)), moved
        return found

    def _by_stage(self, of_events: np.ndarray) -> list[list[int]]:
        """Sums the rows of a matrix [members, events] over each stage's events; [members, stages]."""
        sums = np.cumsum(of_events[:, np.concatenate(self._loop.events)], axis=1)
        until = np.insert(sums, 0, 0, axis=1)[:, np.cumsum(self._loop.calls)]
        found: list[list[int]] = np.diff(until, axis=1, prepend=0).tolist()
        return found


def _row_bytes(stage: Stage) -> int:
    return stage.op.output.bytes // stage.op.output.shape[1]


def may_be_stacked(stage: Stage) -> bool:
    """Tells whether the output rows of a stage can be moved and need no more than word alignment."""
    rows_of_words = _row_bytes(stage) % _UNIT == 0 and ITEM_BYTES[stage.op.output.dtype] <= _UNIT
    return rows_of_words and not stage.kernel.accumulates and stage.op.output.planes == 1
