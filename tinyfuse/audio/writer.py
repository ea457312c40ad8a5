"""Writes small .tflite files of one graph, with the `tflite` and `flatbuffers` packages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import flatbuffers
import numpy as np
import tflite
from flatbuffers import flexbuffers

from tinyfuse.ir import Array

#: number of slots in the largest table that is written
_MOST_SLOTS = 16


@dataclass(frozen=True)
class _Tensor:
    name: str
    shape: tuple[int, ...]
    dtype: str
    quant: tuple[float, int] | None
    data: bytes | None


@dataclass(frozen=True)
class _Operator:
    """An operator to be written.

    code     (name in the schema, name of a custom operator)
    table    name of the options' table in the schema; None for a FlexBuffer map
    options  fields of that table or map
    """

    code: tuple[str, str | None]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    table: str | None
    options: dict[str, Any] = field(default_factory=dict)


class ModelWriter:
    """A graph, built by `tensor`, `constant`, `operator` and `custom` in the order of execution."""

    def __init__(self) -> None:
        self._tensors: list[_Tensor] = []
        self._operators: list[_Operator] = []

    def tensor(
        self, name: str, shape: Sequence[int], dtype: str, quant: tuple[float, int] | None = None,
        data: Array | None = None,
    ) -> int:  # fmt: skip
        """Adds a tensor and returns its index; `quant` is (scale, zero point)."""
        stored = None if data is None else np.ascontiguousarray(data, np.dtype(dtype).newbyteorder("<")).tobytes()
        self._tensors.append(_Tensor(name, tuple(shape), dtype, quant, stored))
        return len(self._tensors) - 1

    def constant(self, name: str, data: Array) -> int:
        """Adds a constant tensor with the shape and dtype of `data`, and returns its index."""
        return self.tensor(name, data.shape, str(data.dtype), data=data)

    def shape(self, tensor: int) -> tuple[int, ...]:
        """Shape of the tensor with this index."""
        return self._tensors[tensor].shape

    def operator(
        self, kind: str, inputs: Sequence[int], outputs: Sequence[int], table: str | None = None, **options: Any
    ) -> None:
        """Adds an operator of the schema; `table` names its options' table, whose fields are numbers or texts."""
        self._operators.append(_Operator((kind, None), tuple(inputs), tuple(outputs), table, options))

    def custom(self, code: str, inputs: Sequence[int], outputs: Sequence[int], **options: int | bool) -> None:
        """Adds a custom operator, whose options are a FlexBuffer map."""
        self._operators.append(_Operator(("CUSTOM", code), tuple(inputs), tuple(outputs), None, options))

    def file(self, inputs: Sequence[int], outputs: Sequence[int], description: str) -> bytes:
        """Content of the file; `inputs` and `outputs` are the indices of the graph's tensors."""
        builder = flatbuffers.Builder(4096)
        codes = list(dict.fromkeys(operator.code for operator in self._operators))
        buffers = [_table(builder, "Buffer")]
        tensors = [self._tensor(builder, tensor, buffers) for tensor in self._tensors]
        graph = _table(
            builder,
            "SubGraph",
            tensors=_offsets(builder, tensors),
            inputs=_numbers(builder, inputs, np.int32),
            outputs=_numbers(builder, outputs, np.int32),
            operators=_offsets(builder, [_operator(builder, o, codes.index(o.code)) for o in self._operators]),
            name=builder.CreateString("main"),
        )
        model = _table(
            builder,
            "Model",
            version=3,
            operator_codes=_offsets(builder, [_code(builder, *code) for code in codes]),
            subgraphs=_offsets(builder, [graph]),
            description=builder.CreateString(description),
            buffers=_offsets(builder, buffers),
        )
        builder.Finish(model, b"TFL3")
        return bytes(builder.Output())

    def _tensor(self, builder: flatbuffers.Builder, tensor: _Tensor, buffers: list[int]) -> int:
        """Writes a tensor; its data becomes another buffer."""
        number = 0
        if tensor.data is not None:
            number = len(buffers)
            # interpreters read constants in place, so they are aligned to 16, which CreateByteVector cannot do
            builder.StartVector(1, len(tensor.data), 16)
            builder.head -= len(tensor.data)
            builder.Bytes[builder.head : builder.head + len(tensor.data)] = tensor.data
            buffers.append(_table(builder, "Buffer", data=builder.EndVector()))
        quantization = None
        if tensor.quant is not None:
            scale, zero_point = tensor.quant
            quantization = _table(
                builder,
                "QuantizationParameters",
                scale=_numbers(builder, [scale], np.float32),
                zero_point=_numbers(builder, [zero_point], np.int64),
            )
        return _table(
            builder,
            "Tensor",
            shape=_numbers(builder, tensor.shape, np.int32),
            type=getattr(tflite.TensorType, tensor.dtype.upper()),
            buffer=number,
            name=builder.CreateString(tensor.name),
            quantization=quantization,
            has_rank=True,
        )


def _table(builder: flatbuffers.Builder, name: str, /, **fields: Any) -> int:
    """Writes a table without the fields that are None. Objects that it refers to must have been written before."""
    builder.StartObject(_MOST_SLOTS)
    for field_name, value in fields.items():
        if value is not None:
            camel = "".join(part[:1].upper() + part[1:] for part in field_name.split("_"))
            getattr(tflite, f"{name}Add{camel}")(builder, value)
    offset: int = getattr(tflite, f"{name}End")(builder)
    return offset


def _numbers(builder: flatbuffers.Builder, values: Sequence[float], dtype: Any) -> int:
    offset: int = builder.CreateNumpyVector(np.array(values, dtype))
    return offset


def _offsets(builder: flatbuffers.Builder, offsets: Sequence[int]) -> int:
    builder.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        builder.PrependUOffsetTRelative(offset)
    end: int = builder.EndVector()
    return end


def _code(builder: flatbuffers.Builder, kind: str, custom: str | None) -> int:
    number = getattr(tflite.BuiltinOperator, kind)
    old = min(number, tflite.BuiltinOperator.PLACEHOLDER_FOR_GREATER_OP_CODES)
    name = None if custom is None else builder.CreateString(custom)
    return _table(
        builder, "OperatorCode", deprecated_builtin_code=old, custom_code=name, version=1, builtin_code=number
    )


def _operator(builder: flatbuffers.Builder, operator: _Operator, code: int) -> int:
    options = written = None
    if operator.table is not None:
        values = {
            name: builder.CreateString(value) if isinstance(value, str) else value
            for name, value in operator.options.items()
        }
        options = _table(builder, operator.table, **values)
    elif operator.options:
        flex = flexbuffers.Builder()
        with flex.Map():
            for key, value in sorted(operator.options.items()):
                (flex.Bool if isinstance(value, bool) else flex.Int)(key, value)
        written = builder.CreateByteVector(bytes(flex.Finish()))
    return _table(
        builder,
        "Operator",
        opcode_index=code,
        inputs=_numbers(builder, operator.inputs, np.int32),
        outputs=_numbers(builder, operator.outputs, np.int32),
        builtin_options_type=None if options is None else getattr(tflite.BuiltinOptions, operator.table or ""),
        builtin_options=options,
        custom_options=written,
    )
