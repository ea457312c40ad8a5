"""Random networks of every dtype: int8, int16 and float32 layers with conversions between them, some of them inside an IF
or a loop."""

from __future__ import annotations

from hypothesis import strategies as st
from random_graphs import ACTIVATIONS, Sketch, Value

DTYPES = ("int8", "int16", "float32")
#: dtype -> what may follow besides layers: functions of one value, and of two
_UNARY = {
    "int8": ("RELU", "RELU6", "LEAKY_RELU", "HARD_SWISH", "LOGISTIC"),
    "int16": ("RELU", "LEAKY_RELU", "LOGISTIC", "TANH"),
    "float32": ("RELU", "RELU6", "LEAKY_RELU", "HARD_SWISH"),
}
_BINARY = {
    "int8": ("ADD", "SUB", "MUL", "MAXIMUM"),
    "int16": ("ADD", "SUB", "MUL", "MINIMUM"),
    "float32": ("ADD", "SUB", "MUL", "MAXIMUM", "SQUARED_DIFFERENCE"),
}


@st.composite
def mixed_networks(draw, most_layers: int = 8, dtypes: tuple[str, ...] = DTYPES) -> bytes:
    """A .tflite of up to `most_layers` layers; its first and last dtypes are drawn."""
    sketch = Sketch(draw(st.integers(0, 2**20)), dtype=draw(st.sampled_from(dtypes)), far=True)
    image = sketch.value((1, draw(st.integers(1, 10)), draw(st.integers(1, 6)), draw(st.integers(1, 9))))
    x, older = image, []
    for _ in range(draw(st.integers(1, most_layers))):
        older.append(x)
        if draw(st.integers(0, 3)) == 0:
            sketch.dtype = draw(st.sampled_from(dtypes))
            x = sketch.converted(x)
        x = _layer(draw, sketch, x, older)
    outputs = [x]
    tail = draw(st.sampled_from(["none", "dense", "mean", "average"]))
    if tail == "dense":
        outputs = [sketch.fully_connected(x, draw(st.integers(1, 9)), draw(ACTIVATIONS))]
    elif tail == "mean":
        outputs = [sketch.mean(x)]
    elif tail == "average":
        outputs = [sketch.pool(x, "AVERAGE_POOL_2D", x.shape[1:3], (1, 1))]
    return sketch.build([image], list(dict.fromkeys(outputs)))


def _layer(draw, sketch: Sketch, x: Value, older: list[Value]) -> Value:
    """A layer on `x`, a value of the sketch's dtype, and possibly on an older one."""
    twins = [v for v in older if v.shape == x.shape and v.dtype == x.dtype]
    kinds = ["convolution", "depthwise", "pointwise", "transposed", "unary", "norm", "pool", "pad", "join"]
    kind = draw(st.sampled_from([*kinds, *["two"] * 2 * bool(twins)]))
    kernel, stride = (draw(st.integers(1, 3)), draw(st.integers(1, 3))), (draw(st.integers(1, 2)), 1)
    filters, activation = draw(st.integers(1, 9)), draw(ACTIVATIONS)
    if kind == "convolution":
        dilation = draw(st.sampled_from([(1, 1), (1, 1), (2, 1)]))
        return sketch.conv(x, filters, kernel, stride, dilation=dilation, activation=activation)
    if kind == "depthwise":
        multiplier = draw(st.sampled_from([1, 1, 2]))
        return sketch.depthwise(x, kernel, stride, activation=activation, multiplier=multiplier)
    if kind == "pointwise":
        return sketch.conv(x, filters, (1, 1), activation=activation)
    if kind == "transposed" and x.shape[1] <= 6:
        return sketch.transpose_conv(x, filters, kernel, (2, 1), activation="NONE")
    if kind == "unary":
        return _function(draw, sketch, x)
    if kind == "norm":
        return sketch.scale_channels(sketch.scale_channels(x, "MUL"), "ADD")
    if kind == "two":
        return sketch.add(x, draw(st.sampled_from(twins)), activation, draw(st.sampled_from(_BINARY[x.dtype])))
    if kind == "pad":
        return sketch.pad(x, *(draw(st.integers(0, 2)) for _ in range(4)))
    if kind == "join":
        return sketch.concatenate([x, sketch.relu(x)], draw(st.sampled_from([1, 2, 3])))
    size = (min(kernel[0], x.shape[1]), min(kernel[1], x.shape[2]))
    which = draw(st.sampled_from(["AVERAGE_POOL_2D", "MAX_POOL_2D"]))
    return sketch.pool(x, which, size, stride, draw(st.sampled_from(["SAME", "VALID"])))


def _function(draw, sketch: Sketch, x: Value) -> Value:
    kind = draw(st.sampled_from(_UNARY[x.dtype]))
    if kind in ("RELU", "RELU6"):
        return sketch.relu(x, kind, draw(st.booleans()))
    return sketch.unary(x, kind)
