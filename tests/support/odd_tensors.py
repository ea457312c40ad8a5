"""Tensors of random networks that are odd: scales and zero points at their ends, data of one value, a channel that is far
from the others."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from tflite_builder import ModelBuilder

#: dtype -> the least and the greatest stored value
ENDS = {"int8": (-128, 127), "int16": (-32768, 32767), "uint8": (0, 255)}


@dataclass(frozen=True)
class OddTensor:
    """A tensor of the file, by its index there."""

    index: int
    shape: tuple[int, ...]
    scale: float
    zero_point: int


class OddTensors:
    """Tensors of one network under construction."""

    def __init__(self, rng: random.Random, sort: str):
        self.rng, self.sort = rng, sort
        self.dtype = "int8" if sort == "int4" else sort
        self.numbers = np.random.default_rng(rng.randrange(2**32))
        self.model = ModelBuilder()
        #: how scales are drawn: by what layers reach, all alike, powers of two, or of any size
        self.scales = rng.choice(("reach", "reach", "reach", "equal", "powers", "extreme"))
        self.count = 0

    # --- tensors ----------------------------------------------------------------------------------

    def tensor(self, shape: Sequence[int], scale: float, zero_point: int | None = None, data=None) -> OddTensor:
        if zero_point is None:
            zero_point = self.zero_point()
        self.count += 1
        quantization = {} if self.dtype == "float32" else {"scale": scale, "zero_point": zero_point}
        index = self.model.tensor(f"t{self.count}", shape, self.dtype, **quantization, data=data)
        return OddTensor(index, tuple(shape), scale, zero_point)

    def zero_point(self) -> int:
        if self.dtype in ("int16", "float32"):
            return 0
        low, high = ENDS[self.dtype]
        return self.rng.choice((low, low, high, (low + high) // 2, low + 1, self.rng.randint(low, high)))

    def scale(self, reach: float) -> float:
        """Scale of a result with values of about the magnitude `reach`."""
        steps = 32768 if self.dtype == "int16" else 128
        if self.scales == "equal":
            scale = 1 / 16
        elif self.scales == "powers":
            scale = 2.0 ** self.rng.randint(-8, 1) if self.rng.random() < 0.5 else 2.0 ** round(np.log2(reach / steps))
        elif self.scales == "extreme" and self.rng.random() < 0.5:
            scale = reach / steps * 10.0 ** self.rng.uniform(-6, 6)
        else:
            scale = reach / steps * self.rng.uniform(0.5, 2)
        return float(np.float32(scale))

    def constant(self, shape: Sequence[int]) -> OddTensor:
        """Data of this network's dtype: only zeros, one value, both ends or anything."""
        scale = self.scale(self.rng.choice((0.5, 1.0, 4.0)))
        if self.dtype == "float32":
            data = self.numbers.uniform(-2, 2, shape).astype(np.float32)
            return self.tensor(shape, scale, data=data * np.float32(self.rng.random() < 0.9))
        low, high = ENDS[self.dtype]
        zero_point = self.zero_point()
        values = {
            "any": lambda: self.numbers.integers(low, high + 1, shape),
            "ends": lambda: self.numbers.choice([low, high], shape),
            "one": lambda: np.full(shape, self.rng.randint(low, high)),
            "zeros": lambda: np.full(shape, zero_point),
        }[self.rng.choice(("any", "any", "any", "ends", "one", "zeros"))]()
        return self.tensor(shape, scale, zero_point, values.astype(self.dtype))

    def integers(self, numbers) -> int:
        data = np.array(numbers, np.int32)
        self.count += 1
        return self.model.tensor(f"n{self.count}", data.shape, "int32", data=data)

    def alike(self, x: OddTensor, shape: Sequence[int]) -> OddTensor:
        """A new tensor with the quantization of `x`."""
        return self.tensor(shape, x.scale, x.zero_point)

    def reach(self, x: OddTensor) -> float:
        """Approximate magnitude of the largest real value of `x`."""
        return 4.0 if self.dtype == "float32" else x.scale * (32768 if self.dtype == "int16" else 128)

    def weights(self, shape) -> tuple[np.ndarray, int]:
        """Stored weights as integers, and their zero point."""
        most = {"int4": 7, "uint8": 127}.get(self.sort, 127)
        kind = self.rng.choice(("any", "any", "any", "ends", "few", "zeros"))
        values = self.numbers.integers(-most, most + 1, shape)
        if kind == "ends":
            values = self.numbers.choice([-most, most], shape)
        elif kind == "few":
            values = self.numbers.choice([0, 0, 0, most, -1], shape)
        elif kind == "zeros" and self.rng.random() < 0.3:
            values = np.zeros(shape, np.int64)
        if self.sort != "uint8":
            return values, 0
        zero_point = self.rng.choice((128, 128, 0, 255, self.rng.randint(0, 255)))
        return np.clip(values + 128, self.rng.choice((0, 1)), 255), zero_point

    def parameters(self, x: OddTensor, weights, zero_point: int, scales, axis: int, terms: int) -> list[int]:
        """Tensors of weights and bias; some layers have no bias."""
        self.count += 1
        channels, names = weights.shape[axis], (f"w{self.count}", f"b{self.count}")
        if self.dtype == "float32":
            real = (weights / 127 / terms**0.5).astype(np.float32)
            bias = self.numbers.uniform(-1, 1, channels).astype(np.float32)
            made = [self.model.tensor(names[0], real.shape, "float32", data=real)]
            return [*made, self.model.tensor(names[1], bias.shape, "float32", data=bias)]
        dtype = {"uint8": "uint8", "int4": "int4"}.get(self.sort, "int8")
        stored = weights.astype(np.uint8 if dtype == "uint8" else np.int8)
        zeros = np.full(scales.shape, zero_point)
        made = [self.model.tensor(names[0], weights.shape, dtype, scales, zeros, axis, stored)]
        if self.rng.random() < 0.2 and self.sort != "uint8":  # LiteRT wants a bias there
            return made
        spread = int(70 * 70 * terms**0.5) * (256 if self.dtype == "int16" else 1)
        bias = self.numbers.integers(-spread, spread + 1, channels)
        if self.rng.random() < 0.15:
            bias[self.rng.randrange(channels)] = self.rng.choice((-(2**29), 2**29))
        wide = "int64" if self.dtype == "int16" else "int32"
        bias_scales = scales * np.float32(x.scale)
        return [*made, self.model.tensor(names[1], bias.shape, wide, bias_scales, zeros * 0, 0, bias.astype(wide))]
