"""Layers with a fused RELU, and with a batch normalization that the converter left between the layer and its RELU,
quantized as a converter does it: RELU's outputs from -128 on, what lies before them about zero."""

from __future__ import annotations

import numpy as np
from random_graphs import Sketch, Value

#: kinds of layers, by the terms of an output for each channel of the input
TERMS = {"1x1": 1, "3x3": 9, "depthwise": 9, "dense": 4}


def layer(kind: str, channels: int, normalized: bool, pixels: int = 16, seed: int = 7) -> bytes:
    """A .tflite of one layer with `channels` inputs and outputs, over `pixels` times as many pixels (a dense layer:
    four inputs for each channel). `normalized`: MUL and ADD by vectors of channels and a RELU replace the fused
    RELU."""
    sketch, rng = Sketch(seed), np.random.default_rng(seed + 1)
    shape = (1, 4 * channels) if kind == "dense" else (1, pixels, pixels, channels)
    image = sketch.value(shape, 0.05, -128)
    spread = 0.05 * 0.011 * 60 * 66 * np.sqrt(TERMS[kind] * (1 if kind == "depthwise" else channels))
    zero_point = int(rng.integers(-15, 16)) if normalized else -128
    sketch.results = _scale(spread * (5 if normalized else 2.5) / 256), zero_point
    activation = "NONE" if normalized else "RELU"
    if kind == "dense":
        x = sketch.fully_connected(image, channels, activation=activation)
    elif kind == "depthwise":
        x = sketch.depthwise(image, (3, 3), activation=activation)
    else:
        x = sketch.conv(image, channels, (int(kind[0]), int(kind[-1])), activation=activation)
    if normalized:
        gains, shifts = rng.uniform(0.5, 1.6, channels), rng.normal(0, 0.5 * spread, channels)
        zero_point = int(rng.integers(-15, 16))
        x = _by_vector(sketch, x, "MUL", gains, sketch.value(x.shape, _scale(spread * 6 / 256), zero_point), "NONE")
        x = _by_vector(sketch, x, "ADD", shifts, sketch.value(x.shape, _scale(spread * 2.8 / 256), -128), "RELU")
    return sketch.build([image], [x])


def _by_vector(sketch: Sketch, x: Value, kind: str, numbers: np.ndarray, result: Value, activation: str) -> Value:
    """Computes `result` = x times or plus one constant for each channel."""
    scale = _scale(np.abs(numbers).max() / 127)
    index = sketch.model.tensor(f"{kind} of {x.index}", numbers.shape, "int8", scale=np.float32(scale), zero_point=0,
                                data=np.rint(numbers / scale).astype(np.int8))  # fmt: skip
    sketch.model.op(kind, [x.index, index], [result.index], fused_activation_function=activation)
    return result


def _scale(value: float) -> float:
    return float(np.float32(value))
