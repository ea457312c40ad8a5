"""Layers with few different weights, for the kernels of palettized weights."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from conv_cases import Shape, make_op

from tinyfuse.ir import Op

#: every block of pixels, every rest of channels and of inputs, windows that leave the image, several strips, batches;
#: depths that leave a rest of four and eight
SHAPES = (
    Shape("CONV_2D", 2, 7, 36, 7), Shape("CONV_2D", 2, 5, 40, 20), Shape("CONV_2D", 3, 1, 20, 19),
    Shape("CONV_2D", 1, 3, 128, 1), Shape("CONV_2D", 3, 4, 64, 101), Shape("CONV_2D", 2, 3, 33, 21),
    Shape("CONV_2D", 5, 7, 8, 6, (3, 3)), Shape("CONV_2D", 3, 7, 3, 17, (3, 3)),
    Shape("CONV_2D", 5, 6, 8, 9, (2, 3), (2, 1)), Shape("CONV_2D", 6, 9, 8, 16, (2, 3), (1, 2), (2, 2)),
    Shape("CONV_2D", 4, 4, 7, 8, (3, 4), activation="RELU6"), Shape("CONV_2D", 3, 5, 44, 13, (3, 3)),
    Shape("CONV_2D", 3, 4, 20, 12, (2, 2), batch=2), Shape("CONV_2D", 25, 1, 24, 10, (3, 1), (2, 1)), Shape("CONV_2D", 2, 3, 520, 11),
    Shape("FULLY_CONNECTED", 1, 1, 300, 4), Shape("FULLY_CONNECTED", 1, 1, 37, 9),
    Shape("FULLY_CONNECTED", 3, 1, 28, 70, per_channel=False), Shape("FULLY_CONNECTED", 2, 1, 61, 10),
)  # fmt: skip

#: how many values: of 1 to 4 bits
COUNTS = (2, 4, 7, 16)


def few_values(op: Op, count: int, rng: np.random.Generator, each: bool, least: int = -127) -> Op:
    """The layer with `count` different weights. `each`: each channel has its own."""
    weights = op.operand(1)
    channels = weights.shape[0]
    data = np.empty((channels, weights.elements // channels), np.int8)
    step = 1 if each else channels
    for first in range(0, channels, step):
        part = data[first : first + step]
        part[:] = rng.choice(rng.choice(np.arange(least, 128), count, replace=False), part.shape)
    return replace(op, inputs=(op.input, replace(weights, data=data.reshape(weights.shape)), *op.inputs[2:]))


def compressed_layers(shapes: tuple[Shape, ...] = SHAPES, seed: int = 3) -> Iterator[Op]:
    """Layers of each shape, with and without single rounding, with each palette size, per channel or for all."""
    rng = np.random.default_rng(seed)
    for number, shape in enumerate(shapes):
        plain = make_op(shape, rng)
        for turn, zero_point in enumerate((-128, 3)):
            output = replace(plain.output, quant=replace(plain.output.quant, zero_point=(zero_point,)))
            count = COUNTS[(number + 2 * turn) % len(COUNTS)]
            # a weight of -128 has no place in a lane
            least = -128 if number % 3 == 2 and turn else -127
            yield few_values(replace(plain, outputs=(output,)), count, rng, each=(number + turn) % 2 == 0, least=least)
