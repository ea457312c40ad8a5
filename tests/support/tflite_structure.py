"""Random changes to the content of a .tflite file: operators' inputs, options and kinds, cycles, calls of subgraphs,
shapes, types, quantization arrays, sparsity, buffers and their places, signatures, names. The file stays a sound
flatbuffer, so that changes reach the rules and the planner; tflite_mutations.py damages the bytes.

Needs the schema's object API, which the PyPI package ai-edge-litert brings.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import flatbuffers
import numpy as np
from flatbuffers import flexbuffers

#: dimensions and indexes that mean trouble
_DIMENSIONS = (0, 1, -1, 2, 3, 7, 255, 1 << 15, 1 << 16, 1 << 24, (1 << 31) - 1, -(1 << 31))
_SCALES = (0.0, -1.0, 1e-45, 1e-30, 1e-7, 0.003, 1.0, 1e7, 1e30, 3e38, float("inf"), float("nan"))
_ZERO_POINTS = (0, 1, -1, -128, 127, 128, -129, 255, 32767, 1 << 31, -(1 << 63), (1 << 63) - 1)
_NUMBERS = (0, 1, -1, 2, 3, 6, 127, 255, 1 << 15, (1 << 31) - 1, -(1 << 31))
_FLOATS = (0.0, 1.0, -1.0, 1e-30, 0.5, 1e30, float("inf"), float("nan"))
#: names that must not become code, paths, or control characters of a terminal
NAMES = (
    "", "a", "int", "*/ int main(void) {", "/*", "*/ /*", "// \\", "\n#error x\n", "\r\n#error x", "\\", "x\\\n", "??/", "??/\n",
    "a" * 300, "a" * 70_000, "\x00", "a\x00b", "é", "é" * 200, "%s%n", "../../x", "/etc/passwd", "C:\\x", "a/b/c", ".", "..", "~",
    "\u202e", "\u2028#error x", "\ufeff", '"', "'", '"); exit(1); ("', "`id`", "$(id)", "${x}", "{{ 7 * 7 }}", "{% raw %}", "{#",
    "<script>alert(1)</script>", "]]>", "-->", "&amp;", "bytes", "net_run", "NET_OK", "arena", "__FILE__", "defined", "main",
    "\x1b[31m", "\x07", "\x7f", "\x9b31m",
)  # fmt: skip
_LARGE = (0, 1, 2, 16, 1 << 20, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, (1 << 63) - 1, (1 << 64) - 1)
_OPTIONS = (0, 1, -1, 2, 3, 127, 255, 1 << 15, (1 << 31) - 1, 1 << 31, -(1 << 31), 1 << 40, -(1 << 63), (1 << 63) - 1)


def schema() -> Any:
    """Module of the schema's object API."""
    from ai_edge_litert import schema_py_generated

    return schema_py_generated


def structural_mutants(data: bytes, seed: int) -> Iterator[bytes]:
    """Endless variants of a sound file, each with one to three changes; same seed, same variants."""
    chance = random.Random(seed)
    while True:
        model = schema().ModelT.InitFromObj(schema().Model.GetRootAs(bytearray(data)))
        mutator = _Mutator(model, chance)
        for _ in range(chance.choice((1, 1, 1, 2, 3))):
            mutator.change()
        builder = flatbuffers.Builder(len(data) + 1024)
        try:
            builder.Finish(model.Pack(builder), b"TFL3")
        except Exception:  # a value that its field can't hold
            continue
        yield bytes(builder.Output())


class _Mutator:
    def __init__(self, model: Any, chance: random.Random):
        self.model, self.graph, self.chance = model, model.subgraphs[0], chance

    def change(self) -> None:
        kinds: list[Callable[[], None]] = [
            self.wires, self.wires, self.options, self.options, self.kind, self.operators, self.shape, self.shape,
            self.dtype, self.quantization, self.quantization, self.buffer, self.ends, self.name, self.cycle, self.calls,
            self.custom, self.custom, self.places, self.sparsity, self.signatures, self.rest,
        ]  # fmt: skip
        graphs = self.model.subgraphs
        self.graph = graphs[0] if self.chance.random() < 0.7 else self.chance.choice(graphs)
        if self.graph.operators and self.graph.tensors:
            self.chance.choice(kinds)()

    def tensor(self) -> Any:
        return self.chance.choice(self.graph.tensors)

    def op(self) -> Any:
        return self.chance.choice(self.graph.operators)

    def index(self) -> int:
        """Index of a tensor, most often one that exists."""
        count = len(self.graph.tensors)
        return self.chance.choice((*range(count), *range(count), -1, -2, count, 1 << 30))

    def numbers(self, values, fresh: Callable[[], Any]) -> list:
        """A vector with one number changed, dropped, doubled or added, or two exchanged."""
        values = [] if values is None else list(values)
        at = self.chance.randrange(len(values)) if values else 0
        kind = self.chance.randrange(6) if values else 3
        if kind < 2:
            values[at] = fresh()
        elif kind == 2:
            del values[at]
        elif kind == 3:
            values.insert(at, fresh())
        elif kind == 4:
            other = self.chance.randrange(len(values))
            values[at], values[other] = values[other], values[at]
        else:
            values = values[:at] if self.chance.random() < 0.5 else values * 2
        return values

    def wires(self) -> None:
        op = self.op()
        if self.chance.random() < 0.7:
            op.inputs = self.numbers(op.inputs, self.index)
        else:
            op.outputs = self.numbers(op.outputs, self.index)

    def ends(self) -> None:
        if self.chance.random() < 0.5:
            self.graph.inputs = self.numbers(self.graph.inputs, self.index)
        else:
            self.graph.outputs = self.numbers(self.graph.outputs, self.index)

    def operators(self) -> None:
        ops = self.graph.operators
        self.graph.operators = self.numbers(ops, lambda: self.chance.choice(ops))

    def kind(self) -> None:
        code = self.chance.choice(self.model.operatorCodes)
        number = self.chance.choice((self.chance.randrange(210), 32, 127))
        code.builtinCode, code.deprecatedBuiltinCode = number, min(number, 127)
        code.customCode = self.chance.choice((None, b"ethos-u", "x" * 999, *NAMES))
        code.version = self.chance.choice((1, 2, 99, -1))

    def options(self) -> None:
        op = self.op()
        table = op.builtinOptions
        fields = list(vars(table)) if table is not None else []
        if not fields or self.chance.random() < 0.15:
            other = self.op()
            op.builtinOptions, op.builtinOptionsType = other.builtinOptions, other.builtinOptionsType
            return
        name = self.chance.choice(fields)
        value = getattr(table, name)
        if isinstance(value, float):
            setattr(table, name, self.chance.choice(_FLOATS))
        elif isinstance(value, bool):
            setattr(table, name, not value)
        elif isinstance(value, int):
            setattr(table, name, self.chance.choice((*_NUMBERS, value + 1, value - 1)))
        else:
            setattr(table, name, self.numbers(value, lambda: self.chance.choice(_NUMBERS)))

    def shape(self) -> None:
        tensor = self.tensor()
        tensor.shape = self.numbers(tensor.shape, lambda: self.chance.choice(_DIMENSIONS))

    def dtype(self) -> None:
        self.tensor().type = self.chance.randrange(20)

    def quantization(self) -> None:
        tensor = self.tensor()
        quant = tensor.quantization
        if quant is None or self.chance.random() < 0.1:
            tensor.quantization = self.tensor().quantization
            return
        field = self.chance.randrange(4)
        if field < 2:
            quant.scale = np.array(self.numbers(quant.scale, lambda: self.chance.choice(_SCALES)), np.float32)
        elif field == 2:
            values = self.numbers(quant.zeroPoint, lambda: self.chance.choice(_ZERO_POINTS))
            quant.zeroPoint = np.array(values, np.int64)
        else:
            quant.quantizedDimension = self.chance.choice((0, 1, 2, 3, 4, -1, 1 << 30))

    def buffer(self) -> None:
        """Another buffer or other data: a constant becomes an activation, or the reverse."""
        tensor = self.tensor()
        kind = self.chance.randrange(4)
        if kind == 0:
            tensor.buffer = self.chance.randrange(len(self.model.buffers) + 1)
            return
        buffer = self.model.buffers[tensor.buffer % len(self.model.buffers)]
        data = [] if buffer.data is None else list(buffer.data)
        if kind == 1:
            buffer.data = data[: len(data) // 2] or None
        elif kind == 2:
            data = data or [0] * self.chance.choice((1, 4, 16, 96))
            edge = self.chance.choice((0, 1, 127, 128, 255))
            buffer.data = [edge if self.chance.random() < 0.3 else value for value in data]
        else:
            buffer.data = [self.chance.randrange(256) for _ in data] or None

    def name(self) -> None:
        if self.chance.random() < 0.2:
            self.graph.name = self.chance.choice(NAMES)
        else:
            self.tensor().name = self.chance.choice(NAMES)

    def cycle(self) -> None:
        """Operators that wait for each other: an input becomes an output of the same or of a later operator."""
        places = range(len(self.graph.operators))
        first, last = sorted((self.chance.choice(places), self.chance.choice(places)))
        made, reader = self.graph.operators[last].outputs, self.graph.operators[first]
        if made is not None and len(made) and reader.inputs is not None and len(reader.inputs):
            inputs = list(reader.inputs)
            inputs[self.chance.randrange(len(inputs))] = int(made[self.chance.randrange(len(made))])
            reader.inputs = inputs

    def calls(self) -> None:
        """Subgraphs that are called: others, themselves, none."""
        graphs = self.model.subgraphs
        fields = [
            (op.builtinOptions, name)
            for graph in graphs
            for op in graph.operators or ()
            for name in (vars(op.builtinOptions) if op.builtinOptions is not None else ())
            if name.lower().endswith("subgraphindex")
        ]
        if fields:
            table, name = self.chance.choice(fields)
            setattr(table, name, self.chance.choice((*range(len(graphs)), len(graphs), -1, (1 << 31) - 1)))
        if not fields or self.chance.random() < 0.2:
            self.model.subgraphs = self.numbers(graphs, lambda: self.chance.choice(graphs)) or graphs

    def custom(self) -> None:
        """Numbers and names of a custom operator's options."""
        found = [op for graph in self.model.subgraphs for op in graph.operators or () if op.customOptions is not None]
        if not found:
            return self.options()
        op = self.chance.choice(found)
        try:
            values = flexbuffers.Loads(bytes(bytearray(op.customOptions)))
        except Exception:
            values = None
        if not isinstance(values, dict) or not values or self.chance.random() < 0.1:
            op.customOptions = self.numbers(op.customOptions, lambda: self.chance.randrange(256))
            return None
        key = self.chance.choice(list(values))
        kind = self.chance.randrange(8)
        if kind == 0:
            del values[key]
        elif kind == 1:
            values[self.chance.choice(NAMES)] = values.pop(key)
        elif kind == 2:
            values[key] = self.chance.choice((None, "x", [1, 2], {"a": 1}, *_FLOATS))
        else:
            values[key] = self.chance.choice(_OPTIONS)
        try:
            op.customOptions = list(flexbuffers.Dumps(values))
        except Exception:  # a key that no map can have
            op.customOptions = None
        return None

    def places(self) -> None:
        """Data that lies outside of the tables, or nowhere."""
        chance = self.chance
        if chance.random() < 0.5:
            buffer = chance.choice(self.model.buffers)
            buffer.offset, buffer.size = chance.choice(_LARGE), chance.choice(_LARGE)
        else:
            op = self.op()
            op.largeCustomOptionsOffset, op.largeCustomOptionsSize = chance.choice(_LARGE), chance.choice(_LARGE)

    def sparsity(self) -> None:
        chance, tensor = self.chance, self.tensor()
        sparse = schema().SparsityParametersT()
        rank = len(tensor.shape) if tensor.shape is not None else 0
        sparse.traversalOrder = self.numbers(range(rank), lambda: chance.choice(_DIMENSIONS))
        sparse.blockMap = self.numbers([], lambda: chance.choice(_DIMENSIONS))
        sparse.dimMetadata = []
        for _ in range(chance.choice((0, 1, rank, rank + 1))):
            dimension = schema().DimensionMetadataT()
            dimension.format, dimension.denseSize = chance.choice((0, 1, 2)), chance.choice(_DIMENSIONS)
            sparse.dimMetadata.append(dimension)
        tensor.sparsity = chance.choice((sparse, sparse, None))

    def signatures(self) -> None:
        """Signatures with other names, tensors and subgraphs."""
        chance = self.chance
        signature = schema().SignatureDefT()
        signature.signatureKey = chance.choice(NAMES)
        signature.subgraphIndex = chance.choice((0, 1, 1 << 30, (1 << 32) - 1))
        sides = []
        for _ in range(2):
            side = []
            for _ in range(chance.choice((0, 1, 1, 3))):
                entry = schema().TensorMapT()
                entry.name, entry.tensorIndex = chance.choice((None, *NAMES)), max(0, self.index())
                side.append(entry)
            sides.append(side)
        signature.inputs, signature.outputs = sides
        self.model.signatureDefs = [*(self.model.signatureDefs or []), signature]

    def rest(self) -> None:
        """What files hardly ever use."""
        chance, tensor, op = self.chance, self.tensor(), self.op()
        kind = chance.randrange(9)
        if kind == 0:
            tensor.isVariable = not tensor.isVariable
        elif kind == 1:
            tensor.shapeSignature = self.numbers(tensor.shape, lambda: chance.choice(_DIMENSIONS))
        elif kind == 2:
            tensor.hasRank, tensor.shape = not tensor.hasRank, chance.choice((tensor.shape, None, []))
        elif kind == 3:
            tensor.externalBuffer = chance.choice((0, 1, 1 << 30))
        elif kind == 4:
            op.opcodeIndex = chance.choice((0, 1, len(self.model.operatorCodes), (1 << 32) - 1))
        elif kind == 5:
            op.intermediates = self.numbers(op.intermediates, self.index)
        elif kind == 6:
            op.mutatingVariableInputs = [chance.random() < 0.5 for _ in range(chance.choice((0, 1, 5)))]
        elif kind == 7:
            self.model.description = chance.choice(NAMES)
            self.model.version = chance.choice((0, 1, 2, 3, (1 << 32) - 1))
        else:
            entry = schema().MetadataT()
            entry.name, entry.buffer = chance.choice(NAMES), chance.choice((0, 1, 1 << 30))
            self.model.metadata = [*(self.model.metadata or []), entry]
