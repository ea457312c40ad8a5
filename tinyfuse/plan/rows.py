"""Row streaming: in which order a group's stages compute their rows, and what that needs.

A group runs as one loop. In each iteration the stage nearest to the end that can run computes one row (or two, where
its kernel makes two a call: read "next row" as "next rows"): it can when its inputs have the rows of its window, and it
is wanted, that is, a consumer inside the group lacks that row for its own next row (a stage whose output leaves the
group is always wanted). So rows are used up before others are made, no stage runs ahead of its readers, a ring
holds the rows of its readers' windows, and nothing is computed twice. (An iteration in which every stage makes a row
saves 0.2 % of the instructions, but keeps more rows alive together: 832 bytes on MLPerf Tiny's resnet.)

That loop is played at compile time (tinyfuse/plan/loop.py); the generated C plays the same loop at run
time (tinyfuse/emit/functions.py prints the conditions in the same order). Ring sizes, what is alive
together and overlaps follow from the events, not from a formula.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from tinyfuse.ir import Tensor
from tinyfuse.once import cached_property
from tinyfuse.ops.core.family import RowWindow
from tinyfuse.plan import Stage
from tinyfuse.plan.loop import StageRows, different, first_rows, play
from tinyfuse.plan.stack import RingStack, may_be_stacked


def height(tensor: Tensor) -> int:
    """Rows of a tensor that is streamed: H of [1, H, W, C]."""
    return tensor.shape[1]


def row_bytes(tensor: Tensor) -> int:
    """Bytes of one row of a tensor that is streamed."""
    return tensor.bytes // height(tensor)


_Rows = TypeVar("_Rows", int, np.ndarray)


def held_bytes(tensor: Tensor, rows: _Rows) -> _Rows:
    """How many bytes from its start on hold something of a tensor that is kept, once so many of its rows are made: of
    planes, in the last of which the first row has a line too, nearly all."""
    line = row_bytes(tensor) // tensor.planes
    if tensor.planes == 1:
        return rows * line
    held: _Rows = rows * line + (rows > 0) * (tensor.bytes - height(tensor) * line)
    return held


def free_bytes(tensor: Tensor, rows: _Rows) -> _Rows:
    """How many bytes from its start on nobody needs any more, once so many rows of a tensor are used up: of planes,
    those of the first one, until all are."""
    line = row_bytes(tensor) // tensor.planes
    if tensor.planes == 1:
        return rows * line
    free: _Rows = rows * line + (rows >= height(tensor)) * (tensor.bytes - height(tensor) * line)
    return free


@dataclass(frozen=True)
class RingModes:
    """How the rings of a partition's groups lie, which are known by their numbers: in `fixed` ones none slides, in
    `stacked` ones they lie one above the other (plan/stack.py), in those that are `resident_output` too above an
    output; elsewhere those slide that hold fewer rows then."""

    fixed: frozenset[int] = frozenset()
    stacked: frozenset[int] = frozenset()
    resident_output: frozenset[int] = frozenset()


USUAL_RINGS = RingModes()


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
    """A row group played through once. `kept` are the tensors that leave the group; `slide`: rings
    may be windows that slide (`sliding`); `stack`: they lie one above the other, where they can, on the output
    `resident_output`, if there is one.

    loop     what happens when, in numbers: its stages are the group's
    rings    rows that the ring of each internal tensor must hold
    stack    of the rings that lie one above the other, where they do
    early    the stages that run early then
    resident_output  the output that is the lowest in the stack, if any is

    Where a kernel wants a ring's rows in order, rings slide in any case.
    """

    def __init__(
        self, stages: tuple[Stage, ...], kept: frozenset[Tensor], slide: bool = False, stack: bool = False,
        resident_output: Tensor | None = None,
    ):  # fmt: skip
        self.stages, self.kept = stages, kept
        makers = {stage.op.output: s for s, stage in enumerate(stages)}
        stack = stack and any(may_be_stacked(stage) and stage.op.output not in kept for stage in stages)
        self.early = eager_stages(stages, kept) if stack else frozenset()
        self.loop = play(tuple(_stage_rows(stage, makers, kept, s in self.early) for s, stage in enumerate(stages)))
        self._slide = slide or bool(self.loop.in_order)
        self.rings = {stages[s].op.output: rows for s, rows in self.loop.rings.items()}
        self.resident_output = resident_output if stack else None
        lowest = None if self.resident_output is None else makers[self.resident_output]
        self.stack = RingStack(stages, self.loop, lowest) if stack else None

    def with_slides(self) -> Stream:
        """The same loop with rings that may slide."""
        twin = copy(self)
        twin._slide = True
        for of_slides in ("live_sets", "played"):
            twin.__dict__.pop(of_slides, None)
        return twin

    def stacked(self, resident_output: Tensor | None = None) -> Stream:
        """The same stages with rings in a stack, on the output `resident_output`."""
        return Stream(self.stages, self.kept, True, True, resident_output)

    @property
    def events(self) -> int:
        """How many rows all stages make together."""
        return len(self.loop.order)

    @property
    def sliding(self) -> frozenset[Tensor]:
        """Rings that keep their rows in order from their first byte on: when a row is used up, those
        after it move down. A ring of three rows then leaves the third one's bytes to others while
        neither its maker nor its readers run, which costs the move. Chosen where that is so, and
        where each row is read."""
        return frozenset(self.stages[s].op.output for s in self._sliding)

    @property
    def _sliding(self) -> frozenset[int]:
        sliding = self.loop.sliding if self._slide else frozenset()
        return (sliding | self.stack.members) & self.loop.rings.keys() if self.stack else sliding

    @property
    def slides(self) -> dict[int, tuple[int, int]]:
        """Per stage that reads sliding rings: how often one is looked at after a row of it, and how many
        bytes are moved."""
        if self.stack:
            return dict(self.stack.moves)
        moves = self.loop.slides if self._slide else {}
        return {
            reader: (
                len(moved) * int(self.loop.calls[reader]),
                sum(rows * row_bytes(self.stages[s].op.output) for s, rows in moved.items()),
            )
            for reader, moved in moves.items()
        }

    @cached_property
    def live_sets(self) -> tuple[tuple[int, frozenset[int]], ...]:
        """The different (stage that computes, stages whose outputs hold rows meanwhile), in order of
        their first event. A ring holds rows while a reader needs one that was made, and while its own
        stage writes; what is kept holds rows from its first one on."""
        if len(self.stages) == 1:
            return ((0, frozenset({0})),)
        live_rows = self.played.copy()
        live_rows[:, 1:] = live_rows[:, 1:] > 0
        return tuple((s, frozenset(np.flatnonzero(held).tolist())) for s, *held in different(live_rows).tolist())

    @cached_property
    def played(self) -> np.ndarray:
        """Event by event the stage that computes, then the rows of each stage's output that hold bytes: of a
        tensor that is kept those made so far, of a sliding ring those still needed, of any other ring all or
        none; int64 [events, 1 + stages], not to be changed."""
        return self.loop.live_rows(self._sliding).astype(np.int64)

    @property
    def live_rows(self) -> np.ndarray:
        """What differs in `played`: the live sets, told apart by rows as well."""
        return different(self.played)

    def played_with(self, source: Tensor) -> tuple[np.ndarray, np.ndarray]:
        """`played`, and event by event how many rows at the start of `source`, a tensor from outside, no
        reader needs any more; [events]."""
        return self.played, np.minimum(self.loop.oldest_needed(self._uses(source)), height(source))

    @property
    def inner_bytes(self) -> int:
        """The most bytes of rings and scratch that are alive at one moment, and of an output below a stack."""
        if self.stack:
            return int(self.stacked_bytes.max())
        live_rows = self.loop.sliding_live_rows if self._slide else self.loop.inner_live_rows
        rows, scratch = self._sizes
        return int((live_rows[:, 1:] @ rows + scratch[live_rows[:, 0]]).max())

    @cached_property
    def _sizes(self) -> tuple[np.ndarray, np.ndarray]:
        """Bytes of a row of each stage's output, and of its scratch."""
        rows = [row_bytes(stage.op.output) for stage in self.stages]
        return np.array(rows), np.array([stage.scratch_bytes for stage in self.stages])

    def most_beside(self, source: Tensor) -> int:
        """The most bytes of the stack, of rings that are in none, and of `source`, a tensor from outside of which rows
        that are used up lie below."""
        dead = np.minimum(self.loop.oldest_needed(self._uses(source)), height(source)).astype(np.int64)
        return int((self.stacked_bytes + source.bytes - free_bytes(source, dead)).max())

    @cached_property
    def stacked_bytes(self) -> np.ndarray:
        """Event by event, bytes of the stack and of the rings that are in none."""
        assert self.stack is not None, "asked of one"
        played, rings = self.played, self.loop.rings.keys() - self.stack.members
        sizes = [row_bytes(stage.op.output) * (s in rings) for s, stage in enumerate(self.stages)]
        found: np.ndarray = self.stack.bytes + played[:, 1:] @ np.array(sizes, np.int64)
        return found

    def _uses(self, source: Tensor) -> list[tuple[int, RowWindow]]:
        """(stage, window) of each reader of a tensor."""
        return [(use.stage, self.stages[use.stage].window(use.input)) for use in readers(self.stages, source)]

    def first_row(self, source: Tensor) -> int:
        """The first row of `source`, a tensor from outside, that any stage needs for its first."""
        return min(window.first(0) for _, window in self._uses(source))

    def overlap_distance(self, source: Tensor, output: Tensor) -> int:
        """Bytes that `output` must start below `source` so that no row still needed is overwritten.

        While a stage writes row j of the output, the output holds bytes up to (j + 1) * its row; the
        source's rows from the oldest one that any reader still needs must lie after that. The stage
        that writes still reads its own window, the first row of it at the access order of its kernel. The result is
        at most output.bytes, which means: no overlap at all.
        """
        writer = next(s for s, stage in enumerate(self.stages) if stage.op.output is output)
        events = self.loop.row_events[writer]
        written = held_bytes(output, np.arange(1, len(events) + 1))
        in_access_order = self._own_distances(self.stages[writer], source, output)
        uses = self._uses(source)
        if in_access_order is None:
            oldest = self.loop.oldest_needed(uses, events)
            distance = 0
        else:
            # a stage that goes at its access order counts as one that has read the first row of its window
            own = next(window for s, window in uses if s == writer)
            oldest = np.minimum(
                self.loop.oldest_needed([use for use in uses if use[0] != writer], events),
                first_rows(own, height(output))[: len(events)] + 1,
            )
            distance = int(in_access_order[: len(events)].max(initial=0))
        ahead = (written - free_bytes(source, oldest.astype(np.int64)))[oldest < height(source)]
        return min(max(distance, int(ahead.max(initial=0))), output.bytes)

    def in_place(self, source: Tensor, output: Tensor) -> bool:
        """Whether every row of the output is written when nobody needs that row of the source any more: where their
        rows lie alike, they may have one place."""
        writer = next(s for s, stage in enumerate(self.stages) if stage.op.output is output)
        events = self.loop.row_events[writer]
        oldest = self.loop.oldest_needed(self._uses(source), events)
        return bool((oldest > np.arange(len(events))).all())

    def _own_distances(self, stage: Stage, source: Tensor, output: Tensor) -> np.ndarray | None:
        """How far `output` must start below `source` for each row that the stage writes at its access order through
        the first row of its window; None where it has no one access order (Stage.row_access_order)."""
        use = stage.row_access_order(source)
        if use is None:
            return None
        index, order = use
        read, written = row_bytes(source), row_bytes(output)
        first = first_rows(stage.window(index), height(output))[:-1].astype(np.int64)
        distances = np.arange(len(first)) * written + order.distance(read, written) - first * read
        return np.where(first < height(source), distances, 0)


def eager_stages(stages: tuple[Stage, ...], kept: frozenset[Tensor]) -> frozenset[int]:
    """Stages that may run early: each frees, of a tensor that others read too, at least as many bytes as it makes, once
    it is the last to read them. A projection beside a block's convolutions is one: its row takes less than those of its
    input that would wait for it."""
    found = set()
    made = {stage.op.output for stage in stages}
    read_by: dict[Tensor | None, list[int]] = {}
    for s, stage in enumerate(stages):
        for tensor in stage.op.inputs:
            read_by.setdefault(tensor, []).append(s)
    for s, stage in enumerate(stages):
        output, reads = stage.op.output, stage.op.activations
        inside = [i for i, tensor in enumerate(stage.op.inputs) if tensor in made]
        if output in kept or stage.kernel.accumulates or len(reads) != 1 or len(inside) != 1:
            continue
        beside, after = {*read_by[reads[0]]} - {s}, read_by.get(output)
        if not beside or not after:
            continue
        window = stage.window(inside[0])
        frees = window.stride * row_bytes(reads[0]) >= row_bytes(output) * window.spread
        at_once = [stages[other].kernel.rows_a_call for other in (s, *after)]
        if frees and max(at_once) == 1:
            found.add(s)
    return frozenset(found)


def _stage_rows(stage: Stage, makers: dict[Tensor, int], kept: frozenset[Tensor], early: bool) -> StageRows:
    op = stage.op
    reads = tuple((makers[t], stage.window(i)) for i, t in enumerate(op.inputs) if t in makers)
    kernel = stage.kernel
    in_order = kernel.in_order and not kernel.takes_rings(op)
    return StageRows(
        height(op.output), reads, op.output in kept, kernel.accumulates, kernel.rows_a_call, in_order, early
    )
