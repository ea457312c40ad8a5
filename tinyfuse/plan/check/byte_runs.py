"""Runs of bytes of computed values: the unit in which the plan checker names the contents of memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

#: elements processed at a time (bytes of a row, iterations of a call), which bounds memory at 8 bytes each
PART = 1 << 20


@dataclass(frozen=True)
class Run:
    """`bytes` consecutive bytes of computed value number `value`, from its byte `start` on."""

    value: int
    start: int
    bytes: int


def breaks(numbers: np.ndarray) -> Iterator[int]:
    """Yields each index whose number is not its predecessor plus one."""
    for start in range(1, numbers.size, PART):
        steps = np.diff(numbers[start - 1 : start - 1 + PART + 1])
        yield from (np.flatnonzero(steps != 1) + start).tolist()


def part_of(runs: Sequence[Run], start: int, size: int) -> Iterator[Run]:
    """Yields the `size` bytes from byte `start` on of `runs`, which follow each other without gaps."""
    for run in runs:
        first, after = max(start, 0), min(start + size, run.bytes)
        if first < after:
            yield Run(run.value, run.start + first, after - first)
        start -= run.bytes


def stamps(runs: Sequence[Run]) -> np.ndarray:
    """Computes the stamp of every byte of `runs`, value << 32 | byte; int64. Fast for many short runs."""
    bases, counts = (np.array(each) for each in zip(*(((r.value << 32) + r.start, r.bytes) for r in runs), strict=True))
    found: np.ndarray = np.repeat(bases - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
    return found
