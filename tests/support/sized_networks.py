"""Random networks of realistic sizes for microcontrollers, on which predictions are compared."""

from __future__ import annotations

import random

from random_graphs import Sketch, Value

DTYPES = ("int8", "int16", "float32")
_CHANNELS = (4, 8, 12, 16, 24, 32)
_FUNCTIONS = {
    "int8": ("LOGISTIC", "LEAKY_RELU", "HARD_SWISH"),
    "int16": ("LOGISTIC", "TANH"),
    "float32": ("HARD_SWISH",),
}


def sized_network(seed: int, dtype: str) -> bytes:
    """A .tflite of four to nine layers on an image of 12 to 32 rows, and a classifier. float32 networks are smaller,
    because cores without an FPU take thousands of instructions for a pixel."""
    rng = random.Random(f"{seed} {dtype}")
    sketch = Sketch(rng.randrange(2**20), dtype=dtype, far=True)
    sizes = (6, 8, 12) if dtype == "float32" else (12, 16, 20, 24, 32)
    image = sketch.value((1, rng.choice(sizes), rng.choice(sizes), rng.choice([1, 3, 8, 16])))
    x = sketch.conv(image, rng.choice(_CHANNELS), (3, 3), rng.choice([(1, 1), (2, 2)]), activation="RELU")
    for _ in range(rng.randint(3, 8)):
        x = _layer(rng, sketch, x)
    if rng.random() < 0.6:
        x = sketch.pool(x, "AVERAGE_POOL_2D", x.shape[1:3], (1, 1))
    y = sketch.fully_connected(x, rng.choice([2, 6, 10, 12]))
    return sketch.build([image], [sketch.softmax(y) if rng.random() < 0.7 else y])


def line_network(seed: int, dtype: str) -> bytes:
    """A .tflite of two to five Conv1D layers over 32 to 128 places, as Keras writes them for gestures and heartbeats:
    images of a single row or column, with pools between them, and a classifier."""
    rng = random.Random(f"line {seed} {dtype}")
    sketch = Sketch(rng.randrange(2**20), dtype=dtype, far=True)
    along = (lambda n: (1, n)) if rng.random() < 0.7 else (lambda n: (n, 1))
    image = sketch.value((1, *along(rng.choice([32, 50, 64, 100, 128])), rng.choice([1, 2, 3, 6, 9])))
    x = image
    for _ in range(rng.randint(2, 5)):
        kernel, stride = along(rng.choice([3, 5, 7, 9])), along(rng.choice([1, 1, 1, 2]))
        if x.shape[3] >= 4 and rng.random() < 0.3:
            x = sketch.conv(sketch.depthwise(x, kernel, stride, activation="RELU"), rng.choice(_CHANNELS), (1, 1))
        else:
            x = sketch.conv(x, rng.choice(_CHANNELS), kernel, stride, activation=rng.choice(["RELU", "RELU6", "NONE"]))
        if max(x.shape[1:3]) >= 8 and rng.random() < 0.5:
            x = sketch.pool(x, rng.choice(["AVERAGE_POOL_2D", "MAX_POOL_2D", "MAX_POOL_2D"]), along(2), along(2))
    x = sketch.mean(x) if rng.random() < 0.6 else x
    y = sketch.fully_connected(x, rng.choice([2, 6, 10, 12]))
    return sketch.build([image], [sketch.softmax(y) if rng.random() < 0.7 else y])


def _layer(rng: random.Random, sketch: Sketch, x: Value) -> Value:
    kind = rng.choice(["separable", "separable", "separable", "convolution", "residual", "pool", "function", "scaled"])
    activation, filters = rng.choice(["RELU", "RELU6", "NONE"]), rng.choice(_CHANNELS)
    if kind == "convolution":
        return sketch.conv(x, filters, rng.choice([(3, 3), (3, 3), (1, 3), (5, 5)]), activation=activation)
    if kind == "residual":
        y = sketch.conv(x, x.shape[3], (3, 3), activation="RELU")
        return sketch.add(sketch.conv(y, x.shape[3], (1, 1)), x, activation)
    if kind == "pool" and min(x.shape[1:3]) >= 4:
        return sketch.pool(x, rng.choice(["AVERAGE_POOL_2D", "MAX_POOL_2D"]), (2, 2), (2, 2))
    if kind == "function":
        return sketch.unary(x, rng.choice(_FUNCTIONS[sketch.dtype]))
    if kind == "scaled":
        return sketch.add(x, sketch.conv(x, x.shape[3], (1, 1)), kind=rng.choice(["ADD", "MUL"]))
    stride = (2, 2) if min(x.shape[1:3]) >= 8 and rng.random() < 0.3 else (1, 1)
    y = sketch.depthwise(x, rng.choice([(3, 3), (3, 3), (5, 5), (3, 1)]), stride, activation="RELU")
    return sketch.conv(y, filters, (1, 1), activation=activation)
