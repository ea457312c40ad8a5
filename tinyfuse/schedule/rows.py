"""Row streaming: in which order a group's stages compute their rows, and what that needs.

A group runs as one loop. In each turn the stage nearest to the end that can run computes one row:
it can when its inputs have the rows of its window, and it is wanted, that is, a consumer inside
the group lacks that row for its own next row (a stage whose output leaves the group is always
wanted). Preferring the end keeps rings at the rows of their consumers' windows: a row is used up
before the next is made, and nothing is computed twice.

`simulate` plays that loop at compile time; the generated C plays the same loop at run time
(tinyfuse/emit.py prints `Stage` conditions in the same order). Ring sizes and overlaps follow from
the events, not from a formula.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

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


def simulate(stages: tuple[Stage, ...], kept: frozenset[Tensor]) -> Iterator[Event]:
    """The events of a row group, in order. `kept` are the tensors that leave the group."""
    done = [0] * len(stages)
    made_by = {stage.op.output: s for s, stage in enumerate(stages)}
    uses = {tensor: readers(stages, tensor) for tensor in made_by}

    def needed(reader: Reader) -> int:
        stage = stages[reader.stage]
        if done[reader.stage] == height(stage.op.output):
            return 0
        source = stage.op.inputs[reader.input]
        return stage.windows[reader.input].needed(done[reader.stage], height(source))

    def can_run(s: int) -> bool:
        stage = stages[s]
        if done[s] == height(stage.op.output):
            return False
        output = stage.op.output
        if output not in kept and not any(needed(use) > done[s] for use in uses[output]):
            return False
        return all(
            done[made_by[tensor]] >= needed(Reader(s, i))
            for i, tensor in enumerate(stage.op.inputs)
            if tensor in made_by
        )

    while True:
        for s in reversed(range(len(stages))):
            if can_run(s):
                yield Event(s, done[s])
                done[s] += 1
                break
        else:
            return


def _oldest_needed(stages, uses: list[Reader], done: list[int]) -> int | None:
    """The first row of a tensor that a reader still needs for its next row, None if none does."""
    oldest = None
    for use in uses:
        stage = stages[use.stage]
        if done[use.stage] < height(stage.op.output):
            first = stage.windows[use.input].first(done[use.stage])
            oldest = first if oldest is None else min(oldest, first)
    return oldest


def ring_rows(stages: tuple[Stage, ...], kept: frozenset[Tensor]) -> dict[Tensor, int]:
    """Rows that the ring of each internal tensor must hold: newest made - oldest needed + 1."""
    internal = {
        stage.op.output: readers(stages, stage.op.output)
        for stage in stages
        if stage.op.output not in kept
    }
    rows = dict.fromkeys(internal, 1)
    done = [0] * len(stages)
    for event in simulate(stages, kept):
        output = stages[event.stage].op.output
        if output in internal:
            oldest = _oldest_needed(stages, internal[output], done)
            if oldest is not None:
                rows[output] = max(rows[output], event.row + 1 - oldest)
        done[event.stage] += 1
    return rows


def overlap_distance(
    stages: tuple[Stage, ...], kept: frozenset[Tensor], source: Tensor, output: Tensor
) -> int:
    """Bytes that `output` must start below `source` so that no row still needed is overwritten.

    While a stage writes row j of the output, the output holds bytes up to (j + 1) * its row; the
    source's rows from the oldest one that any reader still needs must lie behind that. The stage
    that writes counts as still reading its own window. The result is at most output.bytes, which
    means: no overlap at all.
    """
    uses = readers(stages, source)
    writer = next(s for s, stage in enumerate(stages) if stage.op.output is output)
    done = [0] * len(stages)
    distance = 0
    for event in simulate(stages, kept):
        if event.stage == writer:
            oldest = _oldest_needed(stages, uses, done)
            if oldest is not None and oldest < height(source):
                written = (event.row + 1) * row_bytes(output)
                distance = max(distance, written - oldest * row_bytes(source))
        done[event.stage] += 1
    return min(distance, output.bytes)
