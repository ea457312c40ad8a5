"""Random uint8 networks as .tflite bytes, of operators that LiteRT's kernels support in uint8.

They are drawn as int8 networks and converted (uint8_models.py): each layer's weights get one scale and a zero point.
"""

from __future__ import annotations

import numpy as np
from other_dtypes import model_bytes
from random_graphs import Sketch, Value
from uint8_models import graph_in_uint8

from tinyfuse.frontend.reader import read_tflite

_LAYERS = ("conv", "conv", "depthwise", "dense", "pool", "add", "mul", "relu", "concatenate", "pad", "unary", "mean")
_ACTIVATIONS = ("NONE", "NONE", "RELU", "RELU6")
_TAILS = ("none", "dense", "dense", "softmax", "mean")


def uint8_network(seed: int, most_layers: int = 6) -> bytes:
    """The network with this number: one image, up to `most_layers` layers and a tail."""
    rng = np.random.default_rng(seed)
    sketch = Sketch(seed, dead=float(rng.choice([0.0, 0.0, 0.3])))
    image = sketch.value((1, *map(int, rng.integers(1, 10, 2)), int(rng.choice([1, 2, 3, 4, 7, 8, 16]))))
    x, older = image, [image]
    for _ in range(int(rng.integers(1, most_layers + 1))):
        x = _layer(sketch, x, older, rng)
        older.append(x)
    outputs = [_tail(sketch, x, rng)]
    if rng.random() < 0.3:
        outputs.append(older[int(rng.integers(1, len(older)))])
    data = sketch.build([image], list(dict.fromkeys(outputs)))
    return model_bytes(graph_in_uint8(read_tflite(f"network {seed}", data), seed))


def _layer(sketch: Sketch, x: Value, older: list[Value], rng: np.random.Generator) -> Value:
    kind, activation = str(rng.choice(_LAYERS)), str(rng.choice(_ACTIVATIONS))
    window, stride = tuple(map(int, rng.integers(1, 4, 2))), tuple(map(int, rng.integers(1, 3, 2)))
    fits = window[0] <= x.shape[1] and window[1] <= x.shape[2]
    padding = str(rng.choice(["SAME", "VALID"])) if fits else "SAME"
    if kind == "conv":
        return sketch.conv(x, int(rng.integers(1, 18)), window, stride, padding, activation=activation)
    if kind == "depthwise":
        multiplier = int(rng.choice([1, 1, 2]))
        return sketch.depthwise(x, window, stride, padding, activation=activation, multiplier=multiplier)
    if kind == "dense":
        units = int(rng.integers(1, 20))
        return sketch.reshape(sketch.fully_connected(x, units, activation), (1, 1, 1, units))
    if kind == "pool":
        size = min(window[0], x.shape[1]), min(window[1], x.shape[2])
        return sketch.pool(x, str(rng.choice(["AVERAGE_POOL_2D", "MAX_POOL_2D"])), size, stride, padding)
    if kind in ("add", "mul"):
        twins = [value for value in older if value.shape == x.shape]
        return sketch.add(x, twins[int(rng.integers(len(twins)))], activation, kind.upper())
    if kind == "relu":
        return sketch.relu(x, str(rng.choice(["RELU", "RELU6"])), bool(rng.random() < 0.5))
    if kind == "concatenate":
        return sketch.concatenate([x, sketch.relu(x)], 3)
    if kind == "pad":
        return sketch.pad(x, *map(int, rng.integers(0, 3, 4)))
    if kind == "unary":
        return sketch.unary(x, str(rng.choice(["LOGISTIC", "TANH", "LEAKY_RELU", "HARD_SWISH"])))
    return sketch.mean(x, keep_dims=True)


def _tail(sketch: Sketch, x: Value, rng: np.random.Generator) -> Value:
    kind = str(rng.choice(_TAILS))
    if kind == "none":
        return x
    if kind == "mean":
        return sketch.mean(x)
    logits = sketch.fully_connected(x, int(rng.integers(1, 12)))
    return sketch.softmax(logits) if kind == "softmax" else logits
