"""Decodes the protobuf wire format, with every length checked: the bytes are untrusted.

A message is decoded by a table of its fields. Bytes stay views of the file, so a weight tensor is not copied.
https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

#: nested messages below the outermost one; ONNX needs about ten, more for graphs inside nodes
DEEPEST = 32
#: fields of one file: a large network has some ten thousand
MOST_FIELDS = 1 << 20

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


class Malformed(Exception):
    """Raised for bytes that are no message of the expected kind."""


@dataclass(frozen=True)
class Field:
    """A field of a message.

    name      key in the decoded message
    kind      "int" (signed 64 bits), "float", "double", "bytes", "text", or the name of a message
    repeated  whether the field holds a list
    """

    name: str
    kind: str
    repeated: bool = False


#: message name -> field number -> field
Schema = Mapping[str, Mapping[int, Field]]
#: a decoded message: field name -> value; absent fields are missing, repeated ones are lists
Message = dict[str, Any]


def decode(data: bytes, kind: str, schema: Schema) -> Message:
    """Return the message `kind` in `data`. Unknown fields are skipped. Raises Malformed."""
    return _Decoder(memoryview(data), schema).message(kind, 0, len(data), 0)


class _Decoder:
    def __init__(self, data: memoryview, schema: Schema):
        self.data, self.schema, self.fields = data, schema, 0

    def message(self, kind: str, at: int, end: int, depth: int) -> Message:
        if depth > DEEPEST:
            raise Malformed(f"messages lie more than {DEEPEST} levels deep")
        found: Message = {}
        fields = self.schema[kind]
        while at < end:
            self.fields += 1
            if self.fields > MOST_FIELDS:
                raise Malformed(f"the file has more than {MOST_FIELDS:,} fields")
            tag, at = self.varint(at, end)
            wire, field = tag & 7, fields.get(tag >> 3)
            start, stop, after = self.extent(wire, at, end)
            if field is not None:
                self.store(found, kind, field, wire, start, stop, depth)
            at = after
        return found

    def extent(self, wire: int, at: int, end: int) -> tuple[int, int, int]:
        """(start, end) of a field's value, and where the next field begins."""
        if wire == _VARINT:
            after = self.varint(at, end)[1]
            return at, after, after
        if wire == _BYTES:
            size, at = self.varint(at, end)
        elif wire in (_FIXED64, _FIXED32):
            size = 8 if wire == _FIXED64 else 4
        else:
            raise Malformed(f"a field has wire type {wire}")
        if size > end - at:
            raise Malformed("a field ends beyond its message")
        return at, at + size, at + size

    def varint(self, at: int, end: int) -> tuple[int, int]:
        """(value, where it ends) of an unsigned integer of up to 64 bits."""
        value = 0
        for shift in range(0, 70, 7):
            if at >= end:
                raise Malformed("a number ends beyond its message")
            byte = self.data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value & (2**64 - 1), at
        raise Malformed("a number has more than ten bytes")

    def store(self, found: Message, kind: str, field: Field, wire: int, start: int, stop: int, depth: int) -> None:
        """Add a field's value to a message; the last value of a field that isn't repeated counts."""
        if field.repeated:
            values = found.setdefault(field.name, [])
            if wire == _BYTES and field.kind in ("int", "float", "double"):
                values += self.packed(field.kind, start, stop)
            else:
                values.append(self.value(kind, field, wire, start, stop, depth))
        else:
            found[field.name] = self.value(kind, field, wire, start, stop, depth)

    def value(self, kind: str, field: Field, wire: int, start: int, stop: int, depth: int) -> Any:
        expected = {"int": _VARINT, "float": _FIXED32, "double": _FIXED64}.get(field.kind, _BYTES)
        if wire != expected:
            raise Malformed(f"field {field.name} of {kind} has wire type {wire}")
        if field.kind == "int":
            return _signed(self.varint(start, stop)[0])
        if field.kind in ("float", "double"):
            return struct.unpack_from("<f" if field.kind == "float" else "<d", self.data, start)[0]
        if field.kind == "bytes":
            return self.data[start:stop]
        if field.kind == "text":
            return bytes(self.data[start:stop]).decode("utf-8", "replace")
        return self.message(field.kind, start, stop, depth + 1)

    def packed(self, kind: str, start: int, stop: int) -> list[Any]:
        """The numbers of a packed field."""
        if kind == "int":
            numbers = []
            while start < stop:
                self.fields += 1
                if self.fields > MOST_FIELDS:
                    raise Malformed(f"the file has more than {MOST_FIELDS:,} fields and numbers")
                value, start = self.varint(start, stop)
                numbers.append(_signed(value))
            return numbers
        size, code = (4, "f") if kind == "float" else (8, "d")
        if (stop - start) % size:
            raise Malformed("packed numbers end inside a number")
        return list(struct.unpack_from(f"<{(stop - start) // size}{code}", self.data, start))


def _signed(value: int) -> int:
    return value - 2**64 if value >= 2**63 else value
