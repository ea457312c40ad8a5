"""A graph as text: what `report --dump-passes` shows and golden tests compare.

    input  %0 int8[1,8,8,3] scale 0.5 zero -1 'serving_default_x'
    op 0 CONV_2D padding='SAME' stride=(2, 2) activation='RELU'
      input  %0
      input  %1 int8[8,3,3,3] scale 0.01 to 0.02 (8, axis 0) 'w' = -127 to 127, crc32 1c291ca3
      input  %2 int32[8] scale 0.005 to 0.01 (8, axis 0) 'b' = 12 -7 0 3 9 0 0 1
      output %3 int8[1,4,4,8] scale 0.25 zero -128 'conv'
    output %3

A tensor is described in full where it first occurs. Its name is its index in the file, so that two texts of one model
differ only where their graphs do. A tensor that a rewrite added is named %new0; one that a rewrite derived from a
tensor of the file, and that exists beside it, gets a suffix (%3.1).
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass

import numpy as np

from tinyfuse.ir.graph import Graph, Op, Quant, Tensor, quoted, type_text

#: constants with more elements are shown as their range and a checksum of their bytes
MOST_VALUES = 8


def graph_text(graph: Graph) -> str:
    """Text of every operator and tensor of the graph, in order. Equal graphs give equal text, whatever their path."""
    told = _Tensors(graph)
    lines = [f"input  {told(tensor)}" for tensor in graph.inputs]
    for op in graph.ops:
        lines.append(op_text(op))
        lines += [f"  input  {told(tensor)}" for tensor in op.inputs]
        lines += [f"  output {told(tensor)}" for tensor in op.outputs]
    lines += [f"output {told(tensor)}" for tensor in graph.outputs]
    for number, called in _called(graph).items():
        lines += ["", f"subgraph {number}", *graph_text(called).splitlines()]
    return "\n".join(lines) + "\n"


def _called(graph: Graph) -> dict[int, Graph]:
    """The graphs that the graph's operators run, by their places in the file: the attributes of such an operator
    have `graphs`, and their `numbers`."""
    attributes = (op.attributes for op in graph.ops)
    numbered = (zip(getattr(a, "numbers", ()), getattr(a, "graphs", ()), strict=False) for a in attributes)
    return {number: called for pairs in numbered for number, called in pairs}


def op_text(op: Op) -> str:
    """One operator without its tensors: its place in the file ("new": a rewrite made it), kind and attributes."""
    words = ["op", "new" if op.index < 0 else str(op.index), op.kind]
    if is_dataclass(op.attributes):
        words += [
            f"{field.name}={_attribute(getattr(op.attributes, field.name))}"
            for field in fields(op.attributes)
            if field.repr
        ]
    elif op.attributes is not None:
        words.append(_attribute(op.attributes))
    if op.view:
        words.append("(a view: nothing runs)")
    return " ".join(words)


def _attribute(value: object) -> str:
    return op_text(value) if isinstance(value, Op) else repr(value)


class _Tensors:
    """Tensors by their names in one text, each described once."""

    def __init__(self, graph: Graph) -> None:
        self.names = dict(_names(graph))
        self.described: set[Tensor] = set()

    def __call__(self, tensor: Tensor | None) -> str:
        if tensor is None:
            return "-"
        name = self.names[tensor]
        if tensor in self.described:
            return name
        self.described.add(tensor)
        return f"{name} {self._description(tensor)}"

    def _description(self, tensor: Tensor) -> str:
        words = [type_text(tensor)]
        if tensor.quant is not None:
            words.append(_quantization(tensor.quant))
        words.append(quoted(tensor.name))
        if tensor.data is not None:
            words.append(f"= {_values(tensor.data)}")
        if tensor.planes > 1:
            words.append("in planes")
        if tensor.initial is not None:
            words.append(f"state, at first {_values(tensor.initial)}")
        if tensor.cursor is not None:
            words.append(f"a ring from {self(tensor.cursor)}")
        return " ".join(words)


def _names(graph: Graph) -> Iterator[tuple[Tensor, str]]:
    made = 0
    namesakes: dict[int, int] = {}
    for tensor in dict.fromkeys(_tensors(graph)):
        if tensor.index < 0:
            yield tensor, f"%new{made}"
            made += 1
        else:
            count = namesakes[tensor.index] = namesakes.get(tensor.index, -1) + 1
            yield tensor, f"%{tensor.index}" + (f".{count}" if count else "")


def _tensors(graph: Graph) -> Iterator[Tensor]:
    """Yields every tensor, in the order in which the text first mentions it."""
    for tensor in (*graph.inputs, *(t for op in graph.ops for t in (*op.inputs, *op.outputs)), *graph.outputs):
        if tensor is not None:
            yield tensor
            if tensor.cursor is not None:
                yield tensor.cursor


def _quantization(quant: Quant) -> str:
    if not quant.per_channel:
        return f"scale {_number(quant.scale[0])} zero {quant.zero_point[0]}"
    zeros = f" zero {_range(quant.zero_point)}" if any(quant.zero_point) else ""
    return f"scale {_range(quant.scale)} ({len(quant.scale)}, axis {quant.axis}){zeros}"


def _values(data: np.ndarray) -> str:
    """Return a text of all values if they are few, otherwise of the least, the largest and the CRC-32 of their
    bytes."""
    values = data.reshape(-1).tolist()
    if len(values) <= MOST_VALUES:
        return " ".join(map(_number, values)) or "nothing"
    return f"{_range(values)}, crc32 {zlib.crc32(np.ascontiguousarray(data).tobytes()):08x}"


def _range(values: Iterable[float]) -> str:
    numbers = list(values)
    least, most = min(numbers), max(numbers)
    return _number(least) if least == most else f"{_number(least)} to {_number(most)}"


def _number(value: float) -> str:
    """Return a number's text. Nine significant digits tell every float32 from all others."""
    return f"{value:.9g}" if isinstance(value, float) else str(int(value))
