"""Reads the tables of a FlatBuffer by the names of `tinyfuse.frontend.schema`.

The file must have passed `tinyfuse.frontend.flatbuffer_check`: nothing is checked again. An absent scalar has its
default, an absent vector or string is empty, and an absent table is None.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tinyfuse.frontend.schema import ENUM_SIZES, SIZES, TABLES, Field

_FORMATS = {"bool": "?", "byte": "b", "ubyte": "B", "int": "i", "uint": "I", "float": "f", "long": "q", "ulong": "Q",
            "double": "d"}  # fmt: skip
_DTYPES = {"ubyte": "u1", "int": "<i4", "float": "<f4", "long": "<i8", "ulong": "<u8", "double": "<f8"}


_UINT, _INT, _USHORT = struct.Struct("<I"), struct.Struct("<i"), struct.Struct("<H")


class _Access(NamedTuple):
    """Access to one field: its vtable entry, its number reader (None if it holds no number), the value if it is
    absent, and a vector's or string's element type, else ""."""

    field: Field
    entry: int
    number: Callable[[bytes, int], tuple[Any, ...]] | None
    default: bool | int | float
    element: str


def _access(field: Field) -> _Access:
    number, kind = None, field.type
    if field.type in SIZES or field.type in ENUM_SIZES:  # enumerations are signed
        number = struct.Struct("<" + (_FORMATS.get(field.type) or {1: "b", 4: "i"}[ENUM_SIZES[field.type]])).unpack_from
    element = "ubyte" if kind == "string" else kind[1:-1] if kind.startswith("[") else ""
    return _Access(field, 2 + field.slot, number, field.default, element)


#: (table, field) -> its access
_FIELDS = {table: {field.name: _access(field) for field in fields} for table, fields in TABLES.items()}


class Table:
    """A table at a position of `data`, of the schema's type `name`.

    `table["field"]` is a number, the bytes of a string, an array that shares the file's memory (a vector of numbers), a
    list of tables or a table. `vtables` caches the file's vtables, because tables share them.
    """

    __slots__ = "_fields", "_offsets", "_vtables", "data", "name", "position"

    def __init__(self, data: bytes, name: str, position: int, vtables: dict[int, tuple[int, ...]]):
        self.data, self.name, self.position = data, name, position
        self._fields, self._vtables = _FIELDS[name], vtables

        vtable = position - _INT.unpack_from(data, position)[0]
        if vtable not in vtables:
            (size,) = _USHORT.unpack_from(data, vtable)
            # vtable: two sizes, then the fields' offsets by slot, 0 for an absent one
            vtables[vtable] = struct.unpack_from(f"<{size // 2}H", data, vtable)
        self._offsets = vtables[vtable]

    def __getitem__(self, name: str) -> Any:
        field, entry, number, default, element = self._fields[name]
        offsets = self._offsets
        offset = offsets[entry] if entry < len(offsets) else 0
        if number is not None:  # the common case
            return number(self.data, self.position + offset)[0] if offset else default
        at, kind = self.position + offset if offset else None, field.type
        if element:
            return self._vector(element, at, kind == "string")
        return None if at is None else self.follow(at, kind)

    def numbers(self, name: str) -> tuple[Any, ...]:
        """Return a vector of numbers as a tuple."""
        access = self._fields[name]
        at = self.place(access.field)
        if at is None:
            return ()
        start = self.target(at)
        (length,) = _UINT.unpack_from(self.data, start)
        return struct.unpack_from(f"<{length}{_FORMATS[access.element]}", self.data, start + 4)

    def union(self, name: str, table: str) -> Table | None:
        """Return a union's content as a table of type `table`, the type under which it was checked."""
        at = self.place(self._fields[name].field)
        return None if at is None else self.follow(at, table)

    def follow(self, at: int, table: str) -> Table:
        """Return the table that the offset at a position leads to."""
        return Table(self.data, table, self.target(at), self._vtables)

    def place(self, field: Field) -> int | None:
        """Return the position of a field's value or offset; None if the field is absent."""
        offsets, entry = self._offsets, 2 + field.slot
        offset = offsets[entry] if entry < len(offsets) else 0
        return self.position + offset if offset else None

    def target(self, at: int) -> int:
        """Return the position that the offset at a position leads to."""
        offset: int = _UINT.unpack_from(self.data, at)[0]
        return at + offset

    def _vector(self, element: str, at: int | None, as_bytes: bool) -> Any:
        start = 0 if at is None else self.target(at)
        length: int = 0 if at is None else _UINT.unpack_from(self.data, start)[0]
        if as_bytes:
            return self.data[start + 4 : start + 4 + length]
        if element in TABLES:
            return [self.follow(start + 4 + 4 * i, element) for i in range(length)]
        return np.frombuffer(self.data, _DTYPES[element], length, start + 4 if length else 0)


def root(data: bytes, table: str = "Model") -> Table:
    """Return the root table of a file, by default its Model."""
    (position,) = _UINT.unpack_from(data)
    return Table(data, table, position, {})
