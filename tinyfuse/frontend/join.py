"""Two model files as one: a front end, and a network that is fed by it.

The joined file is what an interpreter runs, too, so that a module of both is verified against one run of both. It has
both files inside as they are, and before them new tables of what has other numbers now: the network's tensors,
operators and the lists of all. What these refer to (shapes, quantizations, options, data) stays where it was, so
that nothing is lost that nobody here reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import flatbuffers
import numpy as np

from tinyfuse.errors import CompileError, Problem
from tinyfuse.frontend.flatbuffer_check import Damaged
from tinyfuse.frontend.flatbuffer_table import Table, root
from tinyfuse.frontend.reader import load_file, read_tflite
from tinyfuse.frontend.schema import ENUM_SIZES, SIZES, TABLES, Field
from tinyfuse.frontend.tensors import HINT_DAMAGED
from tinyfuse.ir import Graph, Quant, Tensor
from tinyfuse.ops import FAMILIES

#: interpreters read constants where they lie
_ALIGN = 16


def with_front_end(front_path: str, network_path: str, network: bytes | None = None) -> bytes:
    """The bytes of a model of the network's file (of `network`, when given) behind that of `front_path`: the front
    end's output in place of the input that it is like, and the network's outputs.

    CompileError where either can't be read, or the two don't fit each other.
    """
    front = load_file(front_path)
    network = load_file(network_path) if network is None else network
    before, after = read_tflite(front_path, front), read_tflite(network_path, network)
    fed = _fed(before, after, network)
    try:
        return _Join(front, network).file(before.outputs[0].index, fed.index)
    except Damaged as damaged:
        raise CompileError(network_path, Problem(f"damaged file: {damaged}", hint=HINT_DAMAGED)) from None


# --- what fits ---------------------------------------------------------------------------------


def _fed(before: Graph, after: Graph, network: bytes) -> Tensor:
    """The network's input that the front end feeds."""

    def refuse(message: str, hint: str, tensor: Tensor | None = None) -> CompileError:
        about = None if tensor is None else str(tensor)
        return CompileError(before.path, Problem(f"as a front end: {message}", tensor=about, hint=hint))

    if len(before.outputs) != 1:
        raise refuse(f"it has {len(before.outputs)} outputs", "give a model whose one output is the network's input")
    (output,) = before.outputs
    if output in before.inputs:
        raise refuse("its output is its input", "leave --front-end out")
    alike = [t for t in after.inputs if (t.shape, t.dtype) == (output.shape, output.dtype)]
    if not alike:
        inputs = "; ".join(map(str, after.inputs))
        raise refuse(f"its output is no input of {after.path}: {inputs}", _hint(after.inputs[0]), output)
    fed = alike[0]
    if output.quant is not None and _numbers(output.quant) != _numbers(fed.quant):
        message = f"its output is quantized otherwise than {fed} of {after.path} ({_told(output)}, {_told(fed)})"
        raise refuse(message, _hint(fed), output)
    if len(root(network)["subgraphs"]) > 1:
        message = f"{after.path} has several subgraphs, which no front end can stand before"
        raise refuse(message, "convert the network without control flow, and its variables without initial values")
    shared = _variables(before) & _variables(after)
    if shared:
        names = ", ".join(map(repr, sorted(shared)))
        raise refuse(f"{after.path} has variables of the same name: {names}", "name the variables otherwise")
    return fed


def _numbers(quant: Quant | None) -> Any:
    return None if quant is None else (quant.scale, quant.zero_point)


def _told(tensor: Tensor) -> str:
    if tensor.quant is None or tensor.quant.per_channel:
        return "no scale for all of it"
    return f"scale {tensor.scale:.9g}, zero point {tensor.zero_point}"


def _hint(fed: Tensor) -> str:
    shape = ",".join(map(str, fed.shape))
    if fed.quant is None or fed.quant.per_channel:
        return f"the network wants {fed.dtype}[{shape}]"
    return (
        f"tinyfuse front-end --shape {shape} --scale {fed.scale:.9g} --zero-point {fed.zero_point} makes one that "
        "fits, with --frames and --channels as the network was trained"
    )


def _variables(graph: Graph) -> set[str]:
    """The names of a graph's resource variables."""
    return {op.input.name for op in graph.ops if FAMILIES[op.kind].resource} if _known(graph) else set()


def _known(graph: Graph) -> bool:
    """Whether every operator is supported; else the check of the joined model says so."""
    return all(op.kind in FAMILIES for op in graph.ops)


# --- the joined file ---------------------------------------------------------------------------


class _Join:
    """Offsets count from the end, as the builder makes a file from its end on; both files are 16-aligned in it."""

    def __init__(self, front: bytes, network: bytes) -> None:
        self.builder = flatbuffers.Builder(len(front) + len(network) + 4096)
        self.network_start = self._embedded(network)
        self.front_start = self._embedded(front)
        self.front, self.network = root(front), root(network)
        self.front_graph, self.network_graph = self.front["subgraphs"][0], self.network["subgraphs"][0]

    def file(self, source: int, fed: int) -> bytes:
        """The file, in which the front end's tensor `source` stands for the network's tensor `fed`."""
        front, network = self.front, self.network
        count, codes, buffers = (
            len(self.front_graph["tensors"]), len(front["operator_codes"]), len(front["buffers"])
        )  # fmt: skip

        def moved(numbers: np.ndarray) -> list[int]:
            return [source if n == fed else n + count if n >= 0 else n for n in numbers.tolist()]

        # of a tensor that nobody uses the buffer may be any number: it was never read
        known = range(1, len(network["buffers"]))
        tensors = [
            self._copied(t, buffer=t["buffer"] + buffers if t["buffer"] in known else 0)
            for t in self.network_graph["tensors"]
        ]
        operators = [
            self._copied(
                op, opcode_index=op["opcode_index"] + codes, inputs=self._vector(moved(op["inputs"])),
                outputs=self._vector(moved(op["outputs"])),
            )
            for op in self.network_graph["operators"]
        ]  # fmt: skip
        inputs = self.front_graph["inputs"].tolist()
        inputs += [n for n in moved(self.network_graph["inputs"]) if n != source]
        graph = self._table(
            "SubGraph",
            tensors=self._list(self._kept(self.front_graph["tensors"], front=True) + tensors),
            inputs=self._vector(inputs),
            outputs=self._vector(moved(self.network_graph["outputs"])),
            operators=self._list(self._kept(self.front_graph["operators"], front=True) + operators),
        )

        def both(name: str) -> int:
            return self._list(self._kept(front[name], front=True) + self._kept(network[name], front=False))

        model = self._table(
            "Model",
            version=3,
            operator_codes=both("operator_codes"),
            subgraphs=self._list([graph, *self._kept(front["subgraphs"][1:], front=True)]),
            buffers=both("buffers"),
        )
        self.builder.Finish(model, b"TFL3")
        return bytes(self.builder.Output())

    def _embedded(self, data: bytes) -> int:
        """Puts a file into this one; the offset of its first byte."""
        builder = self.builder
        builder.StartVector(1, len(data), _ALIGN)
        builder.head -= len(data)
        builder.Bytes[builder.head : builder.head + len(data)] = data
        start: int = builder.Offset()
        builder.EndVector()
        return start

    def _kept(self, tables: Sequence[Table], front: bool) -> list[int]:
        """Offsets of tables that stay as they are."""
        start = self.front_start if front else self.network_start
        return [start - table.position for table in tables]

    def _copied(self, table: Table, **changes: int) -> int:
        """A copy of one of the network's tables with other fields; what it refers to is where it was."""
        fields: dict[str, int] = {}
        for field in TABLES[table.name]:
            at = None if field.type == "-" else table.place(field)
            if at is not None:
                fields[field.name] = table[field.name] if _is_scalar(field) else self._reference(table, field, at)
        return self._table(table.name, **{**fields, **changes})

    def _reference(self, table: Table, field: Field, at: int) -> int:
        """What a field of the network refers to. Damaged where that is outside of its file: the options of operators
        that nobody reads were never looked at."""
        size = len(table.data)
        if at + 4 > size or table.target(at) + 4 > size:
            raise Damaged(f"{table.name}.{field.name} lies outside the file")
        return self.network_start - table.target(at)

    def _table(self, name: str, /, **values: int) -> int:
        """Writes a table of the schema; fields are numbers, or offsets of what was written before."""
        builder = self.builder
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

    def _vector(self, numbers: Sequence[int]) -> int:
        offset: int = self.builder.CreateNumpyVector(np.array(numbers, np.int32))
        return offset

    def _list(self, offsets: Sequence[int]) -> int:
        """A vector of tables."""
        self.builder.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            self.builder.PrependUOffsetTRelative(offset)
        end: int = self.builder.EndVector()
        return end


def _is_scalar(field: Field) -> bool:
    return field.type in SIZES or field.type in ENUM_SIZES


def _slot_type(field: Field) -> str:
    """What the builder calls a scalar's type."""
    if field.type in ENUM_SIZES:
        return {1: "Int8", 4: "Int32"}[ENUM_SIZES[field.type]]
    return {"bool": "Bool", "byte": "Int8", "ubyte": "Uint8", "int": "Int32", "uint": "Uint32", "float": "Float32",
            "long": "Int64", "ulong": "Uint64"}[field.type]  # fmt: skip
