"""Row streaming: in which order a group's stages compute their rows, and what that needs.

A group runs as one loop. In each turn the stage nearest to the end that can run computes one row: it
can when its inputs have the rows of its window, and it is wanted, that is, a consumer inside the group
lacks that row for its own next row (a stage whose output leaves the group is always wanted). So rows
are used up before others are made, no stage runs ahead of its readers, a ring holds the rows of its
readers' windows, and nothing is computed twice. (A turn in which every stage makes a row saves 0.2 %
of the instructions, but keeps more rows alive together: 832 bytes on MLPerf Tiny's resnet.)

`Stream` plays that loop at compile time; the generated C plays the same loop at run time
(tinyfuse/emit/functions.py prints the conditions in the same order). Ring sizes, what is alive
together and overlaps follow from the events, not from a formula.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from tinyfuse.ir import Tensor
from tinyfuse.plan import Stage


def height(tensor: Tensor) -> int:
    """Rows of a tensor that is streamed: H of [1, H, W, C]."""
    return tensor.shape[1]


def row_bytes(tensor: Tensor) -> int:
    return tensor.bytes // height(tensor)


@dataclass(frozen=True)
class Event:
    """Stage `stage` (index in the group) computes its output row `row`."""

    stage: int
    row: int


@dataclass(frozen=True)
class Reader:
    """A stage that reads a tensor by rows: `stage` indexes the group, `input` the operator."""

    stage: int
    input: int


def readers(stages: tuple[Stage, ...], tensor: Tensor) -> list[Reader]:
    """Every place inside the group that reads `tensor`."""
    return [
        Reader(s, i)
        for s, stage in enumerate(stages)
        for i, candidate in enumerate(stage.op.inputs)
        if candidate is tensor
    ]


class Stream:
    """A row group played through once. `kept` are the tensors that leave the group.

    events   every row in the order of computation
    """

    def __init__(self, stages: tuple[Stage, ...], kept: frozenset[Tensor]):
        self.stages, self.kept = stages, kept
        self._heights = [height(stage.op.output) for stage in stages]
        self.events = tuple(self._play())

    def _uses(self, tensor: Tensor) -> list[tuple[int, list[int], list[int]]]:
        """(stage, rows needed before its row y, first row needed for its row y) of each reader."""
        found = []
        for use in readers(self.stages, tensor):
            window = self.stages[use.stage].windows[use.input]
            rows = range(self._heights[use.stage])
            needed = [window.needed(y, height(tensor)) for y in rows]
            found.append((use.stage, needed, [window.first(y) for y in rows]))
        return found

    @cached_property
    def _readers_of(self) -> list[list[tuple[int, list[int], list[int]]]]:
        """Per stage, who reads its output."""
        return [self._uses(stage.op.output) for stage in self.stages]

    def _play(self) -> Iterator[Event]:
        heights, done = self._heights, [0] * len(self.stages)
        stays = [stage.op.output in self.kept for stage in self.stages]
        inputs: list[list[tuple[int, list[int]]]] = [[] for _ in self.stages]
        for maker, uses in enumerate(self._readers_of):
            for reader, needed, _ in uses:
                inputs[reader].append((maker, needed))

        def can_run(s: int) -> bool:
            row = done[s]
            if row == heights[s]:
                return False
            if not stays[s] and not any(
                done[c] < heights[c] and needed[done[c]] > row for c, needed, _ in self._readers_of[s]
            ):
                return False
            return all(done[maker] >= needed[row] for maker, needed in inputs[s])

        # After a row of stage s, only its readers can have become able to run, and stages before s:
        # those behind its last reader need no look.
        last_reader = [max((c for c, _, _ in uses), default=s) for s, uses in enumerate(self._readers_of)]
        at = len(self.stages) - 1
        while at >= 0:
            if can_run(at):
                yield Event(at, done[at])
                done[at] += 1
                at = last_reader[at]
            else:
                at -= 1

    def _oldest_needed(self, uses, done: list[int]) -> int | None:
        """The first row of a tensor that a reader still needs for its next row, None if none does."""
        return min(
            (first[done[c]] for c, _, first in uses if done[c] < self._heights[c]), default=None
        )

    @cached_property
    def rings(self) -> dict[Tensor, int]:
        """Rows that the ring of each internal tensor must hold: newest made - oldest needed + 1."""
        rows = {stage.op.output: 1 for stage in self.stages if stage.op.output not in self.kept}
        done = [0] * len(self.stages)
        for event in self.events:
            output = self.stages[event.stage].op.output
            if output in rows:
                oldest = self._oldest_needed(self._readers_of[event.stage], done)
                if oldest is not None:
                    rows[output] = max(rows[output], event.row + 1 - oldest)
            done[event.stage] += 1
        return rows

    @cached_property
    def moments(self) -> tuple[tuple[int, frozenset[int]], ...]:
        """The different (stage that computes, stages whose rings hold rows meanwhile), in order of
        their first event. A ring holds rows while a reader needs one that was made, and while its own
        stage writes."""
        seen: dict[tuple[int, frozenset[int]], None] = {}
        done = [0] * len(self.stages)
        inner = {s for s, stage in enumerate(self.stages) if stage.op.output not in self.kept}
        # whose rings a row of stage s can change: those it reads, and its own
        touched: list[set[int]] = [{s} & inner for s in range(len(self.stages))]
        for maker in inner:
            for reader, _, _ in self._readers_of[maker]:
                touched[reader].add(maker)
        alive: frozenset[int] = frozenset()
        for event in self.events:
            seen[event.stage, alive | ({event.stage} & inner)] = None
            done[event.stage] += 1
            changed = touched[event.stage]
            alive = (alive - changed) | {s for s in changed if self._holds_rows(s, done)}
        return tuple(seen)

    def _holds_rows(self, s: int, done: list[int]) -> bool:
        """Whether the ring of stage `s` holds a row that a reader needs."""
        oldest = self._oldest_needed(self._readers_of[s], done)
        if oldest is None or not done[s]:
            return False
        # the last row of one that accumulates makes the next
        return oldest < done[s] or self.stages[s].kernel.accumulates

    def overlap_distance(self, source: Tensor, output: Tensor) -> int:
        """Bytes that `output` must start below `source` so that no row still needed is overwritten.

        While a stage writes row j of the output, the output holds bytes up to (j + 1) * its row; the
        source's rows from the oldest one that any reader still needs must lie behind that. The stage
        that writes counts as still reading its own window. The result is at most output.bytes, which
        means: no overlap at all.
        """
        uses = self._uses(source)
        writer = next(s for s, stage in enumerate(self.stages) if stage.op.output is output)
        done = [0] * len(self.stages)
        distance = 0
        for event in self.events:
            if event.stage == writer:
                oldest = self._oldest_needed(uses, done)
                if oldest is not None and oldest < height(source):
                    written = (event.row + 1) * row_bytes(output)
                    distance = max(distance, written - oldest * row_bytes(source))
            done[event.stage] += 1
        return min(distance, output.bytes)
