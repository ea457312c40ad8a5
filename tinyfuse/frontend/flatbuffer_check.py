"""Proves that every byte of a .tflite file which `tinyfuse.frontend.reader` reads is inside the file.

`check_flatbuffer` walks a file along the tables of `tinyfuse.frontend.schema` before anything is read
(`tinyfuse.frontend.flatbuffer_table`). Other parts of the file are never looked at. A union is walked according to its
type, and skipped if that type is not read.

Source of the format: FlatBuffers' "internals" page. The checks are those of its C++ verifier without alignment, which
only C needs, plus limits on what a small file may claim: tables and vectors can be shared, so a file can describe far
more than it contains.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from tinyfuse.frontend.schema import ENUM_SIZES, SIZES, TABLES, UNIONS

#: most elements of any one vector of tables: operators, tensors, buffers
MAX_TABLES_A_VECTOR = 10_000
#: most tables in all, each counted as often as it is referred to
MAX_TABLES = 60_000
#: most elements of number vectors and bytes of strings in all, each counted as often as referred to
MAX_ITEMS = 1 << 22
#: most bytes of one string; names of fused layers, concatenated by the converter, reach thousands
MAX_STRING = 1 << 16

#: scalar or enumeration type -> the unsigned integer of its size
_FORMATS = {kind: struct.Struct(f"<{'BHIQ'[size.bit_length() - 1]}") for kind, size in {**SIZES, **ENUM_SIZES}.items()}
_LARGEST = max(format.size for format in _FORMATS.values())
_USHORT, _UINT, _INT = map(struct.Struct, ("<H", "<I", "<i"))


class Damaged(Exception):
    """Raised for a file that can't be read; the message tells which field and why."""


class TooLarge(Exception):
    """Raised for a file that may be sound but exceeds a limit. The message names the limit."""


def check_flatbuffer(data: bytes, root: str = "Model") -> None:
    """Raise Damaged or TooLarge unless everything that `TABLES` names can be read safely from `data`, whose root
    table is a `root`."""
    Walk(data).run(root)


class Layout(NamedTuple):
    """Positions of a table's fields: (name, type, format of its number or None, offset) of each field that is
    present, and the bytes from the table's start that hold all of their numbers."""

    fields: list[tuple[str, str, struct.Struct | None, int]]
    reach: int


class Walk:
    """One walk over a file; the tests' mutations are built on it too.

    Offsets to tables are unsigned and TABLES has no cycle, so the walk ends; it keeps its own
    stack, and the budgets bound its time whatever the file says.
    """

    def __init__(self, data: bytes):
        self.data, self.end = data, len(data)
        self.tables = MAX_TABLES
        self.items = MAX_ITEMS
        self.stack: list[tuple[str, int, str]] = []
        self.layouts: dict[tuple[str, int], Layout] = {}

    def run(self, root: str = "Model") -> None:
        self.push(root, 0, root)
        while self.stack:
            self.table(*self.stack.pop())

    def number(self, format: struct.Struct, position: int, place: str) -> int:
        """Return the unsigned or signed integer at a position, after checking that it is in the file."""
        if not 0 <= position <= self.end - format.size:
            self.bounds(position, format.size, place)
        value: int = format.unpack_from(self.data, position)[0]
        return value

    def offsets(self, count: int, position: int, place: str) -> tuple[int, ...]:
        """Return the offsets of a table's first `count` fields, by slot; the vtable at `position` must be in the
        file already."""
        return struct.unpack_from(f"<{count}H", self.data, position)

    def inside(self, end: int) -> bool:
        """Tell whether all tables that end at `end` or before lie in the file; their numbers then need no checks of
        their own."""
        return end <= self.end

    def bounds(self, position: int, size: int, place: str) -> None:
        if position < 0 or position + size > self.end:
            raise Damaged(f"{place} lies outside the file (bytes {position} to {position + size} of {self.end})")

    def push(self, table: str, position: int, place: str) -> None:
        """Follow the offset at a position to a table, and queue it for checking."""
        self.tables -= 1
        if self.tables < 0:
            raise TooLarge(f"it has more than {MAX_TABLES} tables")
        # a table seen before is walked again: the reader, too, pays for it each time
        self.stack.append((table, position + self.number(_UINT, position, place), place))

    def table(self, table: str, position: int, place: str) -> None:
        vtable = position - self.number(_INT, position, place)
        found = self.layouts.get((table, vtable))  # tables of a type share vtables
        if found is None:
            found = self.layouts[table, vtable] = self.layout(table, vtable, f"the vtable of {place}")
        inside, union = self.inside(position + found.reach), 0
        for name, kind, format, offset in found.fields:
            if format is None:
                self.reference(kind, position + offset, f"{place}.{name}", union)
            elif name.endswith("_type"):
                union = self.number(format, position + offset, f"{place}.{name}")
            elif not inside:
                self.number(format, position + offset, f"{place}.{name}")

    def layout(self, table: str, vtable: int, place: str) -> Layout:
        """Return the positions of a table's fields, as its vtable gives them."""
        size = self.number(_USHORT, vtable, place)
        if size < 4 or size % 2:
            raise Damaged(f"{place} has an impossible size ({size})")
        self.bounds(vtable, size, place)
        fields = TABLES[table]
        offsets = self.offsets(min(len(fields), size // 2 - 2), vtable + 4, place)
        there = [
            (field.name, field.type, _FORMATS.get(field.type), offset)
            for field, offset in zip(fields, offsets, strict=False)
            if offset and field.type != "-"
        ]
        return Layout(there, max(offsets, default=0) + _LARGEST)

    def reference(self, kind: str, position: int, place: str, union: int) -> None:
        """Follow a field that refers to a string, vector, table or union."""
        if kind in UNIONS:
            if union in UNIONS[kind]:
                self.push(UNIONS[kind][union], position, place)
        elif kind in TABLES:
            self.push(kind, position, place)
        else:
            self.vector(kind, position + self.number(_UINT, position, place), place)

    def vector(self, kind: str, position: int, place: str) -> None:
        element = "byte" if kind == "string" else kind[1:-1]
        length = self.number(_UINT, position, place)
        size = length * SIZES.get(element, 4)
        if position + 4 + size > self.end:
            self.bounds(position + 4, size, place)
        if element in TABLES:
            if length > MAX_TABLES_A_VECTOR:
                raise TooLarge(f"{place} has {length} elements, more than {MAX_TABLES_A_VECTOR}")
            for i in range(length):
                self.push(element, position + 4 + 4 * i, f"{place}[{i}]")
        elif element != "ubyte":  # the bytes of buffers are shared, never copied
            if kind == "string" and length > MAX_STRING:
                raise TooLarge(f"{place} has {length} bytes, more than {MAX_STRING}")
            self.items -= length
            if self.items < 0:
                raise TooLarge(f"its vectors and strings have more than {MAX_ITEMS} elements")
