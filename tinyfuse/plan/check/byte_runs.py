"""Bytes of computed values, as the checker of plans names them, in runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

#: bytes of a row that are stamped at a time, or iterations of a call that are looked at: each takes eight bytes
PART = 1 << 20


@dataclass(frozen=True)
class Run:
    """`bytes` bytes of the computed value number `value`, from its byte `start` on."""

    value: int
    start: int
    bytes: int


def breaks(numbers: np.ndarray) -> Iterator[int]:
    """The indexes of numbers that are not one more than the number before them."""
    for start in range(1, numbers.size, PART):
        steps = np.diff(numbers[start - 1 : start - 1 + PART + 1])
        yield from (np.flatnonzero(steps != 1) + start).tolist()


def part_of(runs: Sequence[Run], start: int, size: int) -> Iterator[Run]:
    """Of runs one after the other, the `size` bytes from byte `start` on."""
    for run in runs:
        first, after = max(start, 0), min(start + size, run.bytes)
        if first < after:
            yield Run(run.value, run.start + first, after - first)
        start -= run.bytes


def stamps(runs: Sequence[Run]) -> np.ndarray:
    """What all bytes of runs carry, of which there may be many short ones."""
    bases, counts = (np.array(each) for each in zip(*(((r.value << 32) + r.start, r.bytes) for r in runs), strict=True))
    found: np.ndarray = np.repeat(bases - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
    return found
