"""Networks whose channels stand in front of rows and columns, as converters from PyTorch and ONNX write them: a TRANSPOSE
on either side of each layer that wants channels last. And random ones with TRANSPOSEs of any order anywhere."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations

import numpy as np
from hypothesis import strategies as st
from random_graphs import Sketch, Value

LAST, FIRST = (0, 2, 3, 1), (0, 3, 1, 2)


class Layers:
    """Layers in a file's order of dimensions: with `first`, channels are dimension 1 of all activations."""

    def __init__(self, seed: int, first: bool, dtype: str = "int8"):
        self.sketch, self.first = Sketch(seed, dtype=dtype), first

    def start(self, rows: int, columns: int, channels: int) -> tuple[Value, Value]:
        """The model's input, whose channels are last, and the tensor for the layers."""
        image = self.sketch.value((1, rows, columns, channels))
        return image, self.sketch.transpose(image, FIRST) if self.first else image

    def end(self, x: Value) -> Value:
        """An output whose channels are last."""
        return self.sketch.transpose(x, LAST) if self.first else x

    def image(self, x: Value, layer: Callable[..., Value], *args, **options) -> Value:
        """A layer that requires channels last."""
        if not self.first:
            return layer(x, *args, **options)
        y = layer(self.sketch.transpose(x, LAST), *args, **options)
        return self.sketch.transpose(y, FIRST)

    def channels(self, x: Value, kind: str) -> Value:
        shape = (x.shape[1], 1, 1) if self.first else (x.shape[3],)
        return self.sketch.with_constant(x, kind, shape)

    def mean(self, x: Value) -> Value:
        """A mean over rows and columns, which keep size 1."""
        if not self.first:
            return self.sketch.mean(x, keep_dims=True)
        y = self.sketch.value((1, x.shape[1], 1, 1))
        axes = self.sketch.constant([2, 3])
        self.sketch.model.op("MEAN", [x.index, axes], [y.index], keep_dims=True)
        return y


def three_convolutions(first: bool) -> bytes:
    """Three convolutions between TRANSPOSEs, a separate activation, a residual."""
    n = Layers(3, first)
    image, x = n.start(16, 16, 3)
    x = n.image(x, n.sketch.conv, 8, (3, 3), activation="RELU")
    y = n.sketch.relu(n.image(x, n.sketch.conv, 8, (3, 3)), same=False)
    x = n.sketch.add(x, n.image(y, n.sketch.conv, 8, (3, 3)))
    return n.sketch.build([image], [n.end(x)])


def classifier(first: bool) -> bytes:
    """Inverted residuals, batch normalizations, poolings, a mean over rows and columns, and a classifier."""
    n = Layers(8, first)
    s = n.sketch
    image, x = n.start(24, 24, 3)
    x = n.image(x, s.conv, 8, (3, 3), (2, 2), activation="RELU6")
    for stride in (1, 2, 1):
        y = n.channels(n.image(x, s.conv, 24, (1, 1)), "MUL")
        y = n.image(s.relu(y, "RELU6"), s.depthwise, (3, 3), (stride, stride), activation="RELU6")
        y = n.image(y, s.conv, 8, (1, 1))
        x = s.add(x, y) if stride == 1 else y
    x = s.unary(n.image(x, s.conv, 16, (1, 1)), "HARD_SWISH")
    return s.build([image], [s.softmax(s.fully_connected(n.mean(x), 5))])


def flattened(first: bool) -> bytes:
    """A LeNet: convolutions, poolings, and a dense layer on the flattened image."""
    n = Layers(5, first)
    s = n.sketch
    image, x = n.start(14, 14, 3)
    x = n.image(x, s.conv, 6, (3, 3), activation="RELU")
    x = n.image(x, s.pool, "MAX_POOL_2D", (2, 2), (2, 2))
    x = n.image(s.relu(n.image(x, s.conv, 8, (3, 3))), s.pool, "MAX_POOL_2D", (2, 2), (2, 2))
    return s.build([image], [s.fully_connected(n.sketch.fully_connected(x, 16, "RELU"), 4)])


def planes(dtype: str = "int8") -> bytes:
    """A convolution whose input and outputs are planar images."""
    n = Layers(4, True, dtype)
    image = n.sketch.value((1, 3, 10, 8))
    x = n.image(image, n.sketch.conv, 6, (3, 3))
    y = n.image(n.sketch.relu(x, same=False), n.sketch.conv, 4, (3, 3), (2, 2))
    return n.sketch.build([image], [x, y])


TWINS: dict[str, Callable[[bool], bytes]] = {f.__name__: f for f in (three_convolutions, classifier, flattened)}


@st.composite
def transposed_networks(draw, most: int = 12) -> bytes:
    """Up to `most` operators; half of them are TRANSPOSEs of four dimensions in any order, or their inverses."""
    s = Sketch(draw(st.integers(0, 2**20)), far=True)
    image = s.value((1, *(draw(st.integers(1, 6)) for _ in range(3))))
    there = [image]
    orders: list[tuple[int, ...]] = [(0, 2, 3, 1), (0, 3, 1, 2), (0, 2, 3, 1), (0, 3, 1, 2), *permutations(range(4))]
    for _ in range(draw(st.integers(2, most))):
        if draw(st.integers(0, 4)) == 0:
            there[-1] = _ones_moved(draw, s, there[-1])
        x = there[-1 - draw(st.integers(0, min(2, len(there) - 1)))]
        kind = draw(st.sampled_from(["transpose"] * 6 + list(_KINDS)))
        if kind == "transpose":
            there.append(s.transpose(x, draw(st.sampled_from(orders))))
        else:
            there += _KINDS[kind](draw, s, x, there)
    outputs = [*draw(st.lists(st.sampled_from(there[1:]), max_size=2)), there[-1]]
    ends = {"none": lambda x: x, "dense": lambda x: s.fully_connected(s.reshape(x, (1, int(np.prod(x.shape)))), 3)}
    outputs.append(ends[draw(st.sampled_from(list(ends)))](there[-1]))
    return s.build([image], list(dict.fromkeys(outputs)))


def _ones_moved(draw, s: Sketch, x: Value) -> Value:
    """Drops the dimensions of size 1, applies an elementwise operator, and inserts them at other places."""
    long = [dim for dim in x.shape if dim != 1]
    shape = list(long)
    for _ in range(4 - len(long)):
        shape.insert(draw(st.integers(0, len(shape))), 1)
    if shape[0] != 1:
        return x
    return s.reshape(s.relu(s.reshape(x, long or [1])), shape)


def _constant(draw, s: Sketch, x: Value) -> list[Value]:
    """An operator with a constant of any shape that broadcasts, possibly with fewer dimensions."""
    shape = tuple(dim if draw(st.booleans()) else 1 for dim in x.shape)
    return [s.with_constant(x, draw(st.sampled_from(["ADD", "MUL", "MAXIMUM"])), shape[draw(st.integers(0, 3)) :])]


def _joined(draw, s: Sketch, x: Value, there: list[Value]) -> list[Value]:
    twins = [v for v in there if v.shape == x.shape]
    return [s.add(x, draw(st.sampled_from(twins)), kind=draw(st.sampled_from(["ADD", "MUL"])))]


def _padded(draw, s: Sketch, x: Value) -> list[Value]:
    amounts = [[0, 0], *([draw(st.integers(0, 2)), draw(st.integers(0, 2))] for _ in range(3))]
    shape = [dim + sum(amount) for dim, amount in zip(x.shape, amounts, strict=True)]
    return [s.moved("PAD", x, shape, amounts)]


def _reduced(draw, s: Sketch, x: Value) -> list[Value]:
    axes = draw(st.sampled_from([[2, 3], [1, 2], [3], [1]]))
    y = s.value([1 if axis in axes else dim for axis, dim in enumerate(x.shape)])
    s.model.op("MEAN", [x.index, s.constant(axes)], [y.index], keep_dims=True)
    return [y]


def _sliced(draw, s: Sketch, x: Value) -> list[Value]:
    begin = [draw(st.integers(0, dim - 1)) for dim in x.shape]
    return [s.slice(x, begin, [draw(st.integers(1, dim - b)) for dim, b in zip(x.shape, begin, strict=True)])]


def _split(draw, s: Sketch, x: Value) -> list[Value]:
    axes = [axis for axis, dim in enumerate(x.shape) if dim % 2 == 0]
    return s.split(x, draw(st.sampled_from(axes)), 2) if axes else [s.relu(x)]


_KINDS: dict[str, Callable] = {
    "relu": lambda draw, s, x, there: [s.relu(x, same=draw(st.booleans()))],
    "unary": lambda draw, s, x, there: [s.unary(x, draw(st.sampled_from(["TANH", "LOGISTIC", "ABS"])))],
    "constant": lambda draw, s, x, there: _constant(draw, s, x),
    "joined": _joined,
    "pad": lambda draw, s, x, there: _padded(draw, s, x),
    "concat": lambda draw, s, x, there: [s.concatenate([x, s.relu(x)], draw(st.integers(1, 3)))],
    "reduce": lambda draw, s, x, there: _reduced(draw, s, x),
    "slice": lambda draw, s, x, there: _sliced(draw, s, x),
    "split": lambda draw, s, x, there: _split(draw, s, x),
    "softmax": lambda draw, s, x, there: [s.softmax(x)],
    "conv": lambda draw, s, x, there: [s.conv(x, draw(st.integers(1, 6)), (2, 2))],
    "pool": lambda draw, s, x, there: [s.pool(x, "MAX_POOL_2D", (2, 2), (1, 1), "SAME")],
}
