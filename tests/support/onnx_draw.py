"""Draws of small quantized ONNX files of one operator (onnx_operators.py)."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import numpy as np
from onnx_networks import OnnxWriter, Value


class OperatorDraw:
    """Draws of one file."""

    def __init__(self, seed: str):
        self.rng = random.Random(seed)
        self.arrays = np.random.default_rng(list(seed.encode()))
        self.w = OnnxWriter(self.rng.choice(("int8", "uint8")))

    def scale(self, low: float = 0.005, high: float = 0.1) -> float:
        """A scale; a power of two now and then, where halves are frequent."""
        plain = 2.0 ** -self.rng.randint(3, 7) if self.rng.random() < 0.25 else self.rng.uniform(low, high)
        return float(np.float32(plain))

    def point(self) -> int:
        return self.w.low + self.rng.choice((0, 128, 255, self.rng.randint(0, 255)))

    def shape(self, rank: int | None = None, most: int = 7) -> tuple[int, ...]:
        rank = rank or self.rng.choice((1, 2, 3, 4))
        return (1, *(self.rng.randint(1, most) for _ in range(rank - 1))) if rank > 1 else (self.rng.randint(1, 40),)

    def input(self, shape: Sequence[int], low: float = 0.005, high: float = 0.1) -> Value:
        return self.w.input(shape, self.scale(low, high), self.point(), real=self.rng.random() < 0.3)

    def real(self, shape: Sequence[int]) -> tuple[str, Value]:
        """(float32 numbers of a stored input, the input)."""
        value = self.input(shape)
        return self.w.real(value), value

    def stored(self, name: str, shape: Sequence[int], spread: float) -> list[Value]:
        """The output: float32 numbers of about `spread` or less, quantized."""
        scale = float(np.float32(spread / 128 * self.rng.choice((0.3, 1.0, 1.0, 2.0))))
        scale = self.scale(0.005, 0.05) if self.rng.random() < 0.2 else scale
        return [self.w.quantize(name, Value("", tuple(shape), scale, self.point()))]

    def like(self, name: str, shape: Sequence[int], value: Value) -> list[Value]:
        """The output, quantized as `value` or otherwise."""
        if self.rng.random() < 0.6:
            return [self.w.quantize(name, Value("", tuple(shape), value.scale, value.zero_point))]
        return self.stored(name, shape, value.scale * 128)

    def same_points(self, shape: Sequence[int], value: Value) -> Value:
        return Value("", tuple(shape), value.scale, value.zero_point)

    def pointwise(self, value: Value) -> Value:
        """The stored output of a 1x1 convolution."""
        outs, channels = self.rng.choice((4, 8, 16)), value.shape[1]
        weights = self.arrays.integers(-127, 128, (outs, channels, 1, 1)).astype(np.int8)
        made = self.w.node("Conv", [self.w.real(value), self.w.weights(weights, np.array(0.01, np.float32), 0)])[0]
        shape = (1, outs, *value.shape[2:])
        scale = float(np.float32(value.scale * 0.6 * channels**0.5))
        return self.w.quantize(made, Value("", shape, scale, self.point()))

    def constant(self, shape: Sequence[int], scale: float | None = None) -> tuple[str, np.ndarray]:
        """(name, numbers) of a constant behind a DequantizeLinear."""
        stored = self.arrays.integers(self.w.low, self.w.low + 256, tuple(shape)).astype(self.w.dtype)
        value = Value(self.w.constant(stored), tuple(shape), scale or self.scale(), self.point())
        numbers = (stored.astype(np.int64) - value.zero_point) * np.float64(value.scale)
        return self.w.real(value), numbers.astype(np.float32)


#: draws a file's nodes, and returns its outputs
Builder = Callable[[OperatorDraw], list[Value]]
