"""Networks of a search space as int8 .tflite bytes, written without TensorFlow.

What a network costs follows from its shapes, so the weights are random numbers; a real search would train each network,
or take its weights from a shared one, and convert it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import flatbuffers
import numpy as np
import tflite

SAME, RELU6, NONE = tflite.Padding.SAME, tflite.ActivationFunctionType.RELU6, tflite.ActivationFunctionType.NONE


@dataclass(frozen=True)
class Architecture:
    """A MobileNet for images of `size` x `size` grey pixels: a convolution with stride 2, depthwise-separable blocks
    of `filters`, of which each second one has stride 2, the mean of all pixels, and a layer of `classes`."""

    size: int
    filters: tuple[int, ...]
    kernel: int
    classes: int = 10

    def __str__(self) -> str:
        return f"{self.size}x{self.size}, {self.kernel}x{self.kernel}, {'-'.join(map(str, self.filters))}"


def search_space() -> Iterator[Architecture]:
    """All that is searched."""
    for size, width, depth, kernel in product((32, 48), (8, 16), (3, 5), (3, 5)):
        yield Architecture(size, tuple(width * 2 ** ((block + 1) // 2) for block in range(depth)), kernel)


def tflite_bytes(architecture: Architecture, seed: int = 0) -> bytes:
    """The network, a function of its arguments alone."""
    network = _Network(seed)
    x = image = network.activation((1, architecture.size, architecture.size, 1))
    x = network.convolution("CONV_2D", x, architecture.filters[0], 3, 2)
    for block, filters in enumerate(architecture.filters[1:]):
        x = network.convolution("DEPTHWISE_CONV_2D", x, network.shape(x)[3], architecture.kernel, 1 + block % 2)
        x = network.convolution("CONV_2D", x, filters, 1, 1)
    x = network.mean(x)
    return network.file(image, network.dense(x, architecture.classes))


class _Network:
    """Tensors and operators, written into a flatbuffer one after the other."""

    def __init__(self, seed: int):
        self._random = np.random.default_rng(seed)
        self._builder = flatbuffers.Builder(1 << 16)
        self._shapes: list[tuple[int, ...]] = []
        self._tensors: list[int] = []
        self._buffers = [self._table("Buffer")]  # the first one is empty, for activations
        self._codes: list[str] = []
        self._operators: list[int] = []

    def shape(self, tensor: int) -> tuple[int, ...]:
        return self._shapes[tensor]

    def activation(self, shape: tuple[int, ...]) -> int:
        """An int8 tensor that the network computes; real value = 0.05 * (stored + 128)."""
        return self._tensor(shape, tflite.TensorType.INT8, [0.05], [-128], 0)

    def convolution(self, kind: str, x: int, filters: int, kernel: int, stride: int) -> int:
        """With padding, so that stride 1 keeps the size, and RELU6."""
        _, height, width, channels = self._shapes[x]
        y = self.activation((1, -(-height // stride), -(-width // stride), filters))
        depthwise = kind == "DEPTHWISE_CONV_2D"
        shape = (1, kernel, kernel, filters) if depthwise else (filters, kernel, kernel, channels)
        options = {"depth_multiplier": 1} if depthwise else {}
        self._layer(
            kind, "DepthwiseConv2DOptions" if depthwise else "Conv2DOptions", x, shape, 3 if depthwise else 0, y,
            padding=SAME, stride_h=stride, stride_w=stride, fused_activation_function=RELU6, dilation_h_factor=1,
            dilation_w_factor=1, **options,
        )  # fmt: skip
        return y

    def dense(self, x: int, units: int) -> int:
        y = self.activation((1, units))
        self._layer(
            "FULLY_CONNECTED", "FullyConnectedOptions", x, (units, self._shapes[x][1]), 0, y,
            fused_activation_function=NONE,
        )  # fmt: skip
        return y

    def mean(self, x: int) -> int:
        """Over rows and columns."""
        y = self.activation((1, self._shapes[x][3]))
        axes = self._constant(np.array([1, 2], np.int32), [], 0)
        self._operator("MEAN", "ReducerOptions", [x, axes], y, keep_dims=False)
        return y

    def _layer(self, kind: str, table: str, x: int, shape: tuple[int, ...], axis: int, y: int, **options: int) -> None:
        """A layer with random weights, one scale a filter, and no bias to speak of."""
        filters = shape[axis]
        weights = self._random.integers(-127, 128, shape).astype(np.int8)
        scales = self._random.uniform(0.001, 0.01, filters if kind != "FULLY_CONNECTED" else 1)
        inputs = [
            x,
            self._constant(weights, scales, axis),
            self._constant(np.zeros(filters, np.int32), scales * np.float32(0.05), 0),
        ]
        self._operator(kind, table, inputs, y, **options)

    def _constant(self, data: np.ndarray, scales: Sequence[float] | np.ndarray, axis: int) -> int:
        kind = tflite.TensorType.INT8 if data.dtype == np.int8 else tflite.TensorType.INT32
        self._buffers.append(self._table("Buffer", data=self._builder.CreateByteVector(data.tobytes())))
        return self._tensor(data.shape, kind, scales, [0] * len(scales), axis, len(self._buffers) - 1)

    def _tensor(
        self, shape: tuple[int, ...], kind: int, scales: Sequence[float] | np.ndarray, zero_points: list[int],
        axis: int, buffer: int = 0,
    ) -> int:  # fmt: skip
        numpy_vector = self._builder.CreateNumpyVector
        quantization = self._table(
            "QuantizationParameters", scale=numpy_vector(np.array(scales, np.float32)),
            zero_point=numpy_vector(np.array(zero_points, np.int64)), quantized_dimension=axis,
        )  # fmt: skip
        name = self._builder.CreateString(f"tensor_{len(self._tensors)}")
        tensor = self._table(
            "Tensor", shape=numpy_vector(np.array(shape, np.int32)), type=kind, buffer=buffer, name=name,
            quantization=quantization if len(scales) else None,
        )  # fmt: skip
        self._tensors.append(tensor)
        self._shapes.append(shape)
        return len(self._tensors) - 1

    def _operator(self, kind: str, table: str, inputs: list[int], output: int, **options: int) -> None:
        if kind not in self._codes:
            self._codes.append(kind)
        written = self._table(table, **options)
        numpy_vector = self._builder.CreateNumpyVector
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

    def file(self, image: int, scores: int) -> bytes:
        """The finished file."""
        numpy_vector = self._builder.CreateNumpyVector
        numbers = [getattr(tflite.BuiltinOperator, kind) for kind in self._codes]
        codes = [self._table("OperatorCode", deprecated_builtin_code=n, builtin_code=n, version=3) for n in numbers]
        graph = self._table(
            "SubGraph", tensors=self._offsets(self._tensors), inputs=numpy_vector(np.array([image], np.int32)),
            outputs=numpy_vector(np.array([scores], np.int32)), operators=self._offsets(self._operators),
        )  # fmt: skip
        model = self._table(
            "Model", version=3, operator_codes=self._offsets(codes), subgraphs=self._offsets([graph]),
            buffers=self._offsets(self._buffers),
        )  # fmt: skip
        self._builder.Finish(model, b"TFL3")
        return bytes(self._builder.Output())

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
