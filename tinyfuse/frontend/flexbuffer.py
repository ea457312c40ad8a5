"""Reads the options of custom operators: a FlexBuffer map of numbers. Every read is checked to lie inside the bytes.

Source of the format: FlatBuffers' "FlexBuffers" section of its internals page. A map is a vector of values. The types
of the values follow it; before it is the offset of its keys, a vector of offsets to strings. The `flexbuffers` module
of the `flatbuffers` package trusts what it reads, so it can't be used on untrusted files.
"""

from __future__ import annotations

import struct

from tinyfuse.frontend.flatbuffer_check import Damaged

#: most values of a map: more than any operator of TensorFlow Lite Micro has
MAX_KEYS = 64
#: most bytes of one key
MAX_KEY = 128

_NULL, _INT, _UINT, _FLOAT, _MAP, _BOOL = 0, 1, 2, 3, 9, 26
#: width in bytes -> struct that unpacks it
_FLOATS = {4: "<f", 8: "<d"}
_WIDTHS = (1, 2, 4, 8)


def integers_of(data: bytes) -> dict[str, int]:
    """Return the integers and booleans of a map by key, in the map's order.

    TFLM reads every value as a signed integer of the map's width, whatever its type (flatbuffer_utils.cc), so an
    unsigned one with its highest bit set is negative. Of more than 32 bits it keeps the lowest. Raises Damaged if the
    bytes are no such map.
    """
    return _Map(data).integers()


def numbers_of(data: bytes) -> dict[str, float | None]:
    """Return the numbers and booleans of a map by key; None for a null. Raises Damaged if the bytes are no such map."""
    return _Map(data).numbers()


class _Map:
    def __init__(self, data: bytes):
        self.data = data
        if len(data) < 3:
            raise Damaged(f"{len(data)} bytes, which is no FlexBuffer")
        packed, root_width = data[-2], data[-1]
        if root_width not in _WIDTHS or packed >> 2 != _MAP:
            raise Damaged("no FlexBuffer map")
        self.width = 1 << (packed & 3)
        root = len(data) - 2 - root_width
        self.start = root - self.number(root, root_width)
        self.count = self.number(self.start - self.width, self.width)
        if self.count > MAX_KEYS:
            raise Damaged(f"a map of {self.count} values is more than {MAX_KEYS}")

    def number(self, place: int, width: int, signed: bool = False) -> int:
        """Return the integer of `width` bytes at a place."""
        if place < 0 or place + width > len(self.data):
            raise Damaged(f"byte {place} is outside of the FlexBuffer's {len(self.data)}")
        return int.from_bytes(self.data[place : place + width], "little", signed=signed)

    def integers(self) -> dict[str, int]:
        found: dict[str, int] = {}
        types = self.start + self.count * self.width
        for i, key in enumerate(self.keys()):
            kind = self.number(types + i, 1) >> 2
            if kind not in (_INT, _UINT, _BOOL):
                raise Damaged(f"option {key!r} is not an integer")
            if key in found:
                raise Damaged(f"option {key!r} is there twice")
            number = self.number(self.start + i * self.width, self.width, signed=True)
            found[key] = (number + 2**31) % 2**32 - 2**31
        return found

    def numbers(self) -> dict[str, float | None]:
        found: dict[str, float | None] = {}
        types = self.start + self.count * self.width
        for i, key in enumerate(self.keys()):
            kind = self.number(types + i, 1) >> 2
            if kind not in (_NULL, _INT, _UINT, _FLOAT, _BOOL):
                raise Damaged(f"option {key!r} is not a number")
            found.setdefault(key, self.value(self.start + i * self.width, kind, key))
        return found

    def value(self, place: int, kind: int, key: str) -> float | None:
        """Return a value of the map, whose type must be one that `numbers` accepts."""
        number = self.number(place, self.width, signed=kind == _INT)
        if kind == _NULL:
            return None
        if kind != _FLOAT:
            return number
        if self.width not in _FLOATS:
            raise Damaged(f"option {key!r} is a float of {self.width} bytes")
        (value,) = struct.unpack_from(_FLOATS[self.width], self.data, place)
        return float(value)

    def keys(self) -> list[str]:
        pointer = self.start - 3 * self.width
        start = pointer - self.number(pointer, self.width)
        width = self.number(pointer + self.width, self.width)
        if width not in _WIDTHS:
            raise Damaged(f"its keys have a width of {width} bytes")
        places = [start + i * width for i in range(self.count)]
        return [self.key(place - self.number(place, width)) for place in places]

    def key(self, place: int) -> str:
        """Return the zero-terminated string at a place."""
        end = self.data.find(b"\0", place, place + MAX_KEY) if 0 <= place < len(self.data) else -1
        if end < 0:
            raise Damaged("the name of an option has no end")
        return self.data[place:end].decode("ascii", "backslashreplace")
