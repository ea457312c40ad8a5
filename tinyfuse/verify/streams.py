"""Divides the runs of a verification into streams.

A model with state is verified by two instances that take turns: run r belongs to instance r % 2. Each instance is reset
before its first run, and then before every `frames`-th of its own runs. A stream is the `frames` runs of one instance
from a reset to the next. A model without state has streams of one run.
"""

from __future__ import annotations

from typing import TypeVar

INSTANCES = 2

#: streams in a verification of a sliding window, unless it has few runs
WINDOW_STREAMS = 4

Run = TypeVar("Run")


def default_frames(runs: int) -> int:
    """Frames of a stream with which each instance has two streams."""
    return max(1, -(-runs // (2 * INSTANCES)))


def steps_for(results: int, steps_to_fill: int) -> tuple[int, int]:
    """(steps, frames) of a sliding window's verification in which `results` steps have a result: in two streams per
    instance, or one if results are few."""
    streams = WINDOW_STREAMS if results >= 2 * WINDOW_STREAMS else INSTANCES
    each = -(-results // streams)
    frames = each + steps_to_fill - 1
    # the last steps of the last streams are left out; streams take turns
    return streams * frames - (streams * each - results), frames


def steps_in_streams(results: int, frames: int, steps_to_fill: int) -> int:
    """Fewest steps, in streams of `frames`, of which `results` have a result."""
    steps = results + INSTANCES * (steps_to_fill - 1)
    while count_results(steps, frames, steps_to_fill) < results:
        steps += 1
    return steps


def count_results(steps: int, frames: int, steps_to_fill: int) -> int:
    """Number of steps, in streams of `frames`, that have a result."""
    return sum(max(0, len(stream) - steps_to_fill + 1) for stream in _streams(steps, frames))


def split_streams(runs: list[Run], frames: int | None) -> list[list[Run]]:
    """Streams of the runs, in the order of their first runs. `frames` is None for a model without state."""
    return [[runs[index] for index in stream] for stream in _streams(len(runs), frames)]


def stream_until(runs: list[Run], frames: int | None, number: int) -> list[Run]:
    """Runs of the stream that the run of this number is in, up to that; [] if there is no such run."""
    stream = next((stream for stream in _streams(len(runs), frames) if number in stream), range(0))
    return [runs[index] for index in stream if index <= number]


def join_streams(streams: list[list[Run]], frames: int | None) -> list[Run]:
    """Runs of the streams in order: the inverse of `split_streams`."""
    numbers = _streams(sum(map(len, streams)), frames)
    runs = {
        index: run
        for places, stream in zip(numbers, streams, strict=True)
        for index, run in zip(places, stream, strict=True)
    }
    return [runs[index] for index in range(len(runs))]


def _streams(runs: int, frames: int | None) -> list[range]:
    """Numbers of the runs of each stream."""
    if frames is None:
        return [range(index, index + 1) for index in range(runs)]
    length = frames * INSTANCES
    return [
        range(start + instance, min(start + length, runs), INSTANCES)
        for start in range(0, runs, length)
        for instance in range(INSTANCES)
        if start + instance < runs
    ]
