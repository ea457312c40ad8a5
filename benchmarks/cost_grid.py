"""The operators whose kernels are measured: random draws, always the same, over what models have."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from other_dtypes import other_dtype

from tinyfuse.ir import Graph, Op, Quant, Tensor
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.row_sum import AverageOfSum
from tinyfuse.ops.table import Table
from tinyfuse.rewrite.split_full_height import split_dense, split_full_height

#: multiply-accumulates of one operator, where it has any, and elements of its output: enough that its
#: call hardly counts, and few enough that a firmware of a hundred runs in seconds
MACS, MOST_ELEMENTS = range(3_000, 800_000), 8_000

_CHANNELS = (1, 3, 4, 8, 10, 12, 16, 16, 24, 32, 32, 48, 64, 64, 96, 128)
_EXTENTS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 13, 16, 20, 24, 25, 32)
_ACTIVATIONS = ("NONE", "RELU", "RELU6")


def operators(kind: str, count: int) -> list[Op]:
    """`count` operators of a kind; none for a kind that no grid is here for."""
    if kind not in _DRAWS:
        return []
    rng, found = random.Random(kind), []
    while len(found) < count:
        op = _DRAWS[kind](rng, kind)
        family = FAMILIES[kind]
        fits = op.output.elements <= MOST_ELEMENTS and (not family.macs(op) or family.macs(op) in MACS)
        if fits and not any(rule.broken(op) for rule in family.rules):
            found.append(op)
    return found


_names: Iterator[int] = iter(range(10**9))


def tensor(shape, scale: float = 0.05, zero_point: int = -128, dtype: str = "int8", data=None) -> Tensor:
    """A tensor with a name and an index of its own."""
    number = next(_names)
    quant = Quant((float(np.float32(scale)),), (zero_point,)) if scale else None
    return Tensor(f"t{number}", tuple(shape), dtype, quant, data, number)


def operator(kind: str, inputs, output: Tensor, **options) -> Op:
    return Op(kind, tuple(inputs), (output,), FAMILIES[kind].attributes(options))


def like(given: Tensor) -> Tensor:
    """A tensor of that shape, dtype and quantization, with a name and an index of its own."""
    number = next(_names)
    return replace(given, name=f"t{number}", index=number)


def rectifier(output: Tensor) -> Op:
    """A RELU that makes `output` of a tensor like it, row by row."""
    return operator("RELU", [like(output)], output)


def chain(length: int) -> list[Op]:
    """`length` cheap operators, each of which reads the one before by rows: RELU6, and pools of three
    rows."""
    ops, x = [], tensor((1, 16, 2, 4))
    for number in range(length):
        y = tensor(x.shape)
        if number % 3 == 1:
            window = {"filter_height": 3, "filter_width": 1, "stride_h": 1, "stride_w": 1}
            ops.append(operator("MAX_POOL_2D", [x], y, padding="SAME", **window))
        else:
            ops.append(operator("RELU6", [x], y))
        x = y
    return ops


def _image(rng: random.Random) -> tuple[int, int, int, int]:
    """One in five is a column: what models of signals have."""
    width = 1 if rng.random() < 0.2 else rng.choice(_EXTENTS)
    return 1, rng.choice(_EXTENTS), width, rng.choice(_CHANNELS)


def _weights(rng: random.Random, shape, channels: int, axis: int) -> list[Tensor]:
    values = np.random.default_rng(rng.randrange(2**31))
    # -128, which converters don't make, keeps kernels from their fastest form
    least = -128 if rng.random() < 0.15 else -127
    data = values.integers(least, 128, shape).astype(np.int8)
    scales = tuple(map(float, values.uniform(0.002, 0.004, channels).astype(np.float32)))
    number = next(_names)
    weights = Tensor(f"w{number}", tuple(shape), "int8", Quant(scales, (0,) * channels, axis), data, number)
    bias = tensor((channels,), 0.0, 0, "int32", values.integers(-999, 1000, channels).astype(np.int32))
    biased = Quant(tuple(0.05 * s for s in scales), (0,) * channels, 0)
    return [weights, Tensor(bias.name, bias.shape, "int32", biased, bias.data, bias.index)]


def drawn_for(kernel: str, kind: str, count: int) -> list[Op]:
    """The operators that a kernel of that name is measured on: in the dtype that its name ends in. Of int16 layers
    every third has a bias of int32, if it may."""
    if "_lut_" in kernel:
        return _looked_up(kind, count)
    found = operators(kind, count)
    if kernel.endswith("_s4"):
        return [of_int4(op) for op in found]
    if kernel.endswith("_f32"):
        return _allowed(other_dtype(op, "float32") for op in found)
    if not kernel.endswith("_s16"):
        return found
    if "_s8_" in kernel:
        return _allowed(replace(op, outputs=other_dtype(op, "int16").outputs) for op in found)
    narrow = kind in ("CONV_2D", "FULLY_CONNECTED")
    return _allowed(
        other_dtype(op, "int16", "int32" if narrow and i % 3 == 2 else "int64") for i, op in enumerate(found)
    )


def _allowed(ops: Iterable[Op]) -> list[Op]:
    return [op for op in ops if not any(rule.broken(op) for rule in FAMILIES[op.kind].rules)]


#: layers of so few pixels that looking weights up is most of the work, or much of it
_FEW_PIXELS = {"CONV_2D": 8, "DEPTHWISE_CONV_2D": 24, "FULLY_CONNECTED": 2}


def _looked_up(kind: str, count: int) -> list[Op]:
    every = operators(kind, 20 * count)
    small = [op for op in every if op.output.elements // op.output.shape[-1] <= _FEW_PIXELS[kind]]
    return [_of_few_values(op, number) for number, op in enumerate(small[:count])]


def _of_few_values(op: Op, seed: int) -> Op:
    """The same layer with weights of 2 to 16 values, every other time of each channel its own; of depthwise
    convolutions all channels share them."""
    rng, weights = np.random.default_rng(seed), op.operand(1)
    of_channel = weights.values.reshape(weights.shape[0], -1).copy()
    own = weights.shape[0] > 1 and seed % 2 == 0
    for rows in of_channel if own else [of_channel]:
        values = rng.choice(np.unique(of_channel), 2 + seed // 2 % 15)
        rows[:] = rng.choice(np.append(values, np.int8(0)) if op.kind == "DEPTHWISE_CONV_2D" else values, rows.shape)
    few = replace(weights, data=of_channel.reshape(weights.shape))
    return replace(op, inputs=(op.input, few, *op.inputs[2:]))


def of_int4(op: Op) -> Op:
    """The same layer with weights of int4."""
    weights = op.operand(1)
    data = np.clip(np.round(weights.values / 16), -7, 7).astype(np.int8)
    quant = replace(weights.quantization, scale=tuple(16 * scale for scale in weights.quantization.scale))
    coarse = replace(weights, dtype="int4", data=data, quant=quant)
    return replace(op, inputs=(op.input, coarse, *op.inputs[2:]))


def _draw_convolution(rng: random.Random, kind: str) -> Op:
    """One convolution in three is a first layer: of one or three channels."""
    shape = _image(rng)
    depthwise = kind == "DEPTHWISE_CONV_2D"
    first = not depthwise and rng.random() < 0.33
    if first:
        shape = (1, rng.choice(_EXTENTS), rng.choice(_EXTENTS), rng.choice((1, 3)))
    pointwise = not depthwise and not first and rng.random() < 0.5
    kernel = (1, 1) if pointwise else rng.choice([*[(3, 3)] * 5, (5, 5), (2, 2), (3, 1), (1, 3), (10, 4), (7, 1)])
    stride = (1, 1) if pointwise else rng.choice([(1, 1), (1, 1), (2, 2), (2, 1)])
    out_c = shape[3] if depthwise else rng.choice(_CHANNELS)
    padding = "SAME" if kernel[0] > shape[1] or kernel[1] > shape[2] else rng.choice(["SAME", "VALID"])
    dims = [
        -(-dim // s) if padding == "SAME" else (dim - k) // s + 1
        for dim, k, s in zip(shape[1:3], kernel, stride, strict=True)
    ]
    weights_shape = (1, *kernel, out_c) if depthwise else (out_c, *kernel, shape[3])
    weights = _weights(rng, weights_shape, out_c, 3 if depthwise else 0)
    activation = rng.choice(_ACTIVATIONS)
    output = tensor((1, *dims, out_c), 0.08, -128 if activation != "NONE" else rng.randrange(-20, 20))
    return operator(
        kind, [tensor(shape), *weights], output, padding=padding, stride_h=stride[0], stride_w=stride[1],
        depth_multiplier=1, fused_activation_function=activation,
    )  # fmt: skip


def _draw_fully_connected(rng: random.Random, kind: str) -> Op:
    # pruned channels leave depths that are no multiple of four, which kernels of their own serve
    in_c = rng.choice((*_CHANNELS, 200, 256, 320, 640, 22, 45, 61, 131))
    out_c = rng.choice((*_CHANNELS, 2, 6))
    batches = rng.choice([1, 1, 1, 2, 5])
    weights, bias = _weights(rng, (out_c, in_c), 1, 0)
    bias_data = np.resize(bias.data, out_c)
    bias = Tensor(bias.name, (out_c,), "int32", bias.quant, bias_data, bias.index)
    activation = rng.choice(_ACTIVATIONS)
    output = tensor((batches, out_c), 0.08, -128 if activation != "NONE" else 5)
    return operator(kind, [tensor((batches, in_c)), weights, bias], output, fused_activation_function=activation)


def _draw_pool(rng: random.Random, kind: str) -> Op:
    shape = _image(rng)
    size = rng.choice([(2, 2), (3, 3), (2, 1), shape[1:3], shape[1:3]])
    stride = size if rng.random() < 0.5 else (1, 1)
    size = (min(size[0], shape[1]), min(size[1], shape[2]))
    dims = [(dim - k) // s + 1 for dim, k, s in zip(shape[1:3], size, stride, strict=True)]
    return operator(
        kind, [tensor(shape)], tensor((1, *dims, shape[3])), padding="VALID", filter_height=size[0],
        filter_width=size[1], stride_h=stride[0], stride_w=stride[1],
    )  # fmt: skip


def _draw_binary(rng: random.Random, kind: str) -> Op:
    shape = _image(rng)
    data = np.random.default_rng(rng.randrange(2**31)).integers(-127, 128, shape[3:]).astype(np.int8)
    constant = tensor(shape[3:], 0.03, 3, data=data)
    other = constant if rng.random() < 0.5 else tensor(shape, 0.04, 5)
    return operator(kind, [tensor(shape), other], tensor(shape, 0.07, 1), fused_activation_function="NONE")


def _draw_unary(rng: random.Random, kind: str) -> Op:
    shape = _image(rng)
    scale, zero_point = {"LOGISTIC": (1 / 256, -128)}.get(kind, rng.choice([(0.05, -128), (0.07, 3)]))
    return operator(kind, [tensor(shape)], tensor(shape, scale, zero_point))


def _draw_tables(rng: random.Random, kind: str) -> Op:
    """One in three gives int16."""
    shape, dtype = _image(rng), rng.choice(["int8", "int8", "int16"])
    channels = () if kind == "TABLE" else shape[3:]
    data = np.random.default_rng(rng.randrange(2**31)).integers(-128, 128, (*channels, 256)).astype(dtype)
    constant = tensor(data.shape, 0.0, 0, dtype, data)
    return Op(kind, (tensor(shape), constant), (tensor(shape, dtype=dtype),), Table(()))


def _draw_dequantize(rng: random.Random, kind: str) -> Op:
    shape = _image(rng)
    return operator(kind, [tensor(shape)], tensor(shape, 0.0, 0, "float32"))


def _draw_reshape(rng: random.Random, kind: str) -> Op:
    shape = _image(rng)
    flat = tensor((1, shape[1] * shape[2] * shape[3]))
    return operator(kind, [tensor(shape)], flat, new_shape=flat.shape)


def _draw_softmax(rng: random.Random, kind: str) -> Op:
    shape = (rng.choice([1, 1, 4, 9]), rng.choice([2, 3, 5, 10, 12, 20, 64]))
    return operator(kind, [tensor(shape)], tensor(shape, 1 / 256, -128), beta=1.0)


def _draw_pad(rng: random.Random, kind: str) -> Op:
    shape = _image(rng)
    amounts = [(0, 0), (rng.randrange(3), rng.randrange(3)), (rng.randrange(3), rng.randrange(3)), (0, 0)]
    data = np.array(amounts, np.int32)
    output = tensor([dim + sum(amount) for dim, amount in zip(shape, amounts, strict=True)])
    return operator(kind, [tensor(shape), tensor((4, 2), 0.0, 0, "int32", data)], output)


def _draw_concatenation(rng: random.Random, kind: str) -> Op:
    shape = _image(rng)
    inputs = [tensor((*shape[:3], rng.choice(_CHANNELS))) for _ in range(rng.choice([2, 2, 3]))]
    output = tensor((*shape[:3], sum(t.shape[3] for t in inputs)))
    return operator(kind, inputs, output, axis=3)


def _draw_mean(rng: random.Random, kind: str) -> Op:
    shape = _image(rng)
    axes = tensor((2,), 0.0, 0, "int32", np.array([1, 2], np.int32))
    return operator(kind, [tensor(shape), axes], tensor((1, shape[3]), 0.05, -120), keep_dims=False)


def _draw_row_sum(rng: random.Random, kind: str) -> Op:
    shape = _image(rng)
    return operator(kind, [tensor(shape)], tensor((1, shape[1], 1, shape[3]), 0.0, 0, "int32"))


def _draw_average(rng: random.Random, kind: str) -> Op:
    shape = _image(rng)
    sums = tensor((1, shape[1], 1, shape[3]), 0.0, 0, "int32")
    return Op(kind, (sums,), (tensor((1, 1, 1, shape[3])),), AverageOfSum(shape[1] * shape[2]))


def _draw_split(rng: random.Random, kind: str) -> Op:
    """A part of a layer whose window is as high as its image (rewrite/split_full_height.py)."""
    if kind == "MEAN_OF_SUM":
        layer = _draw_mean(rng, "MEAN")
    else:
        layer_kind = rng.choice(["CONV_2D", "DEPTHWISE_CONV_2D"])
        shape = (1, rng.choice([3, 4, 6, 9, 13]), *_image(rng)[2:])
        kernel = (shape[1], min(shape[2], rng.choice([1, 3, 5])))
        out_c = shape[3] if layer_kind == "DEPTHWISE_CONV_2D" else rng.choice(_CHANNELS)
        weights = (1, *kernel, out_c) if layer_kind == "DEPTHWISE_CONV_2D" else (out_c, *kernel, shape[3])
        layer = operator(
            layer_kind, [tensor(shape), *_weights(rng, weights, out_c, 3 if weights[0] == 1 else 0)],
            tensor((1, 1, shape[2] - kernel[1] + 1, out_c), 0.08), padding="VALID", stride_h=1, stride_w=1,
            depth_multiplier=1, fused_activation_function="RELU",
        )  # fmt: skip
    graph = Graph("grid", "", (layer,), (layer.input,), (layer.output,))
    parts = [op for split in (split_full_height, split_dense) for op in split(graph).ops if op.kind == kind]
    return parts[0] if parts else _draw_split(rng, kind)


_DRAWS: dict[str, Callable[[random.Random, str], Op]] = {
    "CONV_2D": _draw_convolution,
    "DEPTHWISE_CONV_2D": _draw_convolution,
    "FULLY_CONNECTED": _draw_fully_connected,
    "AVERAGE_POOL_2D": _draw_pool,
    "MAX_POOL_2D": _draw_pool,
    "ADD": _draw_binary,
    "MUL": _draw_binary,
    "RELU": _draw_unary,
    "RELU6": _draw_unary,
    "LOGISTIC": _draw_unary,
    "QUANTIZE": _draw_unary,
    "TABLE": _draw_tables,
    "CHANNEL_TABLES": _draw_tables,
    "DEQUANTIZE": _draw_dequantize,
    "RESHAPE": _draw_reshape,
    "SOFTMAX": _draw_softmax,
    "PAD": _draw_pad,
    "CONCATENATION": _draw_concatenation,
    "MEAN": _draw_mean,
    "ROW_SUM": _draw_row_sum,
    "AVERAGE_OF_SUM": _draw_average,
    "ROW_MACS": _draw_split,
    "OUTPUT_OF_SUMS": _draw_split,
    "MEAN_OF_SUM": _draw_split,
}
