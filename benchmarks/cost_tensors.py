"""What the operators that are measured are made of: tensors, images, weights."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tinyfuse.ir import Op, Quant, Tensor
from tinyfuse.ops import FAMILIES

CHANNELS = (1, 3, 4, 8, 10, 12, 16, 16, 24, 32, 32, 48, 64, 64, 96, 128)
#: what is left of layers whose dead channels were cut
PRUNED = (5, 6, 9, 11, 15, 22, 27, 31)
SIZES = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 13, 16, 20, 24, 25, 32)
_numbers: Iterator[int] = iter(range(10**9))


def tensor(shape, scale: float = 0.05, zero_point: int = -128, dtype: str = "int8", data=None) -> Tensor:
    """A tensor with a name and an index of its own."""
    number = next(_numbers)
    quant = Quant((float(np.float32(scale)),), (zero_point,)) if scale else None
    return Tensor(f"t{number}", tuple(shape), dtype, quant, data, number)


def operator(kind: str, inputs, output: Tensor, **options) -> Op:
    return Op(kind, tuple(inputs), (output,), FAMILIES[kind].attributes(options))


def like(given: Tensor) -> Tensor:
    """A tensor of that shape, dtype and quantization, with a name and an index of its own."""
    number = next(_numbers)
    return replace(given, name=f"t{number}", index=number)


def image(rng: random.Random) -> tuple[int, int, int, int]:
    """One in five is a column: what models of signals have."""
    width = 1 if rng.random() < 0.2 else rng.choice(SIZES)
    return 1, rng.choice(SIZES), width, rng.choice(CHANNELS)


def layer_weights(rng: random.Random, shape, channels: int, axis: int) -> list[Tensor]:
    values = np.random.default_rng(rng.randrange(2**31))
    # -128, which converters don't make, keeps kernels from their fastest form
    least = -128 if rng.random() < 0.15 else -127
    data = values.integers(least, 128, shape).astype(np.int8)
    scales = tuple(map(float, values.uniform(0.002, 0.004, channels).astype(np.float32)))
    number = next(_numbers)
    weights = Tensor(f"w{number}", tuple(shape), "int8", Quant(scales, (0,) * channels, axis), data, number)
    bias = tensor((channels,), 0.0, 0, "int32", values.integers(-999, 1000, channels).astype(np.int32))
    biased = Quant(tuple(0.05 * s for s in scales), (0,) * channels, 0)
    return [weights, Tensor(bias.name, bias.shape, "int32", biased, bias.data, bias.index)]


def of_wide_weights(op: Op) -> Op:
    """The same layer with weights of 9 bits in int16, as uint8 models have them."""
    weights = op.operand(1)
    data = weights.values.astype(np.int16) + 90
    return replace(op, inputs=(op.input, replace(weights, dtype="int16", data=data), *op.inputs[2:]))


def of_int4(op: Op) -> Op:
    """The same layer with weights of int4."""
    weights = op.operand(1)
    data = np.clip(np.round(weights.values / 16), -7, 7).astype(np.int8)
    quant = replace(weights.quantization, scale=tuple(16 * scale for scale in weights.quantization.scale))
    coarse = replace(weights, dtype="int4", data=data, quant=quant)
    return replace(op, inputs=(op.input, coarse, *op.inputs[2:]))
