"""Builds .tflite files in code, without TensorFlow, through PyPI's `tflite` and `flatbuffers`.

model = ModelBuilder()
x = model.tensor("x", (1, 4, 4, 2), scale=0.5, zero_point=3)
y = model.tensor("y", (1, 4, 4, 2), scale=0.5, zero_point=-128)
model.op("RELU", [x], [y])
data = model.build([x], [y])
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import flatbuffers
import numpy as np
import tflite

#: kinds whose option table isn't called after them
_SHARED_TABLES = {
    "AVERAGE_POOL_2D": "Pool2DOptions",
    "MAX_POOL_2D": "Pool2DOptions",
    "L2_POOL_2D": "Pool2DOptions",
    "L2_NORMALIZATION": "L2NormOptions",
    "MEAN": "ReducerOptions",
    "SUM": "ReducerOptions",
    "REDUCE_MAX": "ReducerOptions",
    "REDUCE_MIN": "ReducerOptions",
    "REDUCE_PROD": "ReducerOptions",
    "REDUCE_ANY": "ReducerOptions",
    "REDUCE_ALL": "ReducerOptions",
    "MAXIMUM": "MaximumMinimumOptions",
    "MINIMUM": "MaximumMinimumOptions",
}

#: enumerations of option fields; a name given to any other field is a TensorType
_ENUMS = {
    "padding": tflite.Padding,
    "fused_activation_function": tflite.ActivationFunctionType,
    "weights_format": tflite.FullyConnectedOptionsWeightsFormat,
    "mode": tflite.MirrorPadMode,
    "kernel_type": tflite.LSTMKernelType,
}

#: more than any table of the schema has
_MOST_SLOTS = 16

#: operator versions of the schema from which on int8 is allowed; 1 for every other kind
_VERSIONS = {
    "CONV_2D": 3, "DEPTHWISE_CONV_2D": 3, "FULLY_CONNECTED": 4, "AVERAGE_POOL_2D": 2,
    "MAX_POOL_2D": 2, "ADD": 2, "MUL": 2, "SUB": 2, "RELU": 2, "RELU6": 2, "SOFTMAX": 2,
    "LOGISTIC": 2, "TANH": 2, "PAD": 2, "PADV2": 2, "MEAN": 2, "CONCATENATION": 2, "DEQUANTIZE": 2,
    "TRANSPOSE": 2, "STRIDED_SLICE": 2, "MAXIMUM": 2, "MINIMUM": 2, "SPLIT": 2,
    "RESIZE_NEAREST_NEIGHBOR": 2, "LEAKY_RELU": 2, "PACK": 2,
}  # fmt: skip


def options_table(kind: str) -> str | None:
    """The schema's option table of an operator kind, None where it has none."""
    tables = {name.lower(): name for name in vars(tflite.BuiltinOptions)}
    return _SHARED_TABLES.get(kind) or tables.get(kind.replace("_", "").lower() + "options")


def camel_case(name: str) -> str:
    """fused_activation_function -> FusedActivationFunction, as flatc names accessors."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def packed_int4(values: np.ndarray) -> bytes:
    """Two values of -8 to 7 a byte, the first in the low nibble."""
    flat = values.reshape(-1).view(np.uint8) & 15
    flat = np.pad(flat, (0, flat.size % 2))
    return (flat[::2] | flat[1::2] << 4).astype(np.uint8).tobytes()


@dataclass(frozen=True)
class Outside:
    """Data of a constant that lies in the file, but after the flatbuffer."""

    offset: int
    size: int


@dataclass(frozen=True)
class _Tensor:
    name: str | bytes
    shape: tuple[int, ...]
    dtype: str
    scale: Sequence[float] | None
    zero_point: Sequence[int] | None
    axis: int
    data: bytes | Outside | None
    shape_signature: tuple[int, ...] | None
    fields: dict[str, Any]


@dataclass(frozen=True)
class _Op:
    code: tuple[str, bytes | None, int]  # kind, custom code, version
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: dict[str, Any] | None
    custom_options: bytes | None = None


class ModelBuilder:
    """One subgraph, collected by `tensor` and `op`; `build` writes it, and others after it."""

    def __init__(self) -> None:
        self._tensors: list[_Tensor] = []
        self._ops: list[_Op] = []

    def tensor(
        self,
        name: str | bytes,
        shape: Sequence[int],
        dtype: str = "int8",
        scale: float | Sequence[float] | None = None,
        zero_point: int | Sequence[int] | None = None,
        axis: int = 0,
        data: np.ndarray | bytes | Outside | None = None,
        shape_signature: Sequence[int] | None = None,
        **fields: Any,
    ) -> int:
        """Adds a tensor and returns its index.

        `dtype` is a TensorType of the schema in lower case. Scale and zero point are scalars, or
        sequences of one value an index of dimension `axis`; a scale alone gets zero points 0.
        `data` makes a constant: an array of that dtype (of int4, int8) and shape, or raw bytes, unchecked.
        `fields` are others of the schema's Tensor (is_variable, ...): numbers, or functions that
        write a table and return its offset. They win over fields that follow from the rest.
        """
        if isinstance(data, np.ndarray):
            stored = "int8" if dtype == "int4" else dtype
            assert data.shape == tuple(shape) and data.dtype == stored, (name, data.shape, data.dtype)
            data = packed_int4(data) if dtype == "int4" else data.tobytes()
        scales = None if scale is None else [float(value) for value in np.atleast_1d(scale)]
        if zero_point is not None:
            zero_point = [int(value) for value in np.atleast_1d(zero_point)]
        elif scales is not None:
            zero_point = [0] * len(scales)
        signature = None if shape_signature is None else tuple(shape_signature)
        self._tensors.append(_Tensor(name, tuple(shape), dtype, scales, zero_point, axis, data, signature, fields))
        return len(self._tensors) - 1

    def op(
        self,
        kind: str,
        inputs: Sequence[int],
        outputs: Sequence[int],
        *,
        table: bool = True,
        custom_code: str | bytes | None = None,
        version: int | None = None,
        custom_options: bytes | None = None,
        **options: Any,
    ) -> None:
        """Adds an operator of a BuiltinOperator name; index -1 is an absent optional input.

        Options are the schema's fields: numbers, names of enumerators, or sequences of integers.
        The option table is written where the kind has one, even if empty; not if `table` is False.
        """
        if isinstance(custom_code, str):
            custom_code = custom_code.encode()
        code = (kind, custom_code, version or _VERSIONS.get(kind, 1))
        self._ops.append(_Op(code, tuple(inputs), tuple(outputs), options if table else None, custom_options))

    def build(
        self,
        inputs: Sequence[int],
        outputs: Sequence[int],
        subgraphs: int = 1,
        force_defaults: bool = False,
        called: Sequence[ModelBuilder] = (),
        deprecated_codes: bool = True,
        metadata: Mapping[str, bytes] | None = None,
    ) -> bytes:
        """The file's bytes, with the graph inputs and outputs given as tensor indexes.

        The one graph is listed `subgraphs` times; after it come the graphs of `called`, which have no
        inputs and outputs. `metadata` is written by names into buffers after all others. With `force_defaults`, fields that have their default value are stored all
        the same. Without `deprecated_codes` operators are named by the new field alone.
        """
        builder = flatbuffers.Builder(1024)
        builder.ForceDefaults(force_defaults)
        models = (self, *called)
        codes = list(dict.fromkeys(op.code for model in models for op in model._ops))
        buffers = [_write_buffer(builder, None)]
        first, *others = (
            model._write(builder, codes, buffers, *((inputs, outputs) if model is self else ((), ())))
            for model in models
        )
        entries = []
        for name, content in (metadata or {}).items():
            buffers.append(_write_buffer(builder, content))
            named = builder.CreateString(name)
            entries.append(write_table(builder, "Metadata", name=named, buffer=len(buffers) - 1))
        model = write_table(
            builder,
            "Model",
            version=3,
            operator_codes=write_offsets(builder, [_write_code(builder, *code, deprecated_codes) for code in codes]),
            subgraphs=write_offsets(builder, [first] * subgraphs + others),
            description=builder.CreateString("tests/support/tflite_builder.py"),
            buffers=write_offsets(builder, buffers),
            metadata=write_offsets(builder, entries) if entries else None,
        )
        builder.Finish(model, b"TFL3")
        return bytes(builder.Output())

    def _write(
        self,
        builder: flatbuffers.Builder,
        codes: list[tuple],
        buffers: list[int],
        inputs: Sequence[int],
        outputs: Sequence[int],
    ) -> int:
        """Writes the subgraph, and adds its constants to `buffers`."""
        tensors = []
        for tensor in self._tensors:
            number = 0
            if tensor.data is not None:
                number = len(buffers)
                buffers.append(_write_buffer(builder, tensor.data))
            tensors.append(_write_tensor(builder, tensor, number))
        operators = [_write_op(builder, op, codes.index(op.code)) for op in self._ops]
        return write_table(
            builder,
            "SubGraph",
            tensors=write_offsets(builder, tensors),
            inputs=write_numbers(builder, inputs),
            outputs=write_numbers(builder, outputs),
            operators=write_offsets(builder, operators),
            name=builder.CreateString("main"),
        )


def write_table(builder: flatbuffers.Builder, table: str, /, **fields: Any) -> int:
    """Writes one table; fields that are None stay absent. Offsets must be written before."""
    builder.StartObject(_MOST_SLOTS)
    for name, value in fields.items():
        if name == "external_buffer":  # PyPI's `tflite` is older than this field
            builder.PrependUint32Slot(10, value, 0)
        elif value is not None:
            getattr(tflite, f"{table}Add{camel_case(name)}")(builder, value)
    return getattr(tflite, f"{table}End")(builder)


def write_numbers(builder: flatbuffers.Builder, values: Sequence[int], dtype: Any = np.int32) -> int:
    return builder.CreateNumpyVector(np.array(values, dtype))


def write_offsets(builder: flatbuffers.Builder, offsets: Sequence[int]) -> int:
    builder.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        builder.PrependUOffsetTRelative(offset)
    return builder.EndVector()


def _write_buffer(builder: flatbuffers.Builder, data: bytes | Outside | None) -> int:
    if data is None:
        return write_table(builder, "Buffer")
    if isinstance(data, Outside):
        return write_table(builder, "Buffer", offset=data.offset, size=data.size)
    # CreateByteVector knows no alignment; TFLM reads constants where they lie
    builder.StartVector(1, len(data), 16)
    builder.head -= len(data)
    builder.Bytes[builder.head : builder.head + len(data)] = data
    return write_table(builder, "Buffer", data=builder.EndVector())


def _write_tensor(builder: flatbuffers.Builder, tensor: _Tensor, buffer: int) -> int:
    quantization = None
    if tensor.scale is not None or tensor.zero_point is not None:
        scale = None if tensor.scale is None else write_numbers(builder, tensor.scale, np.float32)
        zero = None if tensor.zero_point is None else write_numbers(builder, tensor.zero_point, np.int64)
        quantization = write_table(
            builder,
            "QuantizationParameters",
            scale=scale,
            zero_point=zero,
            quantized_dimension=tensor.axis,
        )
    signature = tensor.shape_signature
    fields = {
        "shape": write_numbers(builder, tensor.shape),
        "type": getattr(tflite.TensorType, tensor.dtype.upper()),
        "buffer": buffer,
        "name": builder.CreateString(tensor.name),
        "quantization": quantization,
        "is_variable": False,
        "shape_signature": None if signature is None else write_numbers(builder, signature),
        "has_rank": True,
    }
    for name, value in tensor.fields.items():
        fields[name] = value(builder) if isinstance(value, Callable) else value
    return write_table(builder, "Tensor", **fields)


def _write_code(
    builder: flatbuffers.Builder, kind: str, custom_code: bytes | None, version: int, deprecated: bool
) -> int:
    number = getattr(tflite.BuiltinOperator, kind)
    # files keep the old 8-bit field filled: 127 sends the reader to the new one
    old = min(number, tflite.BuiltinOperator.PLACEHOLDER_FOR_GREATER_OP_CODES)
    return write_table(
        builder,
        "OperatorCode",
        deprecated_builtin_code=old if deprecated else None,
        custom_code=None if custom_code is None else builder.CreateString(custom_code),
        version=version,
        builtin_code=number,
    )


def _write_op(builder: flatbuffers.Builder, op: _Op, code: int) -> int:
    table = options_table(op.code[0])
    options = None
    if table is not None and op.options is not None:
        values = {name: _option(builder, name, value) for name, value in op.options.items()}
        options = write_table(builder, table, **values)
    else:
        assert not op.options, f"{op.code[0]} has no options, got {op.options}"
    return write_table(
        builder,
        "Operator",
        opcode_index=code,
        inputs=write_numbers(builder, op.inputs),
        outputs=write_numbers(builder, op.outputs),
        builtin_options_type=None if options is None else getattr(tflite.BuiltinOptions, table),
        builtin_options=options,
        custom_options=None if op.custom_options is None else builder.CreateByteVector(op.custom_options),
    )


def _option(builder: flatbuffers.Builder, name: str, value: Any) -> int | float:
    if name in ("shared_name", "container"):
        return builder.CreateString(value)
    if isinstance(value, str):
        return getattr(_ENUMS.get(name, tflite.TensorType), value)
    if isinstance(value, (tuple, list, np.ndarray)):
        return write_numbers(builder, value)
    return value
