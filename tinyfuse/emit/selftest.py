"""Makes the data of `gen --selftest`: one input, or the frames of all steps with --slide, and the checksum of the
outputs."""

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
    """Bytes of one input as the arena holds them, or of all steps' frames. `rows` are the lines of its C
    initializer."""

    label: str
    bytes: int
    rows: tuple[str, ...]


@dataclass(frozen=True)
class SelfTest:
    """Inputs and expected outputs of a self-test.

    steps  steps of a sliding window; 1 without --slide
    crc    CRC-32, as a C literal, of all outputs' bytes in order, of each step that has a result
    """

    inputs: tuple[EmbeddedInput, ...]
    steps: int
    crc: str


def selftest(plan: Plan, inputs: Sequence[Sequence[np.ndarray]], outputs: Sequence[Sequence[np.ndarray]]) -> SelfTest:
    """Self-test for the inputs of one run, or of all steps of a sliding window, and the outputs of steps with a result.

    Each step gets its own frames; other inputs have the values of the first step.
    """
    crc = zlib.crc32(b"".join(_stored(_with_one_nan(array)) for step in outputs for array in step))
    framed = None if plan.source.window is None else plan.source.window.input
    embedded = []
    for port in ports(plan)[0]:
        steps = inputs if port.index == framed else inputs[:1]
        data = b"".join(_stored(step[port.index]) for step in steps)
        embedded.append(EmbeddedInput(f"{port.label} {port.dtype}", len(data), tuple(_rows(data))))
    return SelfTest(tuple(embedded), len(inputs), f"0x{crc:08X}u")


def _with_one_nan(array: np.ndarray) -> np.ndarray:
    """Array with each NaN replaced by the positive quiet NaN that the C uses for its checksum."""
    return np.where(np.isnan(array), np.float32(np.nan), array) if array.dtype == np.float32 else array


def _stored(array: np.ndarray) -> bytes:
    """Bytes of an array, row by row, in the byte order of Cortex-M."""
    return np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes()


def _rows(data: bytes) -> list[str]:
    return [", ".join(map(str, data[i : i + _PER_ROW])) for i in range(0, len(data), _PER_ROW)]
