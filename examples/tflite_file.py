"""Writes .tflite files without TensorFlow: tensors and operators, one after the other, into a flatbuffer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import flatbuffers
import numpy as np
import tflite

#: the first version of each operator in TensorFlow Lite's schema that takes int8
VERSIONS = {
    "ADD": 2, "AVERAGE_POOL_2D": 2, "CONV_2D": 3, "DEPTHWISE_CONV_2D": 3, "FULLY_CONNECTED": 4, "MEAN": 2, "RESHAPE": 1,
    "SOFTMAX": 2,
}  # fmt: skip


class TfliteFile:
    """One graph. `tensor` and `operator` add to it, `finish` returns the file."""

    def __init__(self) -> None:
        self._builder = flatbuffers.Builder(1 << 16)
        self._shapes: list[tuple[int, ...]] = []
        self._tensors: list[int] = []
        self._buffers = [self._table("Buffer")]  # the first one is empty, for activations
        self._codes: list[str] = []
        self._operators: list[int] = []

    def shape(self, tensor: int) -> tuple[int, ...]:
        """Return the shape of the tensor of this index."""
        return self._shapes[tensor]

    def tensor(
        self, name: str, shape: Sequence[int], scales: Sequence[float] | np.ndarray, zero_point: int = 0, axis: int = 0,
        data: np.ndarray | None = None,
    ) -> int:  # fmt: skip
        """Add a tensor and return its index: a constant of int8, int32 or float32 where `data` is given, else an
        activation.

        `scales` has one value, or one per index of dimension `axis`, or none where the tensor isn't quantized: then an
        activation is float32.
        """
        numpy_vector = self._builder.CreateNumpyVector
        dtype = data.dtype.name if data is not None else "int8" if len(scales) else "float32"
        kind = getattr(tflite.TensorType, dtype.upper())
        buffer = 0
        if data is not None:
            self._buffers.append(self._table("Buffer", data=self._aligned(data.tobytes())))
            buffer = len(self._buffers) - 1
        quantization = None
        if len(scales):
            quantization = self._table(
                "QuantizationParameters", scale=numpy_vector(np.array(scales, np.float32)),
                zero_point=numpy_vector(np.full(len(scales), zero_point, np.int64)), quantized_dimension=axis,
            )  # fmt: skip
        written = self._builder.CreateString(name)
        self._tensors.append(
            self._table(
                "Tensor",
                shape=numpy_vector(np.array(shape, np.int32)),
                type=kind,
                buffer=buffer,
                name=written,
                quantization=quantization,
            )
        )
        self._shapes.append(tuple(shape))
        return len(self._tensors) - 1

    def operator(self, kind: str, table: str, inputs: Sequence[int], output: int, **options: Any) -> None:
        """Add an operator. `options` are fields of its option table: numbers, or sequences of int32."""
        if kind not in self._codes:
            self._codes.append(kind)
        numpy_vector = self._builder.CreateNumpyVector
        fields = {
            name: numpy_vector(np.array(value, np.int32)) if isinstance(value, tuple) else value
            for name, value in options.items()
        }
        written = self._table(table, **fields)
        self._operators.append(
            self._table(
                "Operator",
                opcode_index=self._codes.index(kind),
                inputs=numpy_vector(np.array(inputs, np.int32)),
                outputs=numpy_vector(np.array([output], np.int32)),
                builtin_options=written,
                builtin_options_type=getattr(tflite.BuiltinOptions, table),
            )
        )

    def finish(self, source: int, result: int) -> bytes:
        """Return the file, with one input and one output of the graph."""
        numpy_vector = self._builder.CreateNumpyVector
        numbers = [(getattr(tflite.BuiltinOperator, kind), VERSIONS[kind]) for kind in self._codes]
        codes = [
            self._table("OperatorCode", deprecated_builtin_code=number, builtin_code=number, version=version)
            for number, version in numbers
        ]
        graph = self._table(
            "SubGraph", tensors=self._offsets(self._tensors), inputs=numpy_vector(np.array([source], np.int32)),
            outputs=numpy_vector(np.array([result], np.int32)), operators=self._offsets(self._operators),
        )  # fmt: skip
        model = self._table(
            "Model", version=3, operator_codes=self._offsets(codes), subgraphs=self._offsets([graph]),
            buffers=self._offsets(self._buffers),
        )  # fmt: skip
        self._builder.Finish(model, b"TFL3")
        return bytes(self._builder.Output())

    def _aligned(self, data: bytes) -> int:
        """A vector of bytes at a multiple of 16, as interpreters that read it in place want it."""
        self._builder.StartVector(1, len(data), 16)
        self._builder.head -= len(data)
        self._builder.Bytes[self._builder.head : self._builder.head + len(data)] = data
        return int(self._builder.EndVector())

    def _offsets(self, offsets: Sequence[int]) -> int:
        self._builder.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            self._builder.PrependUOffsetTRelative(offset)
        return int(self._builder.EndVector())

    def _table(self, table: str, /, **fields: Any) -> int:
        """A table of the schema; `fields` are its fields' names with underscores. None stays absent."""
        getattr(tflite, f"{table}Start")(self._builder)
        for field, value in fields.items():
            if value is not None:
                words = field.title().replace("_", "")
                getattr(tflite, f"{table}Add{words}")(self._builder, value)
        return int(getattr(tflite, f"{table}End")(self._builder))
