"""Weights as indexes into tables of values (runtime_c/tinyfuse_palette.h): in how many bits, with how many tables."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tinyfuse.ir import Array
from tinyfuse.kernels.core.kernel import Constant
from tinyfuse.kernels.core.statements import Let

#: the most bits of an index
MOST_BITS = 4

#: weights whose indexes begin with a byte; with Helium's vectors
UNIT, VECTOR = 8, 16


@dataclass(frozen=True, eq=False)
class Palettized:
    """Groups of as many weights each, as indexes.

    bits     of an index
    tables   int8 [groups, 2**bits], or [1, 2**bits] where one serves all
    indices  uint8 [groups, bytes]
    unit     UNIT or VECTOR
    """

    bits: int
    tables: Array
    indices: Array
    unit: int

    @property
    def nbytes(self) -> int:
        return int(self.tables.nbytes + self.indices.nbytes)

    @property
    def constants(self) -> tuple[Constant, Constant]:
        return (
            Constant("weights", self.indices.reshape(-1), "uint8_t"),
            Constant("tables", self.tables.reshape(-1), "int8_t"),
        )

    def declared(self, weights: str, tables: str, lanes: bool, strip: int) -> Let:
        """`const tinyfuse_palettized w`, of the symbols of both constants."""
        form = "vectors_" if self.unit == VECTOR else "lanes_" if lanes else ""
        return Let("tinyfuse_palettized", "w", {
            "indices": weights, "tables": tables, "look_up": f"tinyfuse_expand_palette_{form}{self.bits}",
            "index_bytes": self.indices.shape[1],
            "table_bytes": self.tables.shape[1] if len(self.tables) > 1 else 0, "strip": strip,
        })  # fmt: skip


def palettize(weights: Array, unit: int) -> Palettized | None:
    """int8 [groups, count] in the fewest bytes; None where neither a table a group nor one for all has all values."""
    found = [_with_tables([np.unique(weights)], weights, unit)]
    if len(weights) > 1:
        found.append(_with_tables([np.unique(group) for group in weights], weights, unit))
    fits = [palettized for palettized in found if palettized is not None]
    return min(fits, key=lambda palettized: palettized.nbytes, default=None)


def _with_tables(values: list[Array], weights: Array, unit: int) -> Palettized | None:
    most = max(map(len, values))
    bits = max(1, (most - 1).bit_length())
    if bits > MOST_BITS:
        return None
    if unit == VECTOR and bits == 3:  # its vectors take indexes that lie in one byte
        bits = 4
    # what a table has no value for is never read
    tables = np.stack([np.pad(own, (0, 2**bits - len(own)), mode="edge") for own in values]).astype(np.int8)
    places = [np.searchsorted(own, group) for own, group in zip(_for_each(values, weights), weights, strict=True)]
    return Palettized(bits, tables, _packed(np.stack(places), bits, unit), unit)


def _for_each(values: list[Array], weights: Array) -> list[Array]:
    return values * len(weights) if len(values) == 1 else values


def _packed(places: Array, bits: int, unit: int) -> Array:
    """uint8 [groups, bytes] of indexes [groups, count], the first in the lowest bits, zeros after the last."""
    groups, count = places.shape
    padded = np.zeros((groups, -(-count // unit) * unit), np.uint8)
    padded[:, :count] = places
    single = padded[:, :, None] >> np.arange(bits, dtype=np.uint8) & 1
    return np.packbits(single.reshape(groups, -1), axis=1, bitorder="little")


def expand_palette(palettized: Palettized, count: int) -> Array:
    """int8 [groups, count]: what the C looks up."""
    groups = len(palettized.indices)
    single = np.unpackbits(palettized.indices, axis=1, bitorder="little").reshape(groups, -1, palettized.bits)
    places = (single.astype(np.int64) << np.arange(palettized.bits)).sum(axis=2)[:, :count]
    tables = np.broadcast_to(palettized.tables, (groups, palettized.tables.shape[1]))
    found: Array = np.take_along_axis(tables, places, axis=1)
    return found
