"""What `gen --selftest` embeds: one input, or of a sliding window a stream's, and the checksum of its outputs."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tinyfuse.emit.header import ports
from tinyfuse.plan import Plan

_PER_ROW = 20


@dataclass(frozen=True)
class EmbeddedInput:
    """The bytes of one input as the arena holds them, of frames those of all steps; `rows` are the lines of the
    initializer."""

    label: str
    bytes: int
    rows: tuple[str, ...]


@dataclass(frozen=True)
class SelfTest:
    """steps: of a sliding window, how many there are; else 1.
    crc: a C literal, the CRC-32 of all outputs' bytes, one output after the other, of every step that has a result."""

    inputs: tuple[EmbeddedInput, ...]
    steps: int
    crc: str


def selftest(plan: Plan, inputs: Sequence[Sequence[np.ndarray]], outputs: Sequence[Sequence[np.ndarray]]) -> SelfTest:
    """The inputs of one run, or of a sliding window of all steps of a stream, and the outputs of those that have a
    result. Of an input that is no frames every step gets the first one's."""
    crc = zlib.crc32(b"".join(_stored(_with_one_nan(array)) for step in outputs for array in step))
    framed = None if plan.source.window is None else plan.source.window.input
    embedded = []
    for port in ports(plan)[0]:
        steps = inputs if port.index == framed else inputs[:1]
        data = b"".join(_stored(step[port.index]) for step in steps)
        embedded.append(EmbeddedInput(f"{port.label} {port.dtype}", len(data), tuple(_rows(data))))
    return SelfTest(tuple(embedded), len(inputs), f"0x{crc:08X}u")


def _with_one_nan(array: np.ndarray) -> np.ndarray:
    """Every NaN as the C takes it for its checksum: positive and quiet."""
    return np.where(np.isnan(array), np.float32(np.nan), array) if array.dtype == np.float32 else array


def _stored(array: np.ndarray) -> bytes:
    """Row by row, in the byte order of Cortex-M."""
    return np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes()


def _rows(data: bytes) -> list[str]:
    return [", ".join(map(str, data[i : i + _PER_ROW])) for i in range(0, len(data), _PER_ROW)]
