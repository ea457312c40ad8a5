"""Writes the float32 model of a file whose weights are stored in another dtype, with a signature.

Dynamic-range files hold int8 weights that operators on float32 data read; weight-only and float16 files hold a
DEQUANTIZE for each. The quantizer takes neither, and no file without a SignatureDef. It identifies tensors by name
alone, and reads every operator of a file from before 2020 as ADD. It leaves EXPAND_DIMS and SQUEEZE, which Keras writes
around each one-dimensional convolution, in float32 with conversions around them, but quantizes RESHAPE.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import count

import numpy as np

from tinyfuse.errors import CompileError, Problem
from tinyfuse.frontend.file_around import FileAround
from tinyfuse.frontend.flatbuffer_check import Damaged
from tinyfuse.frontend.flatbuffer_table import Table, root
from tinyfuse.frontend.inside_file import inside_file
from tinyfuse.frontend.reader import check_file, kind_of, read_model
from tinyfuse.frontend.schema import enumerators
from tinyfuse.frontend.tensors import HINT_DAMAGED, Model, Problems, TensorReader, text
from tinyfuse.ir import Array, Tensor
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.real_numbers import real_numbers

#: key of the one signature
SIGNATURE = "serving_default"
#: dtypes in which weights are stored that operators compute with as float32
_STORED = ("int8", "uint8", "int4", "int16", "float16")
_TYPES = {name: value for value, name in enumerators("TensorType").items()}
_FLOAT32, _INT8, _INT32 = _TYPES["FLOAT32"], _TYPES["INT8"], _TYPES["INT32"]
#: number of a RESHAPE in the schema
_RESHAPE = next(value for value, name in enumerators("BuiltinOperator").items() if name == "RESHAPE")


@dataclass(frozen=True)
class FloatFile:
    """A model whose weights are float32.

    data     the file's bytes
    weights  number of tensors that became float32
    """

    data: bytes
    weights: int


def float_file(path: str, data: bytes) -> FloatFile:
    """Return the float32 model of the file `data`, which messages call `path`.

    Constants that operators on float32 data read, and those behind a DEQUANTIZE, become float32. EXPAND_DIMS and
    SQUEEZE become RESHAPE. Tensors get names of their own where several share one, and the first graph a signature.
    Everything else stays as it is. Raises CompileError if the file can't be read.
    """
    check_file(path, data)
    data = inside_file(data)
    model, problems = read_model(path, data), Problems()
    weights = [_weights_of(data, model, number, problems) for number in range(len(model.subgraphs))]
    problems.stop(path)
    try:
        written = _FloatWriter(data, weights).file()
    except Damaged as damaged:
        raise CompileError(path, Problem(f"damaged file: {damaged}", hint=HINT_DAMAGED)) from None
    return FloatFile(written, sum(len(each.values) for each in weights))


@dataclass(frozen=True)
class _Weights:
    """Changes of a subgraph that turn weights into float32. values: new float32 constants by tensor index; gone:
    indexes of the operators that computed them before."""

    values: dict[int, Array]
    gone: set[int]


def _weights_of(data: bytes, model: Model, number: int, problems: Problems) -> _Weights:
    graph, reader = model.subgraphs[number], TensorReader(data, model, number, problems)
    found = _Weights({}, set())
    for place, op in enumerate(graph["operators"]):
        kind = kind_of(model, op["opcode_index"])
        inputs, outputs = ([i for i in op.numbers(end) if 0 <= i < reader.count] for end in ("inputs", "outputs"))
        stored = [i for i in inputs if _is_stored(reader, i)]
        if kind == "DEQUANTIZE" and stored and len(outputs) == 1:
            found.values[outputs[0]] = _real(reader.tensor(stored[0]))
            found.gone.add(place)
        elif kind != "QUANTIZE" and any(reader.tables[i]["type"] == _FLOAT32 for i in outputs):
            found.values.update((i, _real(reader.tensor(i))) for i in stored if reader.tensor(i).quant)
    return found


def _real(tensor: Tensor) -> Array:
    return real_numbers(tensor.values, tensor.quant)


def _is_stored(reader: TensorReader, index: int) -> bool:
    tensor = reader.tensor(index)
    return tensor.is_constant and tensor.dtype in _STORED and tensor not in reader.bad


class _FloatWriter(FileAround):
    """Builds the float32 file from the given one."""

    def __init__(self, data: bytes, weights: list[_Weights]) -> None:
        super().__init__(data)
        self._model, self._weights = root(data), weights
        self._buffers = self.kept(self._model["buffers"])
        self._tables = Model.of(data)

    def file(self) -> bytes:
        graphs: list[Table] = self._model["subgraphs"]
        names = _names([graph["tensors"] for graph in graphs])
        written = [self._graph(*each) for each in zip(graphs, self._weights, names, strict=True)]
        changes = {
            "operator_codes": self.tables([*map(self._code, self._tables.operator_codes), self._reshape_code()]),
            "subgraphs": self.tables(written),
            "buffers": self.tables(self._buffers),
            "signature_defs": self.tables([self._signature(graphs[0], names[0])]),
        }
        return self.finished(self.copied(self._model, **changes))

    def _reshape_code(self) -> int:
        return self.table("OperatorCode", deprecated_builtin_code=_RESHAPE, builtin_code=_RESHAPE)

    def _code(self, table: Table) -> int:
        """Write an operator's code into the field that the quantizer reads; old files use another one."""
        builtin = max(table["deprecated_builtin_code"], table["builtin_code"])
        return self.kept([table])[0] if builtin == table["builtin_code"] else self.copied(table, builtin_code=builtin)

    def _graph(self, graph: Table, weights: _Weights, names: list[str]) -> int:
        kept = [op for place, op in enumerate(graph["operators"]) if place not in weights.gone]
        unread = {i for place in weights.gone for i in graph["operators"][place].numbers("inputs")}
        unread -= {i for op in kept for i in op.numbers("inputs")}
        tensors = [
            self._unread(table, names[place])
            if place in unread
            else self._tensor(table, weights.values.get(place), names[place])
            for place, table in enumerate(graph["tensors"])
        ]
        operators = [self._operator(op, graph, tensors) for op in kept]
        return self.copied(graph, tensors=self.tables(tensors), operators=self.tables(operators))

    def _tensor(self, table: Table, values: Array | None, name: str) -> int:
        renamed = {} if text(table["name"]) == name else {"name": self.string(name)}
        if values is None:
            return self.copied(table, **renamed) if renamed else self.kept([table])[0]
        buffer = self._buffer(np.ascontiguousarray(values, "<f4").tobytes())
        return self.copied(table, type=_FLOAT32, buffer=buffer, quantization=None, **renamed)

    def _buffer(self, content: bytes) -> int:
        """Write a buffer and return its place."""
        self._buffers.append(self.table("Buffer", data=self.data(content)))
        return len(self._buffers) - 1

    def _operator(self, op: Table, graph: Table, tensors: list[int]) -> int:
        """Write an operator. EXPAND_DIMS and SQUEEZE become a RESHAPE, which the quantizer knows; its shape is a tensor
        at the end of `tensors`."""
        outputs = op.numbers("outputs")
        kind = kind_of(self._tables, op["opcode_index"])
        if kind == "RESHAPE" or kind not in FAMILIES or not FAMILIES[kind].alias or len(outputs) != 1:
            return self.kept([op])[0]
        shape = np.array(graph["tensors"][outputs[0]].numbers("shape"), np.int32)
        buffer = self._buffer(shape.tobytes())
        name = self.string(f"tinyfuse_shape_{buffer + 1}")
        tensors.append(self.table("Tensor", shape=self.vector([shape.size]), type=_INT32, buffer=buffer, name=name))
        inputs = self.vector([op.numbers("inputs")[0], len(tensors) - 1])
        reshape = len(self._tables.operator_codes)
        return self.table("Operator", opcode_index=reshape, inputs=inputs, outputs=self.vector(outputs))

    def _unread(self, table: Table, name: str) -> int:
        """Write a tensor without readers as one byte, because interpreters return no tensor without data."""
        return self.copied(
            table, type=_INT8, shape=self.vector([1]), shape_signature=None, buffer=self._buffer(bytes(1)),
            quantization=None, name=self.string(name),
        )  # fmt: skip

    def _signature(self, graph: Table, names: list[str]) -> int:
        ends = {}
        for end in ("inputs", "outputs"):
            maps = [
                self.table("TensorMap", name=self.string(names[i]), tensor_index=i)
                for i in dict.fromkeys(graph.numbers(end))
            ]
            ends[end] = self.tables(maps)
        return self.table("SignatureDef", signature_key=self.string(SIGNATURE), subgraph_index=0, **ends)


def _names(graphs: list[list[Table]]) -> list[list[str]]:
    """Return the names of each graph's tensors, unique in the file: a number is appended if several share a name."""
    names = [[text(table["name"]) for table in tensors] for tensors in graphs]
    counts, numbers = Counter(name for each in names for name in each), count()

    def own(name: str) -> str:
        if name and counts[name] == 1:
            return name
        return next(new for n in numbers if (new := f"{name}_{n}") not in counts)

    return [[own(name) for name in each] for each in names]
