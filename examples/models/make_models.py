"""Makes the models of this folder: kws, vww, ic, ad and ww, int8, with weights that nobody trained.

    python examples/models/make_models.py [--check]

Layers, activations and quantization are of the kinds that MLPerf Tiny's models have; README.md says where sizes differ.
Weights come from a seeded generator. Each layer is scaled as batch normalization scales it, over calibration inputs, so
that its outputs take the whole range of int8. Sums are of integers, exact in any order: the same bytes come out on
every machine.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tflite

HERE = Path(__file__).resolve().parent
sys.path.insert(1, str(HERE.parent))

from tflite_file import TfliteFile  # noqa: E402

SAME, VALID = tflite.Padding.SAME, tflite.Padding.VALID
RELU, NONE = tflite.ActivationFunctionType.RELU, tflite.ActivationFunctionType.NONE
#: width in pixels of the squares of one value that calibration inputs are made of, an input each
SQUARES = (1, 2, 4, 8, 1, 3, 6, 16) * 3
#: how often larger than their standard deviation the logits are: scores that are not all alike
LOGITS = 300
#: bias of a filter that never gives anything but 0 behind RELU
DEAD = -(2**30)


@dataclass(frozen=True)
class Value:
    """An activation: its tensor's index, its int8 values of all calibration inputs, scale and zero point."""

    index: int
    data: np.ndarray
    scale: float
    zero_point: int

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the tensor, whose batch is 1."""
        return (1, *self.data.shape[1:])

    @property
    def centered(self) -> np.ndarray:
        """Stored values less the zero point, as float64, in which sums of integers are exact below 2**53."""
        return self.data.astype(np.float64) - self.zero_point


class Network:
    """Layers with drawn weights; each method adds one and computes it for the calibration inputs."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.file = TfliteFile()
        self._names = 0

    def source(self, name: str, shape: tuple[int, ...], scale: float, zero_point: int) -> Value:
        """The network's input, with one calibration input for each of SQUARES."""
        data = np.empty((len(SQUARES), *shape), np.int8)
        for image, width in zip(data, SQUARES, strict=True):
            drawn = self.random.integers(-128, 128, shape).astype(np.int8)
            image[...] = drawn[np.ix_(*(np.arange(size) // width for size in shape[:-1]), np.arange(shape[-1]))]
        return Value(self.file.tensor(name, (1, *shape), [scale], zero_point), data, scale, zero_point)

    def convolution(
        self, x: Value, filters: int, kernel: tuple[int, int], stride: int = 1, padding: int = SAME,
        activation: int = RELU,
    ) -> Value:  # fmt: skip
        """CONV_2D with a scale a filter."""
        windows = _windows(x.centered, kernel, stride, padding)  # n, rows, columns, kernel, channels
        weights = self._weights((filters, *kernel, x.shape[3]), 0)
        sums = windows.reshape(*windows.shape[:3], -1) @ weights.reshape(filters, -1).T.astype(np.float64)
        return self._layer(
            "CONV_2D", "Conv2DOptions", x, weights, 0, sums, activation, padding=padding, stride_h=stride,
            stride_w=stride, dilation_h_factor=1, dilation_w_factor=1,
        )  # fmt: skip

    def depthwise(
        self, x: Value, kernel: tuple[int, int], stride: int = 1, padding: int = SAME, activation: int = RELU,
        dead: int = 0,
    ) -> Value:  # fmt: skip
        """DEPTHWISE_CONV_2D with a scale per channel; the first `dead` channels give 0 alone."""
        windows = _windows(x.centered, kernel, stride, padding)
        weights = self._weights((1, *kernel, x.shape[3]), 3)
        weights[..., :dead] = 0
        sums = (windows * weights.reshape(-1, x.shape[3])).sum(3)
        return self._layer(
            "DEPTHWISE_CONV_2D", "DepthwiseConv2DOptions", x, weights, 3, sums, activation, padding=padding,
            stride_h=stride, stride_w=stride, depth_multiplier=1, dilation_h_factor=1, dilation_w_factor=1,
        )  # fmt: skip

    def dense(self, x: Value, units: int, activation: int = NONE, gain: int = 100) -> Value:
        """FULLY_CONNECTED with one scale; `gain` is the standard deviation of its real outputs, in hundredths."""
        weights = self._weights((units, x.shape[1]), None)
        sums = x.centered @ weights.T.astype(np.float64)
        return self._layer("FULLY_CONNECTED", "FullyConnectedOptions", x, weights, None, sums, activation, gain)

    def add(self, x: Value, y: Value) -> Value:
        """ADD with RELU."""
        real = np.maximum(x.centered * x.scale + y.centered * y.scale, 0)
        return self._result(
            "ADD", "AddOptions", [x.index, y.index], real, *_range_of(real), fused_activation_function=RELU
        )

    def average(self, x: Value) -> Value:
        """AVERAGE_POOL_2D over all rows and columns, and a RESHAPE to a vector."""
        _, rows, columns, _ = x.shape
        real = x.centered.sum((1, 2), keepdims=True) / (rows * columns) * x.scale
        mean = self._result(
            "AVERAGE_POOL_2D", "Pool2DOptions", [x.index], real, x.scale, x.zero_point, padding=VALID, stride_h=1,
            stride_w=1, filter_height=rows, filter_width=columns, fused_activation_function=NONE,
        )  # fmt: skip
        return self.flat(mean)

    def flat(self, x: Value) -> Value:
        """RESHAPE to a vector."""
        shape = (1, math.prod(x.shape))
        wanted = self.file.tensor(self._name("shape"), (2,), [], data=np.array(shape, np.int32))
        real = (x.centered * x.scale).reshape(-1, shape[1])
        return self._result(
            "RESHAPE", "ReshapeOptions", [x.index, wanted], real, x.scale, x.zero_point, new_shape=shape
        )

    def softmax(self, x: Value, name: str) -> int:
        """SOFTMAX, whose output has the scale and zero point that TensorFlow Lite wants."""
        y = self.file.tensor(name, x.shape, [1 / 256], -128)
        self.file.operator("SOFTMAX", "SoftmaxOptions", [x.index], y, beta=1.0)
        return y

    def _weights(self, shape: tuple[int, ...], axis: int | None) -> np.ndarray:
        """Weights with a distribution like a bell, the largest of each filter 127, or of all where `axis` is None."""
        drawn = self.random.integers(-64, 65, (4, *shape)).sum(0)
        axes = tuple(d for d in range(len(shape)) if d != axis)
        return np.rint(drawn * 127 / np.abs(drawn).max(axes, keepdims=True)).astype(np.int8)

    def _layer(
        self, kind: str, table: str, x: Value, weights: np.ndarray, axis: int | None, sums: np.ndarray,
        activation: int, gain: int = 100, **options: int,
    ) -> Value:  # fmt: skip
        """A layer of these sums, with the bias and the scales of the weights that normalize them."""
        sums = sums.astype(np.int64)
        channels = sums.shape[-1]
        rows = sums.reshape(-1, channels)
        mean = rows.sum(0) // len(rows)
        squares = ((rows - mean) ** 2).sum(0) // len(rows)
        deviations = np.array([max(1, math.isqrt(int(square))) for square in squares])
        bias = deviations * self.random.integers(-50, 51, channels) // 100 - mean
        if axis is None:
            scales = np.array([np.float32(gain / 100 / int(deviations.max()) / x.scale)])
        else:
            gains = self.random.integers(50, 151, channels)
            scales = (gains / 100 / deviations / x.scale).astype(np.float32)
            dead = ~weights.any(tuple(d for d in range(weights.ndim) if d != axis))
            scales[dead], bias[dead] = scales.min(), DEAD
        products = scales * np.float32(x.scale)
        real = (sums + bias) * products.astype(np.float64)
        if activation == RELU:
            real = np.maximum(real, 0)
        name = self._name(kind.lower())
        constants = [
            self.file.tensor(f"{name}/weights", weights.shape, scales, axis=axis or 0, data=weights),
            self.file.tensor(f"{name}/bias", (channels,), products, data=bias.astype(np.int32)),
        ]
        return self._result(
            kind, table, [x.index, *constants], real, *_range_of(real), name, fused_activation_function=activation,
            **options,
        )  # fmt: skip

    def _result(
        self, kind: str, table: str, inputs: list[int], real: np.ndarray, scale: float, zero_point: int,
        name: str = "", **options: int | tuple[int, ...],
    ) -> Value:  # fmt: skip
        """The operator, and its output, stored with this scale and zero point."""
        y = self.file.tensor(name or self._name(kind.lower()), (1, *real.shape[1:]), [scale], zero_point)
        self.file.operator(kind, table, inputs, y, **options)
        return Value(y, np.clip(np.rint(real / scale) + zero_point, -128, 127).astype(np.int8), scale, zero_point)

    def _name(self, of: str) -> str:
        self._names += 1
        return f"{of}_{self._names}"


def _windows(x: np.ndarray, kernel: tuple[int, int], stride: int, padding: int) -> np.ndarray:
    """Windows of a convolution: shape (images, rows, columns, kernel positions, channels)."""
    if padding == SAME:
        totals = [
            max((-(-size // stride) - 1) * stride + width - size, 0)
            for size, width in zip(x.shape[1:3], kernel, strict=True)
        ]
        x = np.pad(x, ((0, 0), *((total // 2, total - total // 2) for total in totals), (0, 0)))
    rows, columns = ((size - width) // stride + 1 for size, width in zip(x.shape[1:3], kernel, strict=True))
    shifted = [
        x[:, top : top + (rows - 1) * stride + 1 : stride, left : left + (columns - 1) * stride + 1 : stride]
        for top in range(kernel[0])
        for left in range(kernel[1])
    ]
    return np.stack(shifted, axis=3)


def _range_of(real: np.ndarray) -> tuple[float, int]:
    """Scale and zero point that bring values from the least (at most 0) to the greatest into -128 to 127."""
    least, greatest = min(float(real.min()), 0.0), float(real.max())
    scale = float(np.float32((greatest - least) / 255))
    return scale, round(-128 - least / scale)


def kws() -> bytes:
    """Keyword spotting: a DS-CNN of 49 frames of 10 features, layer for layer the size of MLPerf Tiny's."""
    network = Network(1)
    x = source = network.source("input_1", (49, 10, 1), 0.5, 83)
    x = network.convolution(x, 64, (10, 4), 2)
    for _ in range(4):
        x = network.convolution(network.depthwise(x, (3, 3)), 64, (1, 1))
    logits = network.dense(network.average(x), 12, gain=LOGITS)
    return network.file.finish(source.index, network.softmax(logits, "Identity"))


def vww() -> bytes:
    """Visual wake words: a MobileNetV1 of width 0.25. A quarter of its first depthwise filters gives nothing, as
    training leaves such filters behind."""
    network = Network(2)
    x = source = network.source("image", (48, 48, 3), 1 / 255, -128)
    x = network.convolution(x, 8, (3, 3), 2)
    blocks = (16, 1), (32, 2), (32, 1), (64, 2), (64, 1), (128, 2), (128, 1), (128, 1), (256, 2)
    for number, (filters, stride) in enumerate(blocks):
        x = network.depthwise(x, (3, 3), stride, dead=x.shape[3] // 4 if number < 5 else 0)
        x = network.convolution(x, filters, (1, 1))
    logits = network.dense(network.average(x), 2, gain=LOGITS)
    return network.file.finish(source.index, network.softmax(logits, "scores"))


def ic() -> bytes:
    """Image classification: a ResNet of three stacks, each with one shortcut, two of them through a convolution."""
    network = Network(3)
    source = network.source("image", (32, 32, 3), 1.0, -128)
    x = network.convolution(source, 8, (3, 3))
    for filters, stride in ((8, 1), (16, 2), (32, 2)):
        y = network.convolution(x, filters, (3, 3), stride)
        y = network.convolution(y, filters, (3, 3), activation=NONE)
        shortcut = x if stride == 1 else network.convolution(x, filters, (1, 1), stride, activation=NONE)
        x = network.add(shortcut, y)
    logits = network.dense(network.average(x), 10, gain=LOGITS)
    return network.file.finish(source.index, network.softmax(logits, "scores"))


def ad() -> bytes:
    """Anomaly detection: a dense autoencoder with a code of 8 values."""
    network = Network(4)
    x = source = network.source("features", (320,), 0.4, 89)
    for units in (64, 64, 64, 64, 8, 64, 64, 64, 64):
        x = network.dense(x, units, RELU)
    return network.file.finish(source.index, network.dense(x, 320).index)


def ww() -> bytes:
    """Wake word: depthwise-separable convolutions along 30 frames of 40 features."""
    network = Network(5)
    x = source = network.source("features", (30, 1, 40), 1 / 255, -128)
    for taps, filters in ((3, 64), (5, 64), (10, 64), (15, 32)):
        x = network.depthwise(x, (taps, 1), padding=VALID, activation=NONE)
        x = network.convolution(x, filters, (1, 1), padding=VALID)
    logits = network.dense(network.flat(x), 3, gain=LOGITS)
    return network.file.finish(source.index, network.softmax(logits, "scores"))


#: name of the file -> function that makes its bytes
MODELS: dict[str, Callable[[], bytes]] = {"kws": kws, "vww": vww, "ic": ic, "ad": ad, "ww": ww}


def main() -> int:
    """Write the models, or with --check only say which files differ: exit status 1."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--check", action="store_true", help="write nothing; compare with the files")
    check, differ = parser.parse_args().check, []
    for name, make in MODELS.items():
        path, data = HERE / f"{name}.tflite", make()
        if not check:
            path.write_bytes(data)
            print(f"{path.name}: {len(data):,} bytes")
        elif path.read_bytes() != data:
            differ.append(path.name)
    print(*(f"{name} differs" for name in differ), sep="\n", end="\n" if differ else "")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
