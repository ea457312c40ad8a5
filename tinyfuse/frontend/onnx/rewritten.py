"""Rewrites a file so that onnxruntime computes its layers in integers.

before   Conv -> Relu -> QuantizeLinear;
after    Conv -> QuantizeLinear -> DequantizeLinear -> Relu -> QuantizeLinear    all with one scale and zero point.

onnxruntime computes a layer by QLinearConv if its QuantizeLinear follows directly, or after an activation that it can
drop. Otherwise it uses float32 kernels, whose order of sums no standard defines: about one output in 60,000 differs. A
Relu or Clip gives the same result before and after the quantization, so only the sums change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

#: field numbers of ModelProto.graph, GraphProto.node, NodeProto.input
_GRAPH, _NODE, _INPUT, _OUTPUT, _NAME, _KIND = 7, 1, 1, 2, 3, 4
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def with_quantized_layers(data: bytes, layers: Mapping[int, tuple[str, Sequence[str]]]) -> bytes:
    """Return the file with a QuantizeLinear and a DequantizeLinear in front of some nodes.

    layers: by the number of the node that reads a layer's result, (the result's name, names of the scale and zero
    point). `data` is a file that was read without problems.
    """
    return b"".join(
        raw if number != _GRAPH else _field(_GRAPH, _graph(value, layers)) for number, raw, value in _fields(data)
    )


def _graph(data: bytes, layers: Mapping[int, tuple[str, Sequence[str]]]) -> bytes:
    parts, index = [], 0
    for number, raw, value in _fields(data):
        if number != _NODE:
            parts.append(raw)
            continue
        if index in layers:
            name, quantization = layers[index]
            raw = _field(_NODE, _renamed(value, name, f"{name}/requantized"))
            stored = f"{name}/stored"
            parts.append(_node("QuantizeLinear", (name, *quantization), stored))
            parts.append(_node("DequantizeLinear", (stored, *quantization), f"{name}/requantized"))
        parts.append(raw)
        index += 1
    return b"".join(parts)


def _renamed(node: bytes, name: str, new: str) -> bytes:
    """A node that reads `new` in the place of `name`."""
    return b"".join(
        _field(_INPUT, new.encode()) if number == _INPUT and value == name.encode() else raw
        for number, raw, value in _fields(node)
    )


def _node(kind: str, inputs: Sequence[str], output: str) -> bytes:
    fields = [_field(_INPUT, name.encode()) for name in inputs]
    fields += [_field(_OUTPUT, output.encode()), _field(_NAME, output.encode()), _field(_KIND, kind.encode())]
    return _field(_NODE, b"".join(fields))


def _field(number: int, value: bytes) -> bytes:
    return _varint(number << 3 | _BYTES) + _varint(len(value)) + value


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
