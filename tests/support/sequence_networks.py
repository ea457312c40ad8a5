"""Random networks over sequences: images of a single row, tensors [1, L, C] and the reshapes between them, as
converters write layers over time. The sequence may end before the last layers."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from random_graphs import Sketch, Value


@st.composite
def sequence_networks(draw, most_layers: int = 6, longest: int = 50, dtypes: tuple[str, ...] = ("int8",)) -> bytes:
    """A .tflite of up to `most_layers` layers over a sequence of up to `most` places."""
    sketch = Sketch(draw(st.integers(0, 2**20)), dtype=draw(st.sampled_from(dtypes)), far=True)
    length, channels = draw(st.integers(2, longest)), draw(st.integers(1, 9))
    start = draw(st.sampled_from([(1, length, channels), (1, 1, length, channels), (1, length, 1, channels)]))
    image = sketch.value(start)
    x, older = lying(sketch, image), []
    for _ in range(draw(st.integers(1, most_layers))):
        older.append(x)
        x = _layer(draw, sketch, x, older)
        if draw(st.integers(0, 2)) == 0:
            x = through_vector(sketch, x)
    wanted = [x]
    if draw(st.integers(0, 3)) == 0:
        wanted.append(draw(st.sampled_from(older)))
    tail = draw(st.sampled_from(["none", "mean", "pool", "dense", "mean of a vector"]))
    if tail == "mean":
        wanted[0] = sketch.mean(x)
    elif tail == "pool":
        wanted[0] = sketch.pool(x, "AVERAGE_POOL_2D", x.shape[1:3], (1, 1))
    elif tail == "dense":
        wanted[0] = sketch.fully_connected(x, 3)
    elif tail == "mean of a vector":
        wanted[0] = mean_over_time(sketch, sketch.reshape(x, (1, x.shape[2], x.shape[3])), draw(st.booleans()))
    return sketch.build([image], [v for v in dict.fromkeys(wanted) if v is not image])


def lying(sketch: Sketch, x: Value) -> Value:
    """Reshapes a sequence to an image of a single row."""
    if len(x.shape) == 4 and x.shape[1] == 1:
        return x
    return sketch.reshape(x, (1, 1, x.shape[1], x.shape[-1]))


def through_vector(sketch: Sketch, x: Value) -> Value:
    """Reshapes [1, 1, L, C] -> [1, L, C] -> [1, 1, L, C], as between two Keras layers."""
    return lying(sketch, sketch.reshape(x, (1, *x.shape[2:])))


def mean_over_time(sketch: Sketch, x: Value, keep_dims: bool) -> Value:
    """Applies a mean over the places of [1, L, C]."""
    along = sketch.model.tensor(f"axis {sketch.names}", (1,), "int32", data=np.array([1], np.int32))
    y = sketch.value((1, 1, x.shape[2]) if keep_dims else (1, x.shape[2]), x.scale, x.zero_point)
    sketch.model.op("MEAN", [x.index, along], [y.index], keep_dims=keep_dims)
    return y


def _layer(draw, sketch: Sketch, x: Value, older: list[Value]) -> Value:
    length, channels = x.shape[2:]
    kernel, stride = draw(st.integers(1, 9)), draw(st.sampled_from([1, 1, 1, 2, 3]))
    dilation = draw(st.sampled_from([1, 1, 2])) if stride == 1 else 1
    fits = (kernel - 1) * dilation + 1 <= length
    padding = draw(st.sampled_from(["SAME", "VALID"])) if fits else "SAME"
    twins = [v for v in older[:-1] if v.shape == x.shape]
    kinds = ["conv"] * 3 + ["depthwise", "pool", "relu", "unary", "scale", "pad", "concat", "place"]
    kind = draw(st.sampled_from(kinds + ["transposed"] * (length < 40) + ["add"] * 3 * bool(twins)))
    if kind == "conv":
        activation = draw(st.sampled_from(["NONE", "RELU"]))
        return sketch.conv(x, draw(st.integers(1, 9)), (1, kernel), (1, stride), padding, (1, dilation), activation)
    if kind == "depthwise":
        return sketch.depthwise(x, (1, kernel), (1, stride), padding, (1, dilation))
    if kind == "pool":
        size = min(kernel, length)
        which = draw(st.sampled_from(["AVERAGE_POOL_2D", "MAX_POOL_2D"]))
        return sketch.pool(x, which, (1, size), (1, stride), padding)
    if kind == "transposed":
        return sketch.transpose_conv(x, draw(st.integers(1, 5)), (1, kernel), (1, stride), "NONE")
    if kind == "add":
        return sketch.add(x, draw(st.sampled_from(twins)))
    if kind == "relu":
        return sketch.relu(x)
    if kind == "unary":
        return sketch.unary(x, "TANH")
    if kind == "scale":
        return sketch.scale_channels(x, draw(st.sampled_from(["MUL", "ADD"])))
    if kind == "place":  # a constant with a value of its own at each place
        return sketch.with_constant(x, "MUL", draw(st.sampled_from([(length, channels), (length, 1)])))
    if kind == "pad":
        return sketch.pad(x, 0, 0, draw(st.integers(0, 3)), draw(st.integers(0, 3)))
    return sketch.concatenate([x, sketch.relu(x)], draw(st.sampled_from([2, 3])))
