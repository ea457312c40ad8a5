"""Random networks with many unary functions: chains and DAGs of them, with constants for all channels or for each,
through wider dtypes, after layers and between them."""

from __future__ import annotations

from hypothesis import strategies as st
from random_graphs import BINARY, UNARY, Sketch, Value

#: functions of one float: those that are rounded once or nowhere, and those of libm, which are so by no standard
_REAL = ("HARD_SWISH", "ABS", "NEG", "SQUARE", "FLOOR")
_LIBM = ("LOGISTIC", "TANH", "EXP")
#: magnitude of floats; scales are above 0.01
_LARGEST = 2**31 * 0.01


@st.composite
def tabled_networks(draw, most_steps: int = 7, libm: bool = True) -> bytes:
    """A .tflite of one or two layers, each followed by functions of one int8 value; `libm`: also functions of libm."""
    real = _REAL + _LIBM * libm
    sketch = Sketch(draw(st.integers(0, 2**20)), far=True)
    shape = (draw(st.sampled_from([1, 1, 1, 2])), draw(st.integers(1, 9)), draw(st.integers(1, 7)))
    image = sketch.value((*shape, draw(st.integers(1, 9))))
    x, wanted = image, []
    for _ in range(draw(st.integers(1, 2))):
        x = _layer(draw, sketch, x)
        inner = [x]
        for _ in range(draw(st.integers(1, most_steps))):
            inner.append(_step(draw, sketch, inner, real))
        x = inner[-1]
        if draw(st.integers(0, 3)) == 0:
            wanted.append(draw(st.sampled_from(inner)))  # what somebody outside reads
    if draw(st.booleans()):
        x = sketch.mean(x)
    elif draw(st.integers(0, 3)) == 0:
        sketch.dtype = "int16"
        x = sketch.converted(x)
    return sketch.build([image], list(dict.fromkeys([x, *wanted])))


def _layer(draw, sketch: Sketch, x: Value) -> Value:
    kind = draw(st.sampled_from(["convolution", "pointwise", "depthwise", "none"]))
    if kind == "convolution":
        return sketch.conv(x, draw(st.integers(1, 9)), (3, 2), activation=draw(st.sampled_from(["NONE", "RELU"])))
    if kind == "pointwise":
        return sketch.conv(x, draw(st.integers(1, 9)), (1, 1))
    return sketch.depthwise(x, (2, 3)) if kind == "depthwise" else x


def _step(draw, sketch: Sketch, inner: list[Value], real: tuple[str, ...]) -> Value:
    """One function of the last value, and possibly of an earlier one."""
    x = inner[-1]
    kind = draw(
        st.sampled_from(["unary", "unary", "scalar", "channels", "place", "two", "again", "requantize", "float"])
    )
    if kind == "unary":
        name = draw(st.sampled_from((*UNARY, "RELU", "RELU6")))
        return sketch.relu(x, name, draw(st.booleans())) if "RELU6".startswith(name) else sketch.unary(x, name)
    if kind in ("scalar", "channels", "place"):
        shape = {"scalar": (), "channels": x.shape[-1:], "place": x.shape[1:]}[kind]
        return sketch.with_constant(x, draw(st.sampled_from(BINARY)), shape)
    if kind in ("two", "again"):
        other = x if kind == "again" else draw(st.sampled_from(inner))
        return sketch.add(x, other, kind=draw(st.sampled_from(("MUL", "MUL", *BINARY))))
    return _island(draw, sketch, x, real) if kind == "float" else sketch.requantize(x)


def _island(draw, sketch: Sketch, x: Value, real: tuple[str, ...]) -> Value:
    """A detour through float32. Squares stay below _LARGEST, because TFLM's QUANTIZE is undefined beyond int32."""
    sketch.dtype = "float32"
    y, largest = sketch.converted(x), 256 * x.scale
    for _ in range(draw(st.integers(1, 3))):
        if draw(st.booleans()):
            kind = draw(st.sampled_from([each for each in real if each != "SQUARE" or largest**2 < _LARGEST]))
            y = sketch.unary(y, kind)
            largest = max(largest, largest**2) if kind == "SQUARE" else largest
        else:
            y = sketch.with_constant(y, draw(st.sampled_from(("ADD", "MUL", "MAXIMUM"))), ())
            largest = 4 * (largest + 1)
    if draw(st.booleans()) and largest**3 < _LARGEST:
        y = sketch.add(y, sketch.unary(y, "SQUARE"), kind="MUL")
    sketch.dtype = "int8"
    return sketch.converted(y)
