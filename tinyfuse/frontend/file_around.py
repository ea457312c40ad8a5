"""Writes a model file that embeds other files: new tables for changed parts, references to the other files for
everything else.

Shapes, quantizations, options and data stay as they were, even those that tinyfuse doesn't read.
"""

from __future__ import annotations

from collections.abc import Sequence

import flatbuffers
import numpy as np

from tinyfuse.frontend.flatbuffer_check import Damaged
from tinyfuse.frontend.flatbuffer_table import Table
from tinyfuse.frontend.schema import ENUM_SIZES, SIZES, TABLES, Field

#: alignment in bytes of constants: interpreters read them in place
_ALIGN = 16


class FileAround:
    """Builds the file from its end: offsets count from there, and embedded files are aligned to 16 bytes."""

    def __init__(self, *files: bytes) -> None:
        self._builder = flatbuffers.Builder(sum(map(len, files)) + 4096)
        self._starts = {id(data): self._embedded(data) for data in files}

    def finished(self, model: int) -> bytes:
        """Return the file with table `model` as its root."""
        self._builder.Finish(model, b"TFL3")
        return bytes(self._builder.Output())

    def data(self, content: bytes) -> int:
        """Write a vector of bytes, aligned for constants; return its offset."""
        self._embedded(content)
        vector: int = self._builder.Offset()
        return vector

    def _embedded(self, data: bytes) -> int:
        """Write a file into this one; return the offset of its first byte."""
        builder = self._builder
        builder.StartVector(1, len(data), _ALIGN)
        builder.head -= len(data)
        builder.Bytes[builder.head : builder.head + len(data)] = data
        start: int = builder.Offset()
        builder.EndVector()
        return start

    def kept(self, tables: Sequence[Table]) -> list[int]:
        """Return the offsets of the tables that the new file keeps unchanged."""
        return [self._starts[id(table.data)] - table.position for table in tables]

    def copied(self, table: Table, **changes: int | None) -> int:
        """Copy a table with the fields in `changes` replaced, or dropped if None; references keep their targets.
        Returns its offset."""
        fields: dict[str, int | None] = {}
        for field in TABLES[table.name]:
            at = None if field.type == "-" else table.place(field)
            if at is not None:
                fields[field.name] = table[field.name] if _is_scalar(field) else self._reference(table, field, at)
        return self.table(table.name, **{**fields, **changes})

    def _reference(self, table: Table, field: Field, at: int) -> int:
        """Return the offset of a field's target. Raises Damaged if it is outside the file: unread options were
        never checked."""
        size = len(table.data)
        if at + 4 > size or table.target(at) + 4 > size:
            raise Damaged(f"{table.name}.{field.name} lies outside the file")
        return self._starts[id(table.data)] - table.target(at)

    def table(self, name: str, /, **values: int | None) -> int:
        """Write a table of the schema and return its offset; `values` are numbers, or offsets of objects already
        written."""
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
        """Write a vector of int32; return its offset."""
        offset: int = self._builder.CreateNumpyVector(np.array(numbers, np.int32))
        return offset

    def string(self, content: str) -> int:
        """Write a string; return its offset."""
        offset: int = self._builder.CreateString(content)
        return offset

    def tables(self, offsets: Sequence[int]) -> int:
        """Write a vector of tables; return its offset."""
        self._builder.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            self._builder.PrependUOffsetTRelative(offset)
        end: int = self._builder.EndVector()
        return end


def _is_scalar(field: Field) -> bool:
    return field.type in SIZES or field.type in ENUM_SIZES


def _slot_type(field: Field) -> str:
    """Return the builder's name for a scalar type."""
    if field.type in ENUM_SIZES:
        return {1: "Int8", 4: "Int32"}[ENUM_SIZES[field.type]]
    return {"bool": "Bool", "byte": "Int8", "ubyte": "Uint8", "int": "Int32", "uint": "Uint32", "float": "Float32",
            "long": "Int64", "ulong": "Uint64"}[field.type]  # fmt: skip
