"""Simulates the row loop of a fusion group: which stage runs at each event, and how many rows each has made.

The order of stages depends only on the rows that each stage makes, the rows of other stages that it needs, and which
outputs leave the group. Networks repeat their blocks, and the search weighs the same operators in many groups and
orders, so `play` caches loops.

All properties of a loop follow from how many rows each stage has made before each event. They are computed for all
events at once, in numpy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from tinyfuse.ops.core.family import RowWindow

#: row number that means: no row is needed any more
NEVER = np.iinfo(np.int32).max


class StageRows(NamedTuple):
    """Properties of a stage that its loop depends on.

    height       rows that it makes.
    at_once      rows that one event makes; the last event makes what is left.
    reads        (stage, window) of each input that a stage of the group makes.
    leaves       its output is kept whole.
    accumulates  it computes each row from the row before.
    in_order     its kernel needs the rows of a call contiguous in memory, both input and output rows.
    eager        it makes a row as soon as a reader needs that row for the row after its next one, provided
                 that no other stage still needs the first row that it reads.
    """

    height: int
    reads: tuple[tuple[int, RowWindow], ...]
    leaves: bool
    accumulates: bool
    at_once: int = 1
    in_order: bool = False
    eager: bool = False

    def rows_after(self, events: np.ndarray) -> np.ndarray:
        """Computes how many rows exist after the given numbers of its events."""
        rows: np.ndarray = np.minimum(events * self.at_once, self.height)
        return rows


@lru_cache(maxsize=8192)
def play(stages: tuple[StageRows, ...]) -> Loop:
    """Simulates the loop of these stages; cached."""
    return Loop(stages)


class Loop:
    """A simulated loop. Stages are identified by number, and each makes its rows from 0 on.

    order              the stage that runs, event by event.
    calls              events per stage.
    rows_made          rows that each stage makes: all, unless readers do not need the last ones.
    rings              stage -> rows that its ring must hold: newest made - oldest needed + 1; without stages whose
                       output leaves.
    in_order           stages whose rings must slide, because a reader needs their rows contiguous.
    sliding            `in_order`, and stages all of whose rows are read and whose rings, if they slide, hold fewer rows
                       while neither the stage nor its readers run.
    slides             reader -> {maker: rows moved down after the reader's rows}, for sliding rings.
    inner_live_rows    distinct `live_rows`, of rings only, if none slides.
    sliding_live_rows  distinct `live_rows`, of rings only, if all of `sliding` slide.
    """

    def __init__(self, stages: tuple[StageRows, ...]):
        self.stages = stages
        self._uses: list[list[tuple[int, RowWindow]]] = [[] for _ in stages]
        for s, stage in enumerate(stages):
            for maker, window in stage.reads:
                self._uses[maker].append((s, window))
        self.order = np.array(_play(stages, self._uses), np.int16)
        self.calls = np.bincount(self.order, minlength=len(stages))
        self.rows_made = np.array([s.rows_after(n) for s, n in zip(stages, self.calls, strict=True)])
        self.rings: dict[int, int] = {}
        self.in_order = self.sliding = frozenset[int]()
        self.slides: dict[int, dict[int, int]] = {}
        # for a single stage whose output leaves the group
        self.inner_live_rows = self.sliding_live_rows = np.zeros((1, 2), np.int32)
        if len(stages) > 1 or not stages[0].leaves:
            self._analyse_rings(Played(self))

    def _analyse_rings(self, played: Played) -> None:
        stages = self.stages
        self.rings = {s: self._ring(s, played) for s, stage in enumerate(stages) if not stage.leaves}
        self.in_order = frozenset(
            s for s, rows in self.rings.items() if self._is_read_in_order(s) and 1 < rows < stages[s].height
        )
        still = played.rows_held_fixed(self.rings)
        moving = {s: played.rows_held_sliding(s) for s, rows in self.rings.items() if rows > 1 and self._reads_all(s)}
        moving |= {s: played.rows_held_sliding(s) for s in self.in_order if s not in moving}
        self.sliding = self.in_order | {
            s for s, kept_rows in moving.items() if kept_rows[self._idle(s)].max(initial=0) < self.rings[s]
        }
        self.slides = self._slides(played.made)
        kept = [s for s, stage in enumerate(stages) if stage.leaves]
        still[kept] = 0
        self.inner_live_rows = distinct_rows(self._live_rows(still))
        for s in self.sliding:
            still[s] = moving[s]
        self.sliding_live_rows = distinct_rows(self._live_rows(still)) if self.sliding else self.inner_live_rows

    @cached_property
    def events(self) -> list[np.ndarray]:
        """Events of each stage, ascending; int32."""
        found = np.argsort(self.order, kind="stable").astype(np.int32)
        return np.split(found, np.cumsum(self.calls)[:-1])

    @cached_property
    def row_events(self) -> list[np.ndarray]:
        """Event at which each stage makes each of its rows."""
        made = zip(self.stages, self.events, self.rows_made, strict=True)
        return [np.repeat(event, stage.at_once)[:rows] for stage, event, rows in made]

    def live_rows(self, sliding: frozenset[int]) -> np.ndarray:
        """Stage that runs, and rows of each stage's output that hold bytes, per event; int32 [events, 1 + stages]."""
        played = Played(self)
        kept_rows = played.rows_held_fixed(self.rings)
        for s in sliding & self.rings.keys():
            kept_rows[s] = played.rows_held_sliding(s)
        return self._live_rows(kept_rows)

    def oldest_needed(self, uses: Sequence[tuple[int, RowWindow]], events: np.ndarray | None = None) -> np.ndarray:
        """First row of a tensor that any of its `uses` (stage, window) still needs; NEVER if none does.

        There is one entry for the time before each event; `events` selects some of them.
        """
        events = np.arange(len(self.order)) if events is None else events
        made = {reader: np.searchsorted(self.row_events[reader], events) for reader, _ in uses}
        return self._oldest(uses, made, len(events))

    def _oldest(
        self, uses: Sequence[tuple[int, RowWindow]], made: Mapping[int, np.ndarray] | np.ndarray, events: int
    ) -> np.ndarray:
        """Computes `oldest_needed` at `events` points in time, given the rows that each reader has `made` by then."""
        found: np.ndarray | None = None
        for reader, window in uses:
            first = first_rows(window, self.stages[reader].height)[made[reader]]
            found = first if found is None else np.minimum(found, first)
        return np.full(events, NEVER, np.int32) if found is None else found

    def _ring(self, s: int, played: Played) -> int:
        own, stage = played.running[s], self.stages[s]
        rows = max(1, int((played.made[s] + played.now[s] - played.oldest[s])[own].max(initial=1)))
        if rows > 1 and self._is_read_in_order(s) and not self._reads_all(s):
            rows = min(int(played.rows_held_sliding(s)[own].max()), stage.height)
        if stage.in_order:  # an event's rows must not wrap around the ring's end
            rows = min(-(-rows // stage.at_once) * stage.at_once, stage.height)
        return rows

    def _is_read_in_order(self, s: int) -> bool:
        return any(self.stages[reader].in_order for reader, _ in self._uses[s])

    def _reads_all(self, s: int) -> bool:
        return not any(window.leaves_rows_out for _, window in self._uses[s])

    def _idle(self, s: int) -> np.ndarray:
        """Events in which neither stage `s` nor its readers run, as a mask."""
        idle = np.ones(len(self.stages), bool)
        idle[[s, *(reader for reader, _ in self._uses[s])]] = False
        return idle[self.order]

    def _live_rows(self, kept_rows: np.ndarray) -> np.ndarray:
        """Puts the stage that runs in front of the rows `kept_rows` per stage; int32 [events, 1 + stages]."""
        found = np.empty((len(self.order), 1 + len(self.stages)), np.int32)
        found[:, 0], found[:, 1:] = self.order, kept_rows.T
        return found

    def _slides(self, made: np.ndarray) -> dict[int, dict[int, int]]:
        found: dict[int, dict[int, int]] = {}
        for s in sorted(self.sliding):
            readers = sorted({reader for reader, _ in self._uses[s]})
            events = np.flatnonzero(~self._idle(s) & (self.order != s))
            computes = self.order[events]
            there = made[s][events]
            after = {
                reader: np.minimum(
                    made[reader][events] + self.stages[reader].at_once * (computes == reader),
                    self.stages[reader].height,
                )
                for reader in readers
            }
            oldest = np.minimum(self._oldest(self._uses[s], after, len(events)), there)
            moved = np.where(np.diff(oldest, prepend=0) > 0, there - oldest, 0)
            for reader in readers:
                found.setdefault(reader, {})[s] = int(moved[computes == reader].sum())
        return found


class Played:
    """State of a loop before each of its events; int32 [stages, events], `running` bool.

    running  the stage runs in the event
    made     rows made before the event
    now      rows that the event makes
    oldest   first row that a reader still needs
    """

    def __init__(self, loop: Loop):
        self._loop = loop
        heights, at_once = (
            np.array([values], np.int32).T
            for values in ([s.height for s in loop.stages], [s.at_once for s in loop.stages])
        )
        self.running = loop.order == np.arange(len(loop.stages))[:, None]
        events = np.cumsum(self.running, axis=1, dtype=np.int32) - self.running
        self.made = np.minimum(events * at_once, heights)
        self.now = np.minimum(at_once, heights - self.made) * self.running
        self.oldest = np.array([loop._oldest(uses, self.made, len(loop.order)) for uses in loop._uses])

    def rows_held_fixed(self, rings: Mapping[int, int]) -> np.ndarray:
        """Counts the rows of each stage's output that hold bytes during each event, if rings do not slide.

        An output that leaves counts the rows made so far, including those being written. A ring counts all its `rings`
        rows or none.
        """
        stages = self._loop.stages
        rows = np.array([[rings.get(s, 0)] for s in range(len(stages))], np.int32)
        # an accumulating stage computes the next row from its last one
        needed = np.array([[stage.accumulates] for stage in stages]) & (self.oldest < NEVER)
        kept_rows = np.where((self.made > 0) & (needed | (self.oldest < self.made)) | self.running, rows, np.int32(0))
        kept = [s for s, stage in enumerate(stages) if stage.leaves]
        kept_rows[kept] = self.made[kept] + self.now[kept]
        return kept_rows

    def rows_held_sliding(self, s: int) -> np.ndarray:
        """Counts the rows of a sliding ring that hold bytes during each event: those still needed and those being
        written."""
        oldest = self.oldest[s] if self._loop._reads_all(s) else self._begin(s)
        kept_rows: np.ndarray = np.maximum(self.made[s] - oldest, 0) + self.now[s]
        return kept_rows

    def _begin(self, s: int) -> np.ndarray:
        """First row in a ring per event, where the ring slides only after its readers' rows.

        It slides to the oldest row still needed. Rows without readers enter the ring too, so the ring's first row is at
        most the next row to be made.
        """
        oldest, loop = self.oldest[s], self._loop
        after = np.minimum(np.append(oldest[1:], NEVER), np.append(self.made[s][1:], loop.rows_made[s]))
        read = np.isin(loop.order, [reader for reader, _ in loop._uses[s]])
        moved: np.ndarray = np.maximum.accumulate(np.where(read, after, 0))
        return np.insert(moved[:-1], 0, 0)


def distinct_rows(rows: np.ndarray) -> np.ndarray:
    """Distinct rows of a matrix, in order of first occurrence."""
    rows = np.ascontiguousarray(rows)
    known = dict.fromkeys(rows.view(f"V{rows.itemsize * rows.shape[1]}").ravel().tolist())
    return np.frombuffer(b"".join(known), rows.dtype).reshape(-1, rows.shape[1])


@lru_cache(maxsize=4096)
def first_rows(window: RowWindow, rows: int) -> np.ndarray:
    """First row that each of a reader's `rows` rows needs, then NEVER."""
    return np.array([*(window.first(y) for y in range(rows)), NEVER], np.int32)


@lru_cache(maxsize=4096)
def _rows_needed(window: RowWindow, rows: int, height: int, at_once: int) -> list[int]:
    """Rows of a tensor that must exist before each next call of a reader, which makes `at_once` rows; then 0."""
    return [*(window.needed(min(y + at_once, rows) - 1, height) for y in range(rows)), 0]


def _play(stages: tuple[StageRows, ...], uses: list[list[tuple[int, RowWindow]]]) -> list[int]:
    """Simulates the loop: each iteration runs the last stage that can (plan/rows.py says when it can).

    Returns the stage of each event.
    """
    heights, done = [stage.height for stage in stages], [0] * len(stages)
    inputs = [
        [(maker, _rows_needed(window, stage.height, heights[maker], stage.at_once)) for maker, window in stage.reads]
        for stage in stages
    ]
    wanted_by = [
        [
            (reader, _rows_needed(window, heights[reader], heights[s], stages[reader].at_once))
            for reader, window in uses[s]
        ]
        for s in range(len(stages))
    ]
    # After a row of stage s, only its readers and stages before s can have become ready, so the search for the next
    # stage starts at its last reader.
    next_looks = [max((reader for reader, _ in uses[s]), default=s) for s in range(len(stages))]
    frees = {s: _frees(s, stages, uses) for s, stage in enumerate(stages) if stage.eager}
    for s, eager in ((s, eager) for eager, (_, others) in frees.items() for s, _ in others):
        next_looks[s] = max(next_looks[s], eager)  # or at an eager stage that waits until s has read a row
    order: list[int] = []
    at = len(stages) - 1
    while at >= 0:
        row = done[at]
        ready = row < heights[at]
        if ready and not stages[at].leaves:
            for reader, needed in wanted_by[at]:
                if needed[done[reader]] > row:
                    break
            else:
                ready = at in frees and _is_eager(row, done, wanted_by[at], *frees[at])
        if ready:
            for maker, needed in inputs[at]:
                if done[maker] < needed[row]:
                    ready = False
                    break
        if ready:
            order.append(at)
            done[at] = min(row + stages[at].at_once, heights[at])
            at = next_looks[at]
        else:
            at -= 1
    return order


#: (first row that an eager stage reads for each of its rows, [(stage, first row for each of its rows)] of the other
#: readers of that tensor)
_Frees = tuple[np.ndarray, list[tuple[int, np.ndarray]]]


def _frees(s: int, stages: tuple[StageRows, ...], uses: list[list[tuple[int, RowWindow]]]) -> _Frees:
    """First row that eager stage `s` reads for each of its rows, and the same for every other reader of that tensor.
    The stage runs early only when no other reader still needs that row."""
    ((maker, window),) = stages[s].reads
    others = [(other, first_rows(read, stages[other].height)) for other, read in uses[maker] if other != s]
    return first_rows(window, stages[s].height), others


def _is_eager(
    row: int, done: list[int], wanted_by: list[tuple[int, list[int]]], first: np.ndarray,
    others: list[tuple[int, np.ndarray]],
) -> bool:  # fmt: skip
    """Tells whether an eager stage makes its next row now, although no reader needs it yet."""
    if not any(done[reader] + 1 < len(needed) and needed[done[reader] + 1] > row for reader, needed in wanted_by):
        return False
    return all(rows[done[other]] > first[row] for other, rows in others)
