"""Random changes to the content of a .tflite file: operators' inputs, options and kinds, shapes, types, quantization
arrays, buffers, names. The file stays a sound flatbuffer, so that changes reach the rules and the planner;
tflite_mutations.py damages the bytes.

Needs the schema's object API, which the PyPI package ai-edge-litert brings.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import flatbuffers
import numpy as np

#: dimensions and indexes that mean trouble
_DIMENSIONS = (0, 1, -1, 2, 3, 7, 255, 1 << 15, 1 << 16, 1 << 24, (1 << 31) - 1, -(1 << 31))
_SCALES = (0.0, -1.0, 1e-45, 1e-30, 1e-7, 0.003, 1.0, 1e7, 1e30, 3e38, float("inf"), float("nan"))
_ZERO_POINTS = (0, 1, -1, -128, 127, 128, -129, 255, 32767, 1 << 31, -(1 << 63), (1 << 63) - 1)
_NUMBERS = (0, 1, -1, 2, 3, 6, 127, 255, 1 << 15, (1 << 31) - 1, -(1 << 31))
_FLOATS = (0.0, 1.0, -1.0, 1e-30, 0.5, 1e30, float("inf"), float("nan"))
_NAMES = ("", "a", "int", "*/ int main(void) {", "\n#error x\n", "\\", "??/", "a" * 300, "\x00", "é", "%s%n", "../../x",
          "\u202e", '"', "bytes", "net_run", "\x1b[31m")  # fmt: skip


def structural_mutants(data: bytes, seed: int) -> Iterator[bytes]:
    """Endless variants of a sound file, each with one to three changes; same seed, same variants."""
    from ai_edge_litert import schema_py_generated as schema

    chance = random.Random(seed)
    while True:
        model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(bytearray(data)))
        mutator = _Mutator(model, chance)
        for _ in range(chance.choice((1, 1, 1, 2, 3))):
            if model.subgraphs[0].operators:
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
            self.dtype, self.quantization, self.quantization, self.buffer, self.ends, self.name,
        ]  # fmt: skip
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
        code.customCode = self.chance.choice((None, b"ethos-u", "x" * 999, *_NAMES))
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
        self.tensor().name = self.chance.choice(_NAMES)
