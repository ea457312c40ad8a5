"""Networks with planar inputs or outputs around channels-last layers: what converters leave of PyTorch and ONNX models
if the file's order is kept at its ends."""

from __future__ import annotations

from hypothesis import strategies as st
from nchw_networks import FIRST, LAST
from random_graphs import Sketch, Value

#: a vector a place, of a sequence of planes [1, C, L]
LINE = (0, 2, 1)


def classifier(rows: int = 96, columns: int = 96, dtype: str = "int8") -> bytes:
    """Three planes as input, strided convolutions, a mean, a dense layer."""
    s = Sketch(3, dtype=dtype)
    image = s.value((1, 3, rows, columns))
    x = s.conv(s.transpose(image, LAST), 8, (3, 3), (2, 2), activation="RELU")
    x = s.conv(s.depthwise(x, (3, 3)), 16, (1, 1), (2, 2))
    x = s.conv(x, 16, (3, 3), (2, 2))
    return s.build([image], [s.fully_connected(s.mean(x, keep_dims=True), 5)])


def segmentation(side: int = 64, planes: int = 1, classes: int = 4, dtype: str = "int8") -> bytes:
    """Planes as input, three convolutions, one output plane for each class."""
    s = Sketch(5, dtype=dtype)
    image = s.value((1, planes, side, side))
    x = s.transpose(image, LAST) if planes > 1 else s.reshape(image, (1, side, side, 1))
    x = s.conv(x, 8, (3, 3), activation="RELU")
    x = s.conv(x, 8, (3, 3), activation="RELU")
    return s.build([image], [s.transpose(s.conv(x, classes, (3, 3)), FIRST)])


def enlarging(side: int = 24, dtype: str = "int8") -> bytes:
    """Super resolution: three planes, and three of twice the rows and columns."""
    s = Sketch(6, dtype=dtype)
    image = s.value((1, 3, side, side))
    x = s.conv(s.transpose(image, LAST), 8, (3, 3), activation="RELU")
    x = s.resize(s.conv(x, 8, (3, 3)), (2 * side, 2 * side), "RESIZE_NEAREST_NEIGHBOR")
    return s.build([image], [s.transpose(s.conv(x, 3, (3, 3)), FIRST)])


def sequence(length: int = 1024, planes: int = 6, filters: int = 16, dtype: str = "int8") -> bytes:
    """Conv1D over [1, C, L]: six signals as input, classes as output."""
    s = Sketch(7, dtype=dtype)
    signals = s.value((1, planes, length))
    x = s.reshape(s.transpose(signals, LINE), (1, 1, length, planes))
    x = s.conv(x, filters, (1, 5), (1, 2), activation="RELU")
    x = s.conv(x, filters, (1, 5), (1, 2), activation="RELU")
    return s.build([signals], [s.fully_connected(s.mean(x), 5)])


def sequence_of_images(length: int = 1024, planes: int = 6, filters: int = 16) -> bytes:
    """Conv1D over an image [1, C, 1, L] with signals [1, D, L] as output."""
    s = Sketch(8)
    signals = s.value((1, planes, 1, length))
    x = s.transpose(signals, LAST)
    x = s.conv(x, filters, (1, 5), activation="RELU")
    x = s.conv(x, planes, (1, 5))
    return s.build([signals], [s.transpose(s.reshape(x, (1, length, planes)), LINE)])


def in_the_middle(dtype: str = "int8") -> bytes:
    """A softmax over columns between channels-last layers."""
    s = Sketch(9, dtype=dtype)
    image = s.value((1, 12, 10, 3))
    x = s.conv(image, 4, (3, 3), activation="RELU")
    x = s.transpose(s.softmax(s.transpose(x, FIRST)), LAST)
    x = s.conv(x, 4, (3, 3))
    return s.build([image], [x])


@st.composite
def planar_networks(draw, most_layers: int = 5) -> bytes:
    """Planar images or sequences, up to `most` layers, and outputs that are planar, interleaved, or both."""
    s = Sketch(draw(st.integers(0, 2**20)), dtype=draw(st.sampled_from(["int8", "int8", "int16", "float32"])), far=True)
    planes, columns = draw(st.integers(2, 20)), draw(st.sampled_from([1, 2, 5, 8, 9, 17]))
    rows = draw(st.integers(2, 12))
    image = s.value((1, planes, rows, columns))
    x, older = s.transpose(image, LAST), []
    ends = [image]
    if draw(st.booleans()):  # another one, which is added to the first
        ends.append(s.value((1, planes, rows, columns)))
        x = s.add(x, s.transpose(ends[1], LAST))
    if draw(st.integers(0, 3)) == 0:
        older.append(s.relu(image, same=False))  # the planes are read as they are, too
    for _ in range(draw(st.integers(0, most_layers))):
        x = _layer(draw, s, x)
        if draw(st.integers(0, 4)) == 0:
            older.append(s.transpose(x, FIRST))
        if draw(st.integers(0, 6)) == 0:
            x = s.transpose(s.softmax(s.transpose(x, FIRST)), LAST)
    kind = draw(st.sampled_from(["planes", "planes", "planes, behind an operator", "pixels", "mean"]))
    if kind == "planes":
        x = s.transpose(x, FIRST)
    elif kind.startswith("planes"):
        x = s.relu(s.transpose(x, FIRST), same=False)
    elif kind == "mean":
        x = s.mean(x)
    return s.build(ends, list(dict.fromkeys([x, *older[:2]])))


def _layer(draw, s: Sketch, x: Value) -> Value:
    size = draw(st.sampled_from([(1, 1), (2, 1), (3, 3), (1, 3)]))
    stride = draw(st.sampled_from([(1, 1), (1, 1), (2, 1), (2, 2)]))
    kind = draw(st.sampled_from(["conv", "conv", "depthwise", "pool", "residual", "resize", "relu"]))
    if kind == "conv":
        return s.conv(x, draw(st.integers(2, 9)), size, stride)
    if kind == "depthwise":
        return s.depthwise(x, size, stride)
    if kind == "pool":
        return s.pool(x, "MAX_POOL_2D", size, stride, "SAME")
    if kind == "residual":
        return s.add(x, s.conv(x, x.shape[3], size))
    if kind == "resize" and x.shape[1] * x.shape[2] < 150:
        return s.resize(x, (2 * x.shape[1], x.shape[2]), "RESIZE_NEAREST_NEIGHBOR")
    return s.relu(x, same=False)


NETWORKS = {f.__name__: f for f in (classifier, segmentation, enlarging, sequence, sequence_of_images, in_the_middle)}
