"""The loop over rows of a fusion group, played through: in numbers alone.

Which stage computes when depends on how many rows each stage makes, which rows of the others it needs, and
what leaves the group; on nothing else. Networks repeat their blocks, and the search weighs the same operators
in many groups, orders and contexts. So `play` remembers the loops that were played.

What is needed of a loop follows from how many rows each stage has made before each event, and is computed for
all events at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from tinyfuse.ops.base import RowWindow

#: in place of a row: none is needed any more
NEVER = np.iinfo(np.int32).max


@dataclass(frozen=True)
class StageRows:
    """What a loop knows of a stage.

    height       rows that it makes
    reads        (stage, window) of each input that a stage of the group makes
    leaves       its output is kept whole
    accumulates  it makes a row from the row before
    """

    height: int
    reads: tuple[tuple[int, RowWindow], ...]
    leaves: bool
    accumulates: bool


@lru_cache(maxsize=8192)
def play(stages: tuple[StageRows, ...]) -> Loop:
    """The loop of these stages."""
    return Loop(stages)


class Loop:
    """A loop that was played.

    order   the stage that computes, event by event; each stage makes its rows from 0 on
    uses    per stage, (stage, window) of every input that reads its output
    """

    def __init__(self, stages: tuple[StageRows, ...]):
        self.stages = stages
        self.uses: list[list[tuple[int, RowWindow]]] = [[] for _ in stages]
        for s, stage in enumerate(stages):
            for maker, window in stage.reads:
                self.uses[maker].append((s, window))
        self.order = np.array(_play(stages, self.uses), np.int16)

    @cached_property
    def places(self) -> list[np.ndarray]:
        """Per stage the events at which it makes its rows, in order."""
        found = np.argsort(self.order, kind="stable").astype(np.int32)
        return np.split(found, np.cumsum(self.rows_made)[:-1])

    @cached_property
    def rows_made(self) -> np.ndarray:
        """Per stage the rows that it makes: all, unless readers don't need the last ones."""
        return np.bincount(self.order, minlength=len(self.stages))

    def made(self, s: int, events: np.ndarray | None = None) -> np.ndarray:
        """How many rows of stage `s` there are before each event, or before `events`."""
        if events is not None:
            return np.searchsorted(self.places[s], events)
        now = self.order == s
        return np.cumsum(now, dtype=np.int32) - now

    def oldest_needed(
        self, uses: Sequence[tuple[int, RowWindow]], events: np.ndarray | None = None, behind: bool = False
    ) -> np.ndarray:
        """The first row that any of the `uses` of a tensor still needs for its next row, NEVER where none does:
        before each event, or before `events`; right `behind` them where asked for."""
        count = len(self.order if events is None else events)
        found = np.full(count, NEVER, np.int32)
        for reader, window in uses:
            made = self.made(reader, events)
            if behind:
                made = made + (self.order if events is None else self.order[events] == reader)
            np.minimum(found, first_rows(window, self.stages[reader].height)[made], out=found)
        return found

    @cached_property
    def rings(self) -> dict[int, int]:
        """Rows that the ring of each stage's output must hold that doesn't leave the group: newest made -
        oldest needed + 1."""
        found = {}
        for s, stage in enumerate(self.stages):
            if not stage.leaves:
                oldest = self.oldest_needed(self.uses[s], self.places[s])
                held = np.arange(1, len(oldest) + 1) - oldest
                found[s] = max(1, int(held.max(initial=1)))
        return found

    @cached_property
    def sliding(self) -> frozenset[int]:
        """Stages whose rings hold fewer rows, where they slide, while neither the stage nor its readers run,
        and whose rows are all read."""
        return frozenset(s for s, rows in self.rings.items() if rows > 1 and self._gains(s) and self._reads_all(s))

    def _gains(self, s: int) -> bool:
        busy = np.isin(self.order, [s, *(reader for reader, _ in self.uses[s])])
        return self.held(s, slides=True)[~busy].max(initial=0) < self.rings[s]

    def _reads_all(self, s: int) -> bool:
        return all(window.stride <= window.kernel and window.pad_top >= 0 for _, window in self.uses[s])

    def held(self, s: int, slides: bool) -> np.ndarray:
        """How many rows of a stage's output hold bytes during each event, the one that is being written among
        them: of what leaves the group those made so far, of a ring that slides those still needed, of any
        other ring all or none."""
        stage, now, made = self.stages[s], self.order == s, self.made(s)
        if stage.leaves:
            return made + now
        oldest = self.oldest_needed(self.uses[s])
        if slides:
            return np.maximum(made - oldest, 0) + now
        # the last row of one that accumulates makes the next
        holds = (made > 0) & (oldest < NEVER) & ((oldest < made) | stage.accumulates)
        return np.where(holds | now, np.int32(self.rings[s]), np.int32(0))

    def extents(self, sliding: frozenset[int]) -> np.ndarray:
        """Event by event the stage that computes, then the rows of each stage's output that hold bytes; int32
        [events, 1 + stages]."""
        found = np.empty((len(self.order), 1 + len(self.stages)), np.int32)
        found[:, 0] = self.order
        for s in range(len(self.stages)):
            found[:, 1 + s] = self.held(s, s in sliding)
        return found

    @cached_property
    def inner_extents(self) -> np.ndarray:
        """The different `extents`, of rings alone, none of which slides."""
        return self._inner(frozenset())

    @cached_property
    def sliding_extents(self) -> np.ndarray:
        """The same with rings that slide."""
        return self._inner(self.sliding)

    def _inner(self, sliding: frozenset[int]) -> np.ndarray:
        rings = [s in self.rings for s in range(len(self.stages))]
        return different(self.extents(sliding) * np.array([True, *rings]))

    @cached_property
    def slides(self) -> dict[int, dict[int, int]]:
        """Per stage that reads rings which slide, for each of those (known by its maker) how many rows are
        moved down behind the stage's rows."""
        found: dict[int, dict[int, int]] = {}
        for s in sorted(self.sliding):
            readers = sorted({reader for reader, _ in self.uses[s]})
            events = np.flatnonzero(np.isin(self.order, readers))
            made = self.made(s, events)
            oldest = np.minimum(self.oldest_needed(self.uses[s], events, behind=True), made)
            moved = np.where(np.diff(oldest, prepend=0) > 0, made - oldest, 0)
            for reader in readers:
                found.setdefault(reader, {})[s] = int(moved[self.order[events] == reader].sum())
        return found


def different(rows: np.ndarray) -> np.ndarray:
    """The different rows of a matrix, in the order in which they come."""
    rows = np.ascontiguousarray(rows)
    known = dict.fromkeys(rows.view(f"V{rows.itemsize * rows.shape[1]}").ravel().tolist())
    return np.frombuffer(b"".join(known), rows.dtype).reshape(-1, rows.shape[1])


@lru_cache(maxsize=4096)
def first_rows(window: RowWindow, rows: int) -> np.ndarray:
    """The first row that each of a reader's next rows needs; NEVER behind its last one."""
    return np.array([*(window.first(y) for y in range(rows)), NEVER], np.int32)


@lru_cache(maxsize=4096)
def _rows_needed(window: RowWindow, rows: int, height: int) -> list[int]:
    """How many rows of a tensor must be there before each of a reader's next rows; none behind its last one."""
    return [*(window.needed(y, height) for y in range(rows)), 0]


def _play(stages: tuple[StageRows, ...], uses: list[list[tuple[int, RowWindow]]]) -> list[int]:
    """Turn by turn the stage nearest to the end that can run (schedule/rows.py says when it can)."""
    heights, done = [stage.height for stage in stages], [0] * len(stages)
    inputs = [
        [(maker, _rows_needed(window, stage.height, heights[maker])) for maker, window in stage.reads] for stage in stages
    ]
    wanted_by = [
        [(reader, _rows_needed(window, heights[reader], heights[s])) for reader, window in uses[s]]
        for s in range(len(stages))
    ]
    # After a row of stage s, only its readers can have become able to run, and stages before s:
    # those behind its last reader need no look.
    next_looks = [max((reader for reader, _ in uses[s]), default=s) for s in range(len(stages))]
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
                ready = False
        if ready:
            for maker, needed in inputs[at]:
                if done[maker] < needed[row]:
                    ready = False
                    break
        if ready:
            order.append(at)
            done[at] = row + 1
            at = next_looks[at]
        else:
            at -= 1
    return order
