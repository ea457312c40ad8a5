"""Operators to be measured that are no layers of images: what moves elements, products of matrices, streams, and
transposed convolutions."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
from cost_half_even import half_even
from cost_tensors import CHANNELS, SIZES, image, layer_weights, like, operator, tensor
from stream_models import lstm, real_svdf, svdf

from tinyfuse.frontend.reader import read_tflite
from tinyfuse.ir import Op, Tensor
from tinyfuse.ops.elementwise.merged import merged
from tinyfuse.ops.elementwise.table import Table
from tinyfuse.ops.layers.looked_up import looked_up
from tinyfuse.ops.layers.tiled import TILE_ROWS, tiled
from tinyfuse.ops.matmul.rows_matmul import RowsMatMul

_DTYPES = ("int8", "int16", "float32")


def indexes(values) -> Tensor:
    """A constant of int32."""
    return tensor(np.shape(values), 0.0, 0, "int32", np.array(values, np.int32))


def draw_transpose(rng: random.Random, kind: str) -> Op:
    shape = image(rng)
    order = [0, *rng.sample([1, 2, 3], 3)]
    return operator(kind, [tensor(shape), indexes(order)], tensor([shape[d] for d in order]))


def draw_planes(rng: random.Random, kind: str) -> Op:
    """Few planes of long lines as well as many of short ones."""
    _, rows, width, _ = image(rng)
    width = rng.choice([width, rng.choice([28, 48, 64, 96])])
    planes = rng.choice([2, 3, 3, 4, 6, 8, 16, 24, 32])
    pixels = tensor((1, rows, width, planes))
    lines = replace(tensor((1, rows, planes, width)), planes=planes)
    return operator(kind, [lines], pixels) if kind == "PLANES_TO_ROWS" else operator(kind, [pixels], lines)


def draw_strided_slice(rng: random.Random, kind: str) -> Op:
    """One in two takes every second row and column."""
    shape, step = image(rng), rng.choice([1, 2])
    begin = [0, *(rng.randrange(dim) for dim in shape[1:])]
    strides = [1, step, step, 1]
    count = [-(-(dim - b) // s) for dim, b, s in zip(shape, begin, strides, strict=True)]
    return operator(kind, [tensor(shape), indexes(begin), indexes(shape), indexes(strides)], tensor(count))


def draw_split(rng: random.Random, kind: str) -> Op:
    """Along the channels."""
    shape, parts = image(rng), rng.choice([2, 2, 4])
    part = (*shape[:3], shape[3] // parts)
    outputs = tuple(tensor(part) for _ in range(parts))
    first = operator(kind, [indexes(3), tensor(shape)], outputs[0], num_splits=parts)
    return replace(first, outputs=outputs)


def draw_blocks(rng: random.Random, kind: str) -> Op:
    """SPACE_TO_DEPTH and DEPTH_TO_SPACE by blocks of 2."""
    _, height, width, channels = image(rng)
    deep, wide = (1, height, width, 4 * channels), (1, 2 * height, 2 * width, channels)
    shapes = (wide, deep) if kind == "SPACE_TO_DEPTH" else (deep, wide)
    return operator(kind, [tensor(shapes[0])], tensor(shapes[1]), block_size=2)


def draw_nearest(rng: random.Random, kind: str) -> Op:
    _, height, width, channels = image(rng)
    size, x = (2 * height, 2 * width), tensor((1, height, width, channels))
    output = replace(like(x), shape=(1, *size, channels))
    return operator(kind, [x, indexes(size)], output, align_corners=False, half_pixel_centers=False)


def draw_reduction(rng: random.Random, kind: str) -> Op:
    """Over rows and columns, or over channels; extremes keep the quantization."""
    shape = image(rng)
    axes = rng.choice([(1, 2), (1, 2), (3,)])
    kept = [dim for axis, dim in enumerate(shape) if axis not in axes]
    x = tensor(shape)
    output = replace(like(x), shape=tuple(kept)) if kind.startswith("REDUCE") else tensor(kept, 0.05, -120)
    return operator(kind, [x, indexes(axes)], output, keep_dims=False)


def draw_product(rng: random.Random, kind: str) -> Op:
    """One in two with the right operand stored transposed."""
    batches, rows, depth, columns = rng.choice([1, 1, 2, 4]), *(rng.choice(SIZES) for _ in range(3))
    transposed = rng.random() < 0.5
    right = (batches, columns, depth) if transposed else (batches, depth, columns)
    return operator(
        kind, [tensor((batches, rows, depth), 0.04, 3), tensor(right, 0.03, -4)],
        tensor((batches, rows, columns), 0.3, 5), adj_x=False, adj_y=transposed,
    )  # fmt: skip


def draw_row_product(rng: random.Random, kind: str) -> Op:
    """One in two with the elements of a sum side by side: scores of queries and keys; else sums of values."""
    heads, rows = rng.choice([1, 1, 2, 4]), rng.choice([2, 5, 12])
    depth, columns = (rng.choice([4, 7, 16, 24, 40, 64]) for _ in range(2))
    left, output = tensor((1, rows, heads, depth), 0.04, 3), tensor((1, rows, heads, columns), 3.0, 5)
    if rng.random() < 0.5:
        right, steps = (1, columns, heads, depth), RowsMatMul(heads, depth, heads * depth, 1)
    else:
        right, steps = (1, depth, heads, columns), RowsMatMul(heads, columns, 1, heads * columns)
    return Op(kind, (left, tensor(right, 0.03, -4)), (output,), steps)


def draw_transposed(rng: random.Random, kind: str) -> Op:
    """A transposed convolution; few files of TFLite have a RELU there."""
    _, height, width, in_c = image(rng)
    kernel, stride = rng.choice([((3, 3), 2), ((2, 2), 2), ((4, 4), 2), ((3, 3), 1), ((1, 4), 2), ((5, 5), 2)])
    strides, out_c = (min(stride, kernel[0]), stride), rng.choice(CHANNELS)
    padding = rng.choice(["SAME", "VALID"])
    sizes = zip((height, width), strides, kernel, strict=True)
    size = [dim * s if padding == "SAME" else (dim - 1) * s + k for dim, s, k in sizes]
    weights = layer_weights(rng, (out_c, *kernel, in_c), out_c, 0)
    x, output = tensor((1, height, width, in_c)), tensor((1, *size, out_c), 0.3, 4)
    return operator(
        kind, [indexes(output.shape), weights[0], x, weights[1]], output,
        padding=padding, stride_h=strides[0], stride_w=strides[1],
        fused_activation_function="RELU" if rng.random() < 0.25 else "NONE",
    )  # fmt: skip


# --- streams: operators that keep state ----------------------------------------------------------


def draw_svdf(rng: random.Random, kind: str) -> Op:
    """Of int8 with either state, or of float32."""
    state = rng.choice(["int16", "int8", "float32"])
    inputs, units = rng.choice(CHANNELS), rng.choice(CHANNELS)
    sizes = (rng.choice([1, 1, 2]), inputs, units, rng.choice([1, 2]), rng.choice([2, 4, 8, 10, 32]))
    activation = rng.choice(["RELU", "TANH"])
    return _only(real_svdf(sizes, activation) if state == "float32" else svdf(state, sizes, 0.02))


def draw_lstm(rng: random.Random, kind: str) -> Op:
    shape = (rng.choice([1, 1, 2]), rng.choice([1, 4, 7, 10]), rng.choice(CHANNELS))
    return _only(lstm(shape, rng.choice(CHANNELS), dtype=rng.choice(_DTYPES)))


def _only(model: bytes) -> Op:
    """The operator of a file, with tensors of its own."""
    (op,) = read_tflite("drawn", model).ops
    inputs = tuple(None if tensor is None else like(tensor) for tensor in op.inputs)
    return replace(op, inputs=inputs, outputs=tuple(map(like, op.outputs)))


# --- averages over rows --------------------------------------------------------------------------


def of_dtype(rng: random.Random, given: Tensor) -> Tensor:
    """It in one of the dtypes of data."""
    dtype = rng.choice(_DTYPES)
    if dtype == "int16":
        return tensor(given.shape, 0.001, 0, dtype)
    return given if dtype == "int8" else tensor(given.shape, 0.0, 0, dtype)


def sums_of(given: Tensor) -> str:
    """The dtype of sums over data."""
    return "float32" if given.dtype == "float32" else "int32"


def draw_fused_loop(rng: random.Random, kind: str) -> Op:
    """A loop of one to seven elementwise operators on up to four images, vectors of channels and single values, of one
    dtype."""
    dtype, shape = rng.choice(_DTYPES), image(rng)
    values, ops = [_value(dtype, shape) for _ in range(rng.choice([1, 2, 3, 4]))], list[Op]()
    last = _value(dtype, shape)
    for _ in range(rng.choice([1, 2, 2, 3, 3, 4, 5, 7])):
        ops.append(_elementwise(rng, last, rng.choice(values)))
        last = ops[-1].output
    if rng.random() < 0.25 and dtype != "int16":  # one of two values, by a condition
        condition = operator(rng.choice(["GREATER", "LESS_EQUAL"]), [last, values[0]], tensor(shape, 0.0, 0, "bool"))
        ops += [condition, operator("SELECT_V2", [condition.output, last, values[-1]], _value(dtype, shape))]
    return merged(tuple(ops))


def _constant(data: np.ndarray) -> Tensor:
    return replace(_value("int8", data.shape, 0.03, 3), data=data)


#: of merged operators, besides tables of int8
_FUSED_LOOP_KINDS = {
    "int8": ["ADD", "ADD", "MUL", "MUL", "MAXIMUM", "TABLE", "TABLE", "SQUARED_DIFFERENCE", "CHANNEL_TABLES"],
    "int16": ["ADD", "ADD", "MUL", "MUL", "MAXIMUM", "SQUARED_DIFFERENCE"],
    "float32": ["ADD", "ADD", "MUL", "MUL", "MAXIMUM", "SQUARED_DIFFERENCE", "DIV"],
}


def _value(dtype: str, shape, scale: float = 0.05, zero_point: int = -128) -> Tensor:
    """An activation; `scale` and `zero_point`: as int8 would have them."""
    if dtype == "int8":
        return tensor(shape, scale, zero_point)
    return tensor(shape, scale / 256 if dtype == "int16" else 0.0, 0, dtype)


def _elementwise(rng: random.Random, x: Tensor, other: Tensor) -> Op:
    """An operator on x, and on the other, a constant a channel, or a single one."""
    values = np.random.default_rng(rng.randrange(2**31))
    kind = rng.choice(_FUSED_LOOP_KINDS[x.dtype])
    if "TABLE" in kind:
        channels = () if kind == "TABLE" else x.shape[3:]
        data = values.integers(-128, 128, (*channels, 256)).astype(np.int8)
        return Op(kind, (x, tensor(data.shape, 0.0, 0, "int8", data)), (tensor(x.shape),), Table(()))
    if rng.random() < 0.3:
        size = rng.choice([x.shape[3:], ()])
        data = values.integers(-127, 128, size) * (256 if x.dtype == "int16" else 1)
        other = replace(_value(x.dtype, size, 0.03, 3), data=np.asarray(data, x.dtype))
    # a result of so fine a scale that it is shifted to the left, one in four
    finer = 256 if kind in ("MUL", "SQUARED_DIFFERENCE") and rng.random() < 0.25 else 1
    output = _value(x.dtype, x.shape, rng.choice([0.07, 0.05, 0.02]) / finer, 1)
    fused = {"fused_activation_function": rng.choice(["NONE", "NONE", "RELU"])} if kind in ("ADD", "MUL") else {}
    op = operator(kind, [x, other], output if kind != "MAXIMUM" else _value(x.dtype, x.shape), **fused)
    return half_even(op) if x.dtype == "int8" and kind == "MUL" and rng.random() < 0.5 else op


def draw_tiled(rng: random.Random, kind: str) -> Op:
    """An expansion, a layer with windows and a projection, in tiles of one to four rows and two or eight columns."""
    _, height, width, in_c = image(rng)
    x, parts = tensor((1, height, width + 4, in_c)), list[Op]()
    window, stride = rng.choice([(3, 3), (3, 3), (5, 5), (7, 7), (2, 2)]), rng.choice([(1, 1), (1, 1), (2, 2)])
    expanded = in_c * rng.choice([2, 3, 4])
    for made, out_c, kernel, strides in (
        ("CONV_2D", expanded, (1, 1), (1, 1)),
        (rng.choice(["CONV_2D", "DEPTHWISE_CONV_2D", "DEPTHWISE_CONV_2D"]), expanded, window, stride),
        ("CONV_2D", rng.choice(CHANNELS), (1, 1), (1, 1)),
    ):
        depthwise = made == "DEPTHWISE_CONV_2D"
        shape = (1, *kernel, out_c) if depthwise else (out_c, *kernel, x.shape[3])
        weights = layer_weights(rng, shape, out_c, 3 if depthwise else 0)
        dims = [-(-dim // s) for dim, s in zip(x.shape[1:3], strides, strict=True)]
        activation = rng.choice(["NONE", "RELU"])
        y = tensor((1, *dims, out_c), 0.08, -128 if activation != "NONE" else rng.randrange(-20, 20))
        parts.append(operator(
            made, [x, *weights], y, padding="SAME", stride_h=strides[0], stride_w=strides[1], depth_multiplier=1,
            fused_activation_function=activation,
        ))  # fmt: skip
        x = y
    return tiled(tuple(parts), rng.choice(TILE_ROWS), rng.choice([2, 8]))


def draw_looked_up(rng: random.Random, layer: Op) -> Op:
    """A convolution whose outputs are looked up in a table or in one a channel."""
    channels = rng.choice([(), layer.output.shape[3:]])
    data = np.random.default_rng(rng.randrange(2**31)).integers(-128, 128, (*channels, 256)).astype(np.int8)
    if rng.random() < 0.5:  # of a clamp: steps may be on a line where outputs are on both sides of zero
        data = np.broadcast_to(np.arange(256, dtype=np.uint8).view(np.int8).clip(-20, 99), data.shape).copy()
    return looked_up(layer, Op("TABLE", (layer.output,), (tensor(layer.output.shape),), Table(())), data)
