"""Row streaming: the order in which a group's stages compute their rows, and the rings and overlaps that follow.

A group runs as one loop. Each iteration runs the last stage that can run, for one row (or several, if a call of its
kernel makes several). A stage can run if all rows of its input windows exist and its next row is wanted: a reader
inside the group needs it for its own next row, or the stage's output leaves the group. So rows are used up before
others are made, no stage runs ahead of its readers, a ring holds the rows of its readers' windows, and nothing is
computed twice. (Running every stage in each iteration saves 0.2 % of the instructions, but keeps more rows alive
together: 832 bytes on MLPerf Tiny's resnet.)

plan/loop.py simulates the loop at compile time; the generated C runs the same loop (emit/functions.py prints the
conditions in the same order). Ring sizes, lifetimes and overlaps follow from the events, not from a formula.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np

from tinyfuse.ir import Tensor
from tinyfuse.ops.core.family import RowWindow
from tinyfuse.plan import Stage
from tinyfuse.plan.loop import StageRows, distinct_rows, first_rows, play
from tinyfuse.plan.stack import RingStack, may_be_stacked


def height(tensor: Tensor) -> int:
    """Rows of a streamed tensor: H of [1, H, W, C]."""
    return tensor.shape[1]


def row_bytes(tensor: Tensor) -> int:
    """Bytes of one row of a streamed tensor."""
    return tensor.bytes // height(tensor)


_Rows = TypeVar("_Rows", int, np.ndarray)


def held_bytes(tensor: Tensor, rows: _Rows) -> _Rows:
    """Bytes from the tensor's start to the end of its first `rows` rows.

    A row of a tensor with channels first has a line in each plane, so even the first row reaches into the last plane.
    """
    line = row_bytes(tensor) // tensor.planes
    if tensor.planes == 1:
        return rows * line
    held: _Rows = rows * line + (rows > 0) * (tensor.bytes - height(tensor) * line)
    return held


def free_bytes(tensor: Tensor, rows: _Rows) -> _Rows:
    """Bytes from the tensor's start that nobody needs any more, once `rows` rows are used up.

    Until all rows of a tensor of planes are used up, these bytes lie in its first plane.
    """
    line = row_bytes(tensor) // tensor.planes
    if tensor.planes == 1:
        return rows * line
    free: _Rows = rows * line + (rows >= height(tensor)) * (tensor.bytes - height(tensor) * line)
    return free


@dataclass(frozen=True)
class RingModes:
    """Layout of rings, by group number.

    fixed            no ring slides
    stacked          rings lie one above the other (plan/stack.py)
    resident_output  stacked on top of an output; a subset of `stacked`

    In all other groups, a ring slides if it then holds fewer rows.
    """

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
    """Finds every place inside the group that reads `tensor`."""
    return [
        Reader(s, i)
        for s, stage in enumerate(stages)
        for i, candidate in enumerate(stage.op.inputs)
        if candidate is tensor
    ]


class Stream:
    """A simulated row group.

    loop             the simulation; its stages are the group's
    kept             tensors that leave the group
    rings            rows that the ring of each internal tensor must hold
    stack            the rings that lie one above the other; None without a stack
    eager            eager stages (`eager_stages`); none without a stack
    resident_output  the output at the bottom of the stack, if any

    With `slide`, the rings of `sliding` slide; they also do wherever a kernel needs a ring's rows contiguous.
    """

    def __init__(
        self, stages: tuple[Stage, ...], kept: frozenset[Tensor], slide: bool = False, stack: bool = False,
        resident_output: Tensor | None = None,
    ):  # fmt: skip
        self.stages, self.kept = stages, kept
        makers = {stage.op.output: s for s, stage in enumerate(stages)}
        stack = stack and any(may_be_stacked(stage) and stage.op.output not in kept for stage in stages)
        self.eager = eager_stages(stages, kept) if stack else frozenset()
        self.loop = play(tuple(_stage_rows(stage, makers, kept, s in self.eager) for s, stage in enumerate(stages)))
        self._slide = slide or bool(self.loop.in_order)
        self.rings = {stages[s].op.output: rows for s, rows in self.loop.rings.items()}
        self.resident_output = resident_output if stack else None
        lowest = None if self.resident_output is None else makers[self.resident_output]
        self.stack = RingStack(stages, self.loop, lowest) if stack else None

    def with_slides(self) -> Stream:
        """Copy of the stream in which rings may slide."""
        twin = copy(self)
        twin._slide = True
        for of_slides in ("live_sets", "played"):
            twin.__dict__.pop(of_slides, None)
        return twin

    def stacked(self, resident_output: Tensor | None = None) -> Stream:
        """Stream of the same stages with rings in a stack, on top of the output `resident_output` if given."""
        return Stream(self.stages, self.kept, True, True, resident_output)

    @property
    def events(self) -> int:
        """Number of events of the loop: calls of all stages together."""
        return len(self.loop.order)

    @property
    def sliding(self) -> frozenset[Tensor]:
        """Rings that keep their rows contiguous from their first byte on: used-up rows are closed by moving the rest
        down.

        A sliding ring of three rows frees the third one's bytes while neither its maker nor its readers run, at the
        cost of the moves. A ring slides if it gains from it and all its rows are read.
        """
        return frozenset(self.stages[s].op.output for s in self._sliding)

    @property
    def _sliding(self) -> frozenset[int]:
        sliding = self.loop.sliding if self._slide else frozenset()
        return (sliding | self.stack.members) & self.loop.rings.keys() if self.stack else sliding

    @property
    def slides(self) -> dict[int, tuple[int, int]]:
        """Cost of sliding per reader stage: (number of checks for used-up rows, bytes moved)."""
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
        """Distinct pairs (stage that runs, stages whose outputs hold rows meanwhile), in order of their first event.

        A ring holds rows while a reader needs one that was made, and while its own stage writes. An output that leaves
        the group holds rows from its first one on.
        """
        if len(self.stages) == 1:
            return ((0, frozenset({0})),)
        live_rows = self.played.copy()
        live_rows[:, 1:] = live_rows[:, 1:] > 0
        return tuple((s, frozenset(np.flatnonzero(held).tolist())) for s, *held in distinct_rows(live_rows).tolist())

    @cached_property
    def played(self) -> np.ndarray:
        """Stage that runs, and rows of each stage's output that hold bytes, per event; int64 [events, 1 + stages].

        An output that leaves the group counts the rows made so far, a sliding ring those still needed, any other ring
        all or none. Do not modify.
        """
        return self.loop.live_rows(self._sliding).astype(np.int64)

    @property
    def live_rows(self) -> np.ndarray:
        """int64 [events, tensors]: number of different rows in memory, at each event of `played`."""
        return distinct_rows(self.played)

    def played_with(self, source: Tensor) -> tuple[np.ndarray, np.ndarray]:
        """`played`, and per event the rows at the start of `source` that no reader needs any more; [events].

        `source` is a tensor from outside the group.
        """
        return self.played, np.minimum(self.loop.oldest_needed(self._uses(source)), height(source))

    @property
    def inner_bytes(self) -> int:
        """Most bytes of rings and scratch alive at once, with the output at the bottom of a stack."""
        if self.stack:
            return int(self.stacked_bytes.max())
        live_rows = self.loop.sliding_live_rows if self._slide else self.loop.inner_live_rows
        rows, scratch = self._sizes
        return int((live_rows[:, 1:] @ rows + scratch[live_rows[:, 0]]).max())

    @cached_property
    def _sizes(self) -> tuple[np.ndarray, np.ndarray]:
        """Bytes of a row of each stage's output, and bytes of each stage's scratch; [stages] each."""
        rows = [row_bytes(stage.op.output) for stage in self.stages]
        return np.array(rows), np.array([stage.scratch_bytes for stage in self.stages])

    def most_beside(self, source: Tensor) -> int:
        """Most bytes alive at once of the stack, the rings outside it, and `source`, a tensor from outside whose
        used-up rows at its start are free."""
        dead = np.minimum(self.loop.oldest_needed(self._uses(source)), height(source)).astype(np.int64)
        return int((self.stacked_bytes + source.bytes - free_bytes(source, dead)).max())

    @cached_property
    def stacked_bytes(self) -> np.ndarray:
        """Bytes of the stack and of the rings outside it, per event."""
        assert self.stack is not None, "asked of one"
        played, rings = self.played, self.loop.rings.keys() - self.stack.members
        sizes = [row_bytes(stage.op.output) * (s in rings) for s, stage in enumerate(self.stages)]
        found: np.ndarray = self.stack.bytes + played[:, 1:] @ np.array(sizes, np.int64)
        return found

    def _uses(self, source: Tensor) -> list[tuple[int, RowWindow]]:
        """(stage, window) of each reader of a tensor."""
        return [(use.stage, self.stages[use.stage].window(use.input)) for use in readers(self.stages, source)]

    def first_row(self, source: Tensor) -> int:
        """First row of `source`, a tensor from outside, that any stage needs for its first row."""
        return min(window.first(0) for _, window in self._uses(source))

    def overlap_distance(self, source: Tensor, output: Tensor) -> int:
        """Bytes that `output` must start below `source` so that no row still needed is overwritten.

        When row j of the output is written, the output holds bytes up to (j + 1) * row_bytes; rows of the source that a
        reader still needs must lie at higher addresses. The writing stage still reads its own window, whose first row
        it reads in the access order of its kernel. A result of output.bytes means: no overlap at all.
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
            # the access order covers the first row of the writer's window, so that row counts as read
            own = next(window for s, window in uses if s == writer)
            oldest = np.minimum(
                self.loop.oldest_needed([use for use in uses if use[0] != writer], events),
                first_rows(own, height(output))[: len(events)] + 1,
            )
            distance = int(in_access_order[: len(events)].max(initial=0))
        ahead = (written - free_bytes(source, oldest.astype(np.int64)))[oldest < height(source)]
        return min(max(distance, int(ahead.max(initial=0))), output.bytes)

    def in_place(self, source: Tensor, output: Tensor) -> bool:
        """Tells whether each output row is written only after the same row of the source is used up, so that tensors of
        equal row layout can share memory."""
        writer = next(s for s, stage in enumerate(self.stages) if stage.op.output is output)
        events = self.loop.row_events[writer]
        oldest = self.loop.oldest_needed(self._uses(source), events)
        return bool((oldest > np.arange(len(events))).all())

    def _own_distances(self, stage: Stage, source: Tensor, output: Tensor) -> np.ndarray | None:
        """Bytes that `output` must start below `source` for each output row, as the writer's access order asks for the
        first row of its window. None without a single access order (Stage.row_access_order)."""
        use = stage.row_access_order(source)
        if use is None:
            return None
        index, order = use
        read, written = row_bytes(source), row_bytes(output)
        first = first_rows(stage.window(index), height(output))[:-1].astype(np.int64)
        distances = np.arange(len(first)) * written + order.distance(read, written) - first * read
        return np.where(first < height(source), distances, 0)


def eager_stages(stages: tuple[Stage, ...], kept: frozenset[Tensor]) -> frozenset[int]:
    """Stages that gain by running early: they free at least as many bytes as they make.

    Such a stage is the last to read rows of a tensor that others read too. An example is a projection beside a block's
    convolutions: its output row is smaller than the input rows that would wait for it.
    """
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


def _stage_rows(stage: Stage, makers: dict[Tensor, int], kept: frozenset[Tensor], eager: bool) -> StageRows:
    op = stage.op
    reads = tuple((makers[t], stage.window(i)) for i, t in enumerate(op.inputs) if t in makers)
    kernel = stage.kernel
    in_order = kernel.in_order and not kernel.takes_rings(op)
    return StageRows(
        height(op.output), reads, op.output in kept, kernel.accumulates, kernel.rows_a_call, in_order, eager
    )
