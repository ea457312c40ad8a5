"""Palettized weights: indexes of 1 to 4 bits into tables of values (runtime_c/tinyfuse_palette.h)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tinyfuse.ir import Array
from tinyfuse.kernels.core.kernel import Constant
from tinyfuse.kernels.core.statements import Let

#: the most bits of an index
MOST_BITS = 4

#: weights whose indexes fill whole bytes
UNIT = 8


@dataclass(frozen=True, eq=False)
class Palettized:
    """Weights in groups of equal size, as indexes into tables of values.

    bits     bits of an index
    tables   int8 [groups, 2**bits], or [1, 2**bits] where one table serves all groups
    indices  uint8 [groups, bytes], `bits` bits an index; those of a group are padded to a multiple of UNIT
    """

    bits: int
    tables: Array
    indices: Array

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
        """Return the declaration `const tinyfuse_palettized w`; `weights` and `tables` are C symbols of both
        constants."""
        look_up = f"tinyfuse_expand_palette_{'lanes_' if lanes else ''}{self.bits}"
        return Let("tinyfuse_palettized", "w", {
            "indices": weights, "tables": tables, "look_up": look_up,
            "index_bytes": self.indices.shape[1],
            "table_bytes": self.tables.shape[1] if len(self.tables) > 1 else 0, "strip": strip,
        })  # fmt: skip


def palettize(weights: Array) -> Palettized | None:
    """Return weights int8 [groups, count] as indexes in the fewest bytes.

    None where neither a table per group nor one table for all groups holds their values.
    """
    found = [_with_tables([np.unique(weights)], weights)]
    if len(weights) > 1:
        found.append(_with_tables([np.unique(group) for group in weights], weights))
    fits = [palettized for palettized in found if palettized is not None]
    return min(fits, key=lambda palettized: palettized.nbytes, default=None)


def _with_tables(values: list[Array], weights: Array) -> Palettized | None:
    most = max(map(len, values))
    bits = max(1, (most - 1).bit_length())
    if bits > MOST_BITS:
        return None
    # indexes never reach the entries that pad a table
    tables = np.stack([np.pad(own, (0, 2**bits - len(own)), mode="edge") for own in values]).astype(np.int8)
    places = [np.searchsorted(own, group) for own, group in zip(_for_each(values, weights), weights, strict=True)]
    return Palettized(bits, tables, _packed(np.stack(places), bits))


def _for_each(values: list[Array], weights: Array) -> list[Array]:
    return values * len(weights) if len(values) == 1 else values


def _packed(places: Array, bits: int) -> Array:
    """Return indexes [groups, count] as uint8 [groups, bytes], the first in the lowest bits, zeros after the last."""
    groups, count = places.shape
    padded = np.zeros((groups, -(-count // UNIT) * UNIT), np.uint8)
    padded[:, :count] = places
    single = padded[:, :, None] >> np.arange(bits, dtype=np.uint8) & 1
    return np.packbits(single.reshape(groups, -1), axis=1, bitorder="little")


def expand_palette(palettized: Palettized, count: int) -> Array:
    """Return the weights int8 [groups, count] that the C expands."""
    groups = len(palettized.indices)
    single = np.unpackbits(palettized.indices, axis=1, bitorder="little").reshape(groups, -1, palettized.bits)
    places = (single.astype(np.int64) << np.arange(palettized.bits)).sum(axis=2)[:, :count]
    tables = np.broadcast_to(palettized.tables, (groups, palettized.tables.shape[1]))
    found: Array = np.take_along_axis(tables, places, axis=1)
    return found
