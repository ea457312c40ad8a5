"""What `gen --selftest` embeds: one input, and the checksum of its outputs."""

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
    """The bytes of one input as the arena holds them; `rows` are the lines of the initializer."""

    label: str
    bytes: int
    rows: tuple[str, ...]


@dataclass(frozen=True)
class SelfTest:
    """crc: a C literal, the CRC-32 of all outputs' bytes, one output after the other."""

    inputs: tuple[EmbeddedInput, ...]
    crc: str


def selftest(plan: Plan, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> SelfTest:
    """One run: the inputs that the module is to carry, and the outputs that must come of them."""
    crc = zlib.crc32(b"".join(_stored(_with_one_nan(array)) for array in outputs))
    embedded = tuple(
        EmbeddedInput(f"{port.label} {port.dtype}", port.bytes, tuple(_rows(_stored(array))))
        for port, array in zip(ports(plan)[0], inputs, strict=True)
    )
    return SelfTest(embedded, f"0x{crc:08X}u")


def _with_one_nan(array: np.ndarray) -> np.ndarray:
    """Every NaN as the C takes it for its checksum: positive and quiet."""
    return np.where(np.isnan(array), np.float32(np.nan), array) if array.dtype == np.float32 else array


def _stored(array: np.ndarray) -> bytes:
    """Row by row, in the byte order of Cortex-M."""
    return np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes()


def _rows(data: bytes) -> list[str]:
    return [", ".join(map(str, data[i : i + _PER_ROW])) for i in range(0, len(data), _PER_ROW)]
