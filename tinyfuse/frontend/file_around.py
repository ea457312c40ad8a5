"""Writes a model file around others: new tables of what is to change, which refer to what stays where it was.

Nothing is lost that nobody here reads: shapes, quantizations, options and data lie in the new file as they were.
"""

from __future__ import annotations

from collections.abc import Sequence

import flatbuffers
import numpy as np

from tinyfuse.frontend.flatbuffer_check import Damaged
from tinyfuse.frontend.flatbuffer_table import Table
from tinyfuse.frontend.schema import ENUM_SIZES, SIZES, TABLES, Field

#: interpreters read constants where they lie
_ALIGN = 16


class FileAround:
    """Offsets count from the end, as the builder makes a file from its end on; all files are 16-aligned in it."""

    def __init__(self, *files: bytes) -> None:
        self._builder = flatbuffers.Builder(sum(map(len, files)) + 4096)
        self._starts = {id(data): self._embedded(data) for data in files}

    def finished(self, model: int) -> bytes:
        """The file, whose root is that table."""
        self._builder.Finish(model, b"TFL3")
        return bytes(self._builder.Output())

    def data(self, content: bytes) -> int:
        """A vector of bytes, aligned as interpreters want constants."""
        self._embedded(content)
        vector: int = self._builder.Offset()
        return vector

    def _embedded(self, data: bytes) -> int:
        """Puts a file into this one; the offset of its first byte."""
        builder = self._builder
        builder.StartVector(1, len(data), _ALIGN)
        builder.head -= len(data)
        builder.Bytes[builder.head : builder.head + len(data)] = data
        start: int = builder.Offset()
        builder.EndVector()
        return start

    def kept(self, tables: Sequence[Table]) -> list[int]:
        """Offsets of tables that stay as they are."""
        return [self._starts[id(table.data)] - table.position for table in tables]

    def copied(self, table: Table, **changes: int | None) -> int:
        """A copy of a table with other fields, without those that are None; what it refers to is where it was."""
        fields: dict[str, int | None] = {}
        for field in TABLES[table.name]:
            at = None if field.type == "-" else table.place(field)
            if at is not None:
                fields[field.name] = table[field.name] if _is_scalar(field) else self._reference(table, field, at)
        return self.table(table.name, **{**fields, **changes})

    def _reference(self, table: Table, field: Field, at: int) -> int:
        """What a field refers to. Damaged where that is outside of its file: the options of operators
        that nobody reads were never looked at."""
        size = len(table.data)
        if at + 4 > size or table.target(at) + 4 > size:
            raise Damaged(f"{table.name}.{field.name} lies outside the file")
        return self._starts[id(table.data)] - table.target(at)

    def table(self, name: str, /, **values: int | None) -> int:
        """Writes a table of the schema; fields are numbers, or offsets of what was written before."""
        builder = self._builder
        builder.StartObject(len(TABLES[name]))
        for field in TABLES[name]:
            value = values.get(field.name)
            if value is None:
                continue
            if _is_scalar(field):
                getattr(builder, f"Prepend{_slot_type(field)}Slot")(field.slot, value, field.default)
            else:
                builder.PrependUOffsetTRelativeSlot(field.slot, value, 0)
        end: int = builder.EndObject()
        return end

    def vector(self, numbers: Sequence[int]) -> int:
        """A vector of int32."""
        offset: int = self._builder.CreateNumpyVector(np.array(numbers, np.int32))
        return offset

    def tables(self, offsets: Sequence[int]) -> int:
        """A vector of tables."""
        self._builder.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            self._builder.PrependUOffsetTRelative(offset)
        end: int = self._builder.EndVector()
        return end


def _is_scalar(field: Field) -> bool:
    return field.type in SIZES or field.type in ENUM_SIZES


def _slot_type(field: Field) -> str:
    """What the builder calls a scalar's type."""
    if field.type in ENUM_SIZES:
        return {1: "Int8", 4: "Int32"}[ENUM_SIZES[field.type]]
    return {"bool": "Bool", "byte": "Int8", "ubyte": "Uint8", "int": "Int32", "uint": "Uint32", "float": "Float32",
            "long": "Int64", "ulong": "Uint64"}[field.type]  # fmt: skip
