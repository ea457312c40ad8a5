"""Random networks that are rich in elementwise operators of several inputs: gated units, residuals, squeeze and
excitation, selections, layers whose channels are split, with constants and computed vectors a channel, in front of
layers, sums and means."""

from __future__ import annotations

from hypothesis import strategies as st
from random_graphs import UNARY, Sketch, Value, of_two

#: of two images; PRELU of int8 is no part of loops, and stands between them
_INTEGERS = ("ADD", "ADD", "SUB", "MUL", "MUL", "MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE")
_BINARY = {
    "int8": (*_INTEGERS, "PRELU"), "int16": _INTEGERS, "float32": (*_INTEGERS, "PRELU", "DIV"),
}  # fmt: skip
_UNARY = {
    "int8": UNARY, "int16": ("RELU", "RELU6", "LEAKY_RELU", "LOGISTIC", "TANH"),
    "float32": ("RELU", "RELU6", "LEAKY_RELU", "ABS"),
}  # fmt: skip
_COMPARISONS = ("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL")
_ACTIVATED = ("ADD", "SUB", "MUL")


@st.composite
def fused_loop_networks(
    draw, most_steps: int = 8, dtypes: tuple[str, ...] = ("int8", "int8", "int16", "float32")
) -> bytes:
    """A .tflite with two or three images of one shape, and operators on these and on each other's results."""
    sketch = Sketch(draw(st.integers(0, 2**20)), dtype=draw(st.sampled_from(dtypes)), far=True)
    shape = (1, draw(st.integers(1, 9)), draw(st.integers(1, 7)), draw(st.integers(1, 13)))
    image = sketch.value(shape)
    inner, wanted = [image, _layer(draw, sketch, image)], list[Value]()
    if draw(st.booleans()):
        inner.append(sketch.value(shape))
    inputs = [image, *inner[2:]]
    for _ in range(draw(st.integers(2, most_steps))):
        inner.append(_step(draw, sketch, inner))
    if draw(st.integers(0, 3)) == 0:
        wanted.append(draw(st.sampled_from(inner[len(inputs) :])))  # what somebody outside reads
    end = draw(st.sampled_from(["mean", "layer", "pool", "none"]))
    x = inner[-1]
    if end == "mean":
        x = sketch.mean(x)
    elif end == "layer":
        x = _layer(draw, sketch, x)
    elif end == "pool":
        x = sketch.pool(x, "MAX_POOL_2D", (1, 1), (1, 1))
    return sketch.build(inputs, list(dict.fromkeys([x, *wanted])))


def _layer(draw, sketch: Sketch, x: Value) -> Value:
    """A layer with the same output shape."""
    kind = draw(st.sampled_from(["convolution", "pointwise", "depthwise"]))
    if kind == "depthwise":
        return sketch.depthwise(x, (3, 2))
    return sketch.conv(x, x.shape[3], (3, 3) if kind == "convolution" else (1, 1))


def _step(draw, sketch: Sketch, inner: list[Value]) -> Value:
    """An operator on the last value, and possibly an earlier one."""
    x, other = inner[-1], draw(st.sampled_from(inner))
    others = ["unary", "scalar", "channels", "place", "gate", "select", "layer", "halves"]
    kind = draw(st.sampled_from(["two"] * 5 + others))
    if kind == "two":
        pair = draw(st.permutations([x, other]))
        operator = _of_two(draw, x, other)
        activation = draw(st.sampled_from(["NONE", "NONE", "RELU", "RELU6", "RELU_N1_TO_1"]))
        return sketch.add(*pair, activation if operator in _ACTIVATED else "NONE", operator)
    if kind == "unary":
        return sketch.unary(x, draw(st.sampled_from(_UNARY[x.dtype])))
    if kind in ("scalar", "channels", "place"):
        shape = {"scalar": (), "channels": x.shape[-1:], "place": x.shape[1:]}[kind]
        return sketch.with_constant(x, _of_two(draw, x, x), shape)
    if kind == "gate":
        return sketch.add(x, sketch.mean(other, keep_dims=True), kind=draw(st.sampled_from(("MUL", "SUB", "ADD"))))
    # scales below 1 are a rule of comparisons, which there are none of int16 of
    if kind == "select" and x.dtype != "int16" and max(x.scale, other.scale) < 1:
        return selected(sketch, draw(st.sampled_from(_COMPARISONS)), x, other, draw(st.sampled_from(inner)))
    if kind == "halves":
        return halves(draw, sketch, x)
    return _layer(draw, sketch, x)


def _of_two(draw, x: Value, other: Value) -> str:
    """An operator on two inputs of this kind."""
    return of_two(draw(st.sampled_from(_BINARY[x.dtype])), x, other)


def halves(draw, sketch: Sketch, x: Value) -> Value:
    """A layer of twice the channels; one half is a gate, or continues alone for a while."""
    kernel, channels = draw(st.sampled_from([(1, 1), (3, 2)])), x.shape[3]
    y = sketch.conv(x, 2 * channels, kernel)
    if draw(st.booleans()):
        y = sketch.unary(y, draw(st.sampled_from(_UNARY[y.dtype])))
    if draw(st.booleans()):
        y = sketch.scale_channels(y, draw(st.sampled_from(("MUL", "ADD"))))
    first, second = sketch.split(y, 3, 2)
    if draw(st.booleans()):
        return sketch.add(first, sketch.unary(second, "TANH" if x.dtype != "float32" else "RELU6"), kind="MUL")
    behind = _layer(draw, sketch, second)
    if x.dtype != "float32":
        behind = sketch.requantize_to(behind, first)
    return sketch.conv(sketch.concatenate([first, behind], 3), channels, (1, 1))


def selected(sketch: Sketch, comparison: str, x: Value, other: Value, otherwise: Value) -> Value:
    """SELECT between x and a third image by a comparison of x with another one; the third image's stored values are
    taken unchanged."""
    sketch.names += 1
    condition = sketch.model.tensor(f"c{sketch.names}", x.shape, "bool")
    sketch.model.op(comparison, [x.index, other.index], [condition])
    y = sketch.value(x.shape, x.scale, x.zero_point)
    sketch.model.op("SELECT_V2", [condition, x.index, otherwise.index], [y.index])
    return y
