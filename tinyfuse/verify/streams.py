"""How the runs of a verification make streams.

A model with state is verified by two instances that take turns: run r is of instance r % 2. Each is
reset before its first run and then before every `frames`-th of its own, so a stream is `frames` runs of
one instance. A model without state has streams of one run.
"""

from __future__ import annotations

from typing import TypeVar

INSTANCES = 2

#: streams of a verification of a sliding window, unless it has few runs
WINDOW_STREAMS = 4

Run = TypeVar("Run")


def default_frames(runs: int) -> int:
    """Frames of a stream, so that each instance has two streams."""
    return max(1, -(-runs // (2 * INSTANCES)))


def steps_for(results: int, steps_to_fill: int) -> tuple[int, int]:
    """(steps, frames) of a verification of a sliding window, such that so many steps have a result: in two streams for
    each instance, or one where results are few."""
    streams = WINDOW_STREAMS if results >= 2 * WINDOW_STREAMS else INSTANCES
    each = -(-results // streams)
    frames = each + steps_to_fill - 1
    # the last steps of the last streams, which take turns, are left out
    return streams * frames - (streams * each - results), frames


def steps_in_streams(results: int, frames: int, steps_to_fill: int) -> int:
    """The fewest steps, in streams of `frames`, of which so many have a result."""
    steps = results + INSTANCES * (steps_to_fill - 1)
    while count_results(steps, frames, steps_to_fill) < results:
        steps += 1
    return steps


def count_results(steps: int, frames: int, steps_to_fill: int) -> int:
    """How many of the steps in streams of `frames` have a result."""
    return sum(max(0, len(stream) - steps_to_fill + 1) for stream in _streams(steps, frames))


def split_streams(runs: list[Run], frames: int | None) -> list[list[Run]]:
    """The streams of those runs, in the order of their first; `frames` None: a model without state."""
    return [[runs[index] for index in stream] for stream in _streams(len(runs), frames)]


def join_streams(streams: list[list[Run]], frames: int | None) -> list[Run]:
    """The runs of those streams in order: what `split_streams` took apart."""
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
