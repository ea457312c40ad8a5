"""How the runs of a verification make streams.

A model with state is verified by two instances that take turns: run r is of instance r % 2. Each is
reset before its first run and then before every `frames`-th of its own, so a stream is `frames` runs of
one instance. A model without state has streams of one run.
"""

from __future__ import annotations

from typing import TypeVar

INSTANCES = 2

Run = TypeVar("Run")


def default_frames(runs: int) -> int:
    """Frames of a stream, so that each instance has two streams."""
    return max(1, -(-runs // (2 * INSTANCES)))


def split(runs: list[Run], frames: int | None) -> list[list[Run]]:
    """The streams of those runs, in the order of their first; `frames` None: a model without state."""
    return [[runs[index] for index in stream] for stream in _streams(len(runs), frames)]


def join(streams: list[list[Run]], frames: int | None) -> list[Run]:
    """The runs of those streams in order: what `split` took apart."""
    numbers = _streams(sum(map(len, streams)), frames)
    runs = {
        index: run
        for places, stream in zip(numbers, streams, strict=True)
        for index, run in zip(places, stream, strict=True)
    }
    return [runs[index] for index in range(len(runs))]


def _streams(runs: int, frames: int | None) -> list[range]:
    """The numbers of the runs of each stream."""
    if frames is None:
        return [range(index, index + 1) for index in range(runs)]
    length = frames * INSTANCES
    return [
        range(start + instance, min(start + length, runs), INSTANCES)
        for start in range(0, runs, length)
        for instance in range(INSTANCES)
        if start + instance < runs
    ]
