"""Networks of a search space as int8 .tflite bytes, written without TensorFlow.

What a network costs follows from its shapes, so the weights are random numbers; a real search would train each network,
or take its weights from a shared one, and convert it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import tflite

sys.path.insert(1, str(Path(__file__).resolve().parents[1]))

from tflite_file import TfliteFile

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
        x = network.convolution("DEPTHWISE_CONV_2D", x, network.file.shape(x)[3], architecture.kernel, 1 + block % 2)
        x = network.convolution("CONV_2D", x, filters, 1, 1)
    x = network.mean(x)
    return network.file.finish(image, network.dense(x, architecture.classes))


class _Network:
    """Layers with random weights; every method takes and returns indexes of tensors."""

    def __init__(self, seed: int):
        self._random = np.random.default_rng(seed)
        self.file = TfliteFile()
        self._names = 0

    def activation(self, shape: tuple[int, ...]) -> int:
        """An int8 tensor that the network computes; real value = 0.05 * (stored + 128)."""
        return self.file.tensor(self._name(), shape, [0.05], -128)

    def convolution(self, kind: str, x: int, filters: int, kernel: int, stride: int) -> int:
        """With padding, so that stride 1 keeps the size, and RELU6."""
        _, height, width, channels = self.file.shape(x)
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
            "FULLY_CONNECTED", "FullyConnectedOptions", x, (units, self.file.shape(x)[1]), 0, y,
            fused_activation_function=NONE,
        )  # fmt: skip
        return y

    def mean(self, x: int) -> int:
        """Over rows and columns."""
        y = self.activation((1, self.file.shape(x)[3]))
        axes = self.file.tensor(self._name(), (2,), [], data=np.array([1, 2], np.int32))
        self.file.operator("MEAN", "ReducerOptions", [x, axes], y, keep_dims=False)
        return y

    def _layer(self, kind: str, table: str, x: int, shape: tuple[int, ...], axis: int, y: int, **options: int) -> None:
        """A layer with random weights, one scale a filter, and no bias to speak of."""
        filters = shape[axis]
        weights = self._random.integers(-127, 128, shape).astype(np.int8)
        scales = self._random.uniform(0.001, 0.01, filters if kind != "FULLY_CONNECTED" else 1)
        inputs = [
            x,
            self.file.tensor(self._name(), shape, scales, axis=axis, data=weights),
            self.file.tensor(self._name(), (filters,), scales * np.float32(0.05), data=np.zeros(filters, np.int32)),
        ]
        self.file.operator(kind, table, inputs, y, **options)

    def _name(self) -> str:
        self._names += 1
        return f"tensor_{self._names}"
