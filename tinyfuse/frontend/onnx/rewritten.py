"""Writes the copy of a file that onnxruntime runs as the reference, with every layer and mean in integers.

onnxruntime computes a layer by QLinearConv if its QuantizeLinear follows directly, or after an activation that it can
drop. ConvTranspose and ReduceMean have no such kernels. It computes what is left in float32, in an order of sums that
no standard defines, which changes about one output in 60,000. The copy has other nodes for these, which compute the
same except for the order of sums.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tinyfuse.frontend.onnx.messages import DTYPES
from tinyfuse.ir import Array

#: field numbers: ModelProto.graph; GraphProto.node, initializer; NodeProto.input, output, name, op_type, attribute
_GRAPH, _NODE, _INITIALIZER, _INPUT, _OUTPUT, _NAME, _KIND, _ATTRIBUTE = 7, 1, 5, 1, 2, 3, 4, 5
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


@dataclass
class Change:
    """New nodes in front of a node of the file, or in its place.

    prefix    of the names of new values
    renamed   inputs that the node reads under another name
    replaces  whether the node is left out
    """

    prefix: str
    renamed: dict[str, str] = field(default_factory=dict)
    replaces: bool = False
    nodes: list[bytes] = field(default_factory=list)
    constants: list[bytes] = field(default_factory=list)

    def constant(self, array: Array) -> str:
        """Add a constant, and return its name."""
        name = f"{self.prefix}/constant {len(self.constants)}"
        data_type = next(number for number, dtype in DTYPES.items() if dtype == str(array.dtype))
        fields = [_number_field(1, dim) for dim in array.shape]
        fields += [_number_field(2, data_type), _field(8, name.encode())]
        little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        self.constants.append(b"".join([*fields, _field(9, little.tobytes())]))
        return name

    def node(self, kind: str, inputs: Sequence[str], output: str = "", **attributes: Sequence[int]) -> str:
        """Add a node; return the name of its output. `axis` is a number, other attributes are lists."""
        output = output or f"{self.prefix}/value {len(self.nodes)}"
        fields = [_field(_INPUT, name.encode()) for name in inputs]
        fields += [_field(_OUTPUT, output.encode()), _field(_NAME, output.encode()), _field(_KIND, kind.encode())]
        for name, values in attributes.items():
            number, kind_of_attribute = (3, 2) if name == "axis" else (8, 7)  # INT or INTS
            numbers = [_number_field(number, value) for value in values]
            parts = [_field(1, name.encode()), *numbers, _number_field(20, kind_of_attribute)]
            fields.append(_field(_ATTRIBUTE, b"".join(parts)))
        self.nodes.append(b"".join(fields))
        return output

    def reshaped(self, name: str, shape: Sequence[int]) -> str:
        """Add a Reshape node, and return the name of its output."""
        return self.node("Reshape", [name, self.constant(np.array(shape, np.int64))])


def rewritten(data: bytes, changes: Mapping[int, Change]) -> bytes:
    """Return the file with `changes`, each by the number of its node. `data` was read without problems."""
    return b"".join(
        raw if number != _GRAPH else _field(_GRAPH, _graph(value, changes)) for number, raw, value in _fields(data)
    )


def _graph(data: bytes, changes: Mapping[int, Change]) -> bytes:
    parts, index = [], 0
    for number, raw, value in _fields(data):
        change = changes.get(index) if number == _NODE else None
        index += number == _NODE
        if change is not None:
            parts += [_field(_NODE, node) for node in change.nodes]
            parts += [_field(_INITIALIZER, constant) for constant in change.constants]
            raw = b"" if change.replaces else _field(_NODE, _renamed(value, change.renamed))
        parts.append(raw)
    return b"".join(parts)


def _renamed(node: bytes, names: Mapping[str, str]) -> bytes:
    """A node that reads other names."""
    return b"".join(
        _field(_INPUT, names.get(value.decode(), value.decode()).encode()) if number == _INPUT else raw
        for number, raw, value in _fields(node)
    )


def _field(number: int, value: bytes) -> bytes:
    return _varint(number << 3 | _BYTES) + _varint(len(value)) + value


def _number_field(number: int, value: int) -> bytes:
    return _varint(number << 3 | _VARINT) + _varint(value)


def _varint(value: int) -> bytes:
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def _fields(data: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """(number, the whole field, its value) of each field of a message."""
    at = 0
    while at < len(data):
        start = at
        tag, at = _number(data, at)
        wire = tag & 7
        size = 0
        if wire == _BYTES:
            size, at = _number(data, at)
        elif wire in (_FIXED64, _FIXED32):
            size = 8 if wire == _FIXED64 else 4
        else:
            _, at = _number(data, at)
        yield tag >> 3, data[start : at + size], data[at : at + size]
        at += size


def _number(data: bytes, at: int) -> tuple[int, int]:
    """(value, where it ends) of a varint."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at
