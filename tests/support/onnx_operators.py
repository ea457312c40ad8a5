"""One operator between DequantizeLinear and QuantizeLinear, with random attributes, shapes and quantization.

operator_file("Sigmoid", 3)    the bytes of a file; kind and seed say all of it
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from onnx_draw import Builder, OperatorDraw
from onnx_movement import concat, gather, pad, reshape, resize_linear, resize_nearest, slice_, split, transpose
from onnx_networks import Value
from onnx_qlinear import QLINEAR

MICROSOFT = "com.microsoft"
#: newest operator set that onnxruntime 1.32 calls its own
NEWEST = 24


def operator_file(kind: str, seed: int) -> bytes:
    """A file of one operator of a kind, one of OPERATORS."""
    draw = OperatorDraw(f"{kind} {seed}")
    least, build = OPERATORS[kind]
    draw.w.opset = draw.rng.choice([v for v in (10, 11, 12, 13, 15, 17, 18, 20, 21, 23, NEWEST) if v >= least])
    return draw.w.model(build(draw), real=draw.rng.random() < 0.2)


def unary(kind: str, spread: float = 0.0, domain: str = "", **attributes: Callable[[random.Random], Any]) -> Builder:
    """A function of one value with attributes that are drawn. spread: of results; 0: that of inputs."""

    def build(d: OperatorDraw) -> list[Value]:
        name, value = d.real(d.shape())
        drawn = {key: draw(d.rng) for key, draw in attributes.items() if d.rng.random() < 0.8}
        made = d.w.node(kind, [name], **drawn, **({"domain": domain} if domain else {}))[0]
        return d.stored(made, value.shape, spread or value.scale * 128)

    return build


def _alpha(rng: random.Random) -> float:
    return float(np.float32(rng.choice((0.125, 0.2, rng.uniform(0.01, 1.5)))))


def clip(d: OperatorDraw) -> list[Value]:
    name, value = d.real(d.shape())
    low, high = sorted(d.rng.uniform(-6, 6) for _ in range(2))
    if d.w.opset < 11:
        made = d.w.node("Clip", [name], min=low, max=high)[0]
    else:
        bounds = [d.w.constant(np.float32(low)) if d.rng.random() < 0.8 else "", d.w.constant(np.float32(high))]
        made = d.w.node("Clip", [name, *bounds])[0]
    return d.like(made, value.shape, value)


def chain(d: OperatorDraw) -> list[Value]:
    """Some functions one after the other, and numbers added and multiplied between them."""
    name, value = d.real(d.shape())
    for _ in range(d.rng.randint(2, 4)):
        kind = d.rng.choice(("Relu", "Tanh", "HardSigmoid", "LeakyRelu", "Abs", "Neg", "Add", "Mul", "Sub", "Div"))
        more = [d.w.constant(np.float32(d.rng.uniform(0.2, 3)))] if kind in ("Add", "Mul", "Sub", "Div") else []
        inputs = [name, *more]
        d.rng.shuffle(inputs)
        name = d.w.node(kind, inputs if kind != "Div" else [name, *more])[0]
    return d.stored(name, value.shape, 2.0)


def gate(kind: str) -> Builder:
    """x * f(x), as exporters write Swish, HardSwish and others."""

    def build(d: OperatorDraw) -> list[Value]:
        name, value = d.real(d.shape())
        inputs = [name, d.w.node(kind, [name])[0]]
        d.rng.shuffle(inputs)
        return d.stored(d.w.node("Mul", inputs)[0], value.shape, value.scale * 128)

    return build


def erf_gelu(d: OperatorDraw) -> list[Value]:
    """Gelu as exporters write it before operator set 20."""
    name, value = d.real(d.shape())
    half, one, root = (d.w.constant(np.float32(number)) for number in (0.5, 1.0, 2**0.5))
    erf = d.w.node("Erf", [d.w.node("Div", [name, root])[0]])[0]
    made = d.w.node("Mul", [d.w.node("Mul", [name, d.w.node("Add", [erf, one])[0]])[0], half])[0]
    return d.stored(made, value.shape, value.scale * 128)


def _broadcast(d: OperatorDraw) -> tuple[tuple[int, ...], tuple[int, ...]]:
    shape = d.shape(d.rng.choice((2, 3, 4)))
    kind = d.rng.randrange(4)
    if kind == 0:
        return shape, tuple(dim if d.rng.random() < 0.6 else 1 for dim in shape)
    return (shape, shape[1:]) if kind == 1 else (shape, shape)


def binary(kind: str) -> Builder:
    def build(d: OperatorDraw) -> list[Value]:
        a, b = _broadcast(d)
        one, x = d.real(a)
        if d.rng.random() < 0.3:
            two, numbers = d.constant(b)
            if kind == "Div" and not numbers.all():
                two, numbers = d.real(b)[0], np.ones(1)
            spread = float(np.abs(numbers).max())
        else:
            two, y = d.real(b)
            spread = y.scale * 128
        inputs = [one, two]
        if d.rng.random() < 0.5:
            inputs.reverse()
        width = {"Mul": x.scale * 60 * spread, "Div": 2.0}.get(kind, x.scale * 100 + spread)
        return d.stored(d.w.node(kind, inputs)[0], np.broadcast_shapes(a, b), max(width, 0.01))

    return build


def prelu(d: OperatorDraw) -> list[Value]:
    shape = d.shape(d.rng.choice((2, 3, 4)))
    name, value = d.real(shape)
    slopes = (1,) if d.rng.random() < 0.3 else (shape[1], *(1,) * (len(shape) - 2)) if len(shape) > 2 else shape[1:]
    slope = d.constant(slopes, 0.01)[0]
    if d.rng.random() < 0.4:
        slope = d.w.constant(d.arrays.uniform(-0.3, 1.5, slopes).astype(np.float32))
    return d.like(d.w.node("PRelu", [name, slope])[0], shape, value)


def batch_norm(d: OperatorDraw) -> list[Value]:
    shape = d.shape(d.rng.choice((2, 3, 4)))
    name, value = d.real(shape)
    parts = [d.arrays.uniform(low, high, shape[1]).astype(np.float32) for low, high in
             ((0.5, 1.5), (-1, 1), (-1, 1), (0.3, 2))]  # fmt: skip
    made = d.w.node("BatchNormalization", [name, *map(d.w.constant, parts)])[0]
    return d.stored(made, shape, value.scale * 128)


def layer_norm(d: OperatorDraw) -> list[Value]:
    shape = d.shape(d.rng.choice((2, 3)), most=12)
    name, _ = d.real(shape)
    scale, bias = (d.w.constant(d.arrays.uniform(0.5, 1.5, shape[-1:]).astype(np.float32)) for _ in range(2))
    more = [bias] if d.rng.random() < 0.7 else []
    return d.stored(d.w.node("LayerNormalization", [name, scale, *more], axis=-1)[0], shape, 3.0)


def softmax(d: OperatorDraw) -> list[Value]:
    shape = d.shape(d.rng.choice((2, 3, 4)), most=12)
    name, _ = d.real(shape)
    axis = -1 if d.w.opset >= 13 or d.rng.random() < 0.5 else d.rng.randrange(len(shape))
    made = d.w.node(
        "Softmax", [name], **({"axis": axis} if axis != -1 or d.w.opset < 13 or d.rng.random() < 0.5 else {})
    )
    if d.rng.random() < 0.5:
        return d.stored(made[0], shape, 1.0)
    return [d.w.quantize(made[0], Value("", shape, 1 / 256, d.w.low))]


def _image(d: OperatorDraw) -> tuple[str, Value]:
    return d.real(d.shape(d.rng.choice((3, 4)), most=9))


def _pool_window(d: OperatorDraw, value: Value, ceil: bool) -> tuple[dict[str, Any], list[int]]:
    dims = value.shape[2:]
    kernel = [d.rng.randint(1, min(3, size)) for size in dims]
    strides = [d.rng.choice((1, 2)) for _ in dims]
    pads = [d.rng.randint(0, k - 1) for k in kernel * 2]
    out = []
    rank = len(dims)
    for i, size in enumerate(dims):
        room = size + pads[i] + pads[i + rank] - kernel[i]
        count = room // strides[i] + 1
        if ceil and room % strides[i] and count * strides[i] < size + pads[i]:
            count += 1
        out.append(count)
    return {"kernel_shape": kernel, "strides": strides, "pads": pads}, out


def max_pool(d: OperatorDraw) -> list[Value]:
    name, value = _image(d)
    ceil = d.rng.random() < 0.3
    window, out = _pool_window(d, value, ceil)
    made = d.w.node("MaxPool", [name], ceil_mode=int(ceil), **window)[0]
    return d.like(made, (*value.shape[:2], *out), value)


def average_pool(d: OperatorDraw) -> list[Value]:
    name, value = _image(d)
    ceil = d.rng.random() < 0.2
    window, out = _pool_window(d, value, ceil)
    counted = d.rng.random() < 0.5
    if counted and ceil:
        ceil, out = False, [
            (s + window["pads"][i] + window["pads"][i + len(out)] - window["kernel_shape"][i]) // window["strides"][i] + 1
            for i, s in enumerate(value.shape[2:])
        ]  # fmt: skip
    made = d.w.node("AveragePool", [name], ceil_mode=int(ceil), count_include_pad=int(counted), **window)[0]
    return d.like(made, (*value.shape[:2], *out), value)


def global_average(d: OperatorDraw) -> list[Value]:
    name, value = _image(d)
    made = d.w.node("GlobalAveragePool", [name])[0]
    return d.stored(made, (*value.shape[:2], *(1 for _ in value.shape[2:])), value.scale * 64)


def reduce_mean(d: OperatorDraw) -> list[Value]:
    name, value = d.real(d.shape(d.rng.choice((2, 3, 4))))
    rank = len(value.shape)
    axes = sorted(d.rng.sample(range(rank), d.rng.randint(1, rank)))
    if d.rng.random() < 0.4 and rank > 2:
        axes = list(range(2, rank))
    keep = d.rng.random() < 0.5
    shape = [1 if i in axes else dim for i, dim in enumerate(value.shape) if keep or i not in axes]
    if d.w.opset < 18:
        made = d.w.node("ReduceMean", [name], axes=axes, keepdims=int(keep))[0]
    else:
        made = d.w.node("ReduceMean", [name, d.w.constant(np.array(axes, np.int64))], keepdims=int(keep))[0]
    return d.stored(made, shape, value.scale * 80)


def dynamic_matmul(d: OperatorDraw) -> list[Value]:
    rank = d.rng.choice((2, 3, 4))
    batch = tuple(d.rng.randint(1, 3) for _ in range(rank - 2))
    m, k, n = (d.rng.randint(1, 9) for _ in range(3))
    (one, x), (two, y) = d.real((*batch, m, k)), d.real((*batch, k, n))
    spread = x.scale * y.scale * 60 * 60 * k**0.5
    return d.stored(d.w.node("MatMul", [one, two])[0], (*batch, m, n), spread)


def layer_bias(d: OperatorDraw, value: Value, scales: np.ndarray, outs: int) -> str:
    bias = d.arrays.integers(-3000, 3000, outs).astype(np.int32)
    products = (np.float32(value.scale) * scales.astype(np.float32)).astype(np.float32)
    if d.rng.random() < 0.2:
        return d.w.constant((bias * products + d.arrays.uniform(-0.4, 0.4, outs) * products).astype(np.float32))
    if products.size == 1:
        products = products.reshape(())
    parts = [d.w.constant(bias), d.w.constant(products), d.w.constant(np.zeros(products.shape, np.int32))]
    return d.w.node("DequantizeLinear", parts, **({"axis": 0} if products.ndim else {}))[0]


def _weights(d: OperatorDraw, shape: Sequence[int], axis: int) -> tuple[str, np.ndarray]:
    array = d.arrays.integers(-127, 128, tuple(shape)).astype(np.int8)
    per_channel = d.w.opset >= 13 and d.rng.random() < 0.6
    scales = d.arrays.uniform(0.002, 0.02, shape[axis] if per_channel else ())
    return d.w.weights(array, np.asarray(scales, np.float32), axis), np.asarray(scales, np.float32)


def conv(d: OperatorDraw) -> list[Value]:
    name, value = _image(d)
    dims, channels = value.shape[2:], value.shape[1]
    kernel = [d.rng.randint(1, min(3, size)) for size in dims]
    group = d.rng.choice([g for g in (1, 1, 2, channels) if channels % g == 0])
    outs = group * d.rng.randint(1, 4)
    weights, scales = _weights(d, (outs, channels // group, *kernel), 0)
    more: dict[str, Any] = {"group": group, "strides": [d.rng.choice((1, 2)) for _ in dims]}
    if d.rng.random() < 0.4:
        more["auto_pad"] = d.rng.choice(("SAME_UPPER", "SAME_LOWER", "VALID"))
        same = more["auto_pad"] != "VALID"
        out = [-(-(s if same else s - k + 1) // t) for s, k, t in zip(dims, kernel, more["strides"], strict=True)]
    else:
        more["pads"] = [d.rng.randint(0, 2) for _ in range(2 * len(dims))]
        out = [(s + more["pads"][i] + more["pads"][i + len(dims)] - kernel[i]) // more["strides"][i] + 1
               for i, s in enumerate(dims)]  # fmt: skip
    bias = [layer_bias(d, value, scales, outs)] if d.rng.random() < 0.7 else []
    made = d.w.node("Conv", [name, weights, *bias], **more)[0]
    spread = value.scale * float(scales.mean()) * 70 * 60 * int(np.prod([channels // group, *kernel])) ** 0.5
    return d.stored(made, (1, outs, *out), spread)


def conv_transpose(d: OperatorDraw) -> list[Value]:
    name, value = d.real(d.shape(d.rng.choice((3, 4)), most=6))
    dims, channels = value.shape[2:], value.shape[1]
    kernel = [d.rng.randint(1, 4) for _ in dims]
    strides = [d.rng.randint(1, 3) for _ in dims]
    outs = d.rng.randint(1, 5)
    weights, scales = _weights(d, (channels, outs, *kernel), 1)
    pads = [d.rng.randint(0, k - 1) for k in kernel * 2]
    extra = [d.rng.randint(0, s - 1) for s in strides]
    out = [(s - 1) * t + k - pads[i] - pads[i + len(dims)] + extra[i]
           for i, (s, t, k) in enumerate(zip(dims, strides, kernel, strict=True))]  # fmt: skip
    if min(out) < 1:
        pads = [0] * len(pads)
        out = [(s - 1) * t + k + e for s, t, k, e in zip(dims, strides, kernel, extra, strict=True)]
    bias = [layer_bias(d, value, scales, outs)] if d.rng.random() < 0.7 else []
    more = {"strides": strides, "pads": pads, "output_padding": extra}
    made = d.w.node("ConvTranspose", [name, weights, *bias], **more)[0]
    spread = value.scale * float(scales.mean()) * 70 * 60 * int(np.prod([channels, *kernel])) ** 0.5
    return d.stored(made, (1, outs, *out), spread)


def gemm(d: OperatorDraw) -> list[Value]:
    name, value = d.real(d.shape(2, most=12))
    outs, flip = d.rng.randint(1, 9), d.rng.random() < 0.5
    size = value.shape[-1]
    weights, scales = _weights(d, (outs, size) if flip else (size, outs), 0 if flip else 1)
    bias = [layer_bias(d, value, scales, outs)] if d.rng.random() < 0.7 else []
    made = d.w.node("Gemm", [name, weights, *bias], transB=int(flip))[0]
    return d.stored(made, (1, outs), value.scale * float(scales.mean()) * 70 * 60 * size**0.5)


def matmul(d: OperatorDraw) -> list[Value]:
    name, value = d.real(d.shape(d.rng.choice((2, 3, 4)), most=9))
    outs = d.rng.randint(1, 9)
    weights, scales = _weights(d, (value.shape[-1], outs), 1)
    made = d.w.node("MatMul", [name, weights])[0]
    return d.stored(made, (*value.shape[:-1], outs), value.scale * float(scales.mean()) * 4000 * value.shape[-1] ** 0.5)


#: kind -> (oldest operator set that has it, or that quantizes it, and the function that draws it)
OPERATORS: dict[str, tuple[int, Builder]] = {
    "Relu": (10, unary("Relu")),
    "LeakyRelu": (10, unary("LeakyRelu", alpha=_alpha)),
    "HardSigmoid": (10, unary("HardSigmoid", 1.0, alpha=_alpha, beta=_alpha)),
    "HardSwish": (15, unary("HardSwish")),
    "Sigmoid": (10, unary("Sigmoid", 1.0)),
    "Tanh": (10, unary("Tanh", 1.0)),
    "Erf": (10, unary("Erf", 1.0)),
    "Gelu": (20, unary("Gelu", approximate=lambda rng: rng.choice(("none", "tanh")))),
    "com.microsoft.Gelu": (10, unary("Gelu", domain=MICROSOFT)),
    "Elu": (10, unary("Elu", alpha=_alpha)),
    "Softplus": (10, unary("Softplus")),
    "Mish": (18, unary("Mish")),
    "Softsign": (10, unary("Softsign", 1.0)),
    "Exp": (10, unary("Exp", 20.0)),
    "Sqrt": (10, unary("Sqrt")),
    "Abs": (10, unary("Abs")),
    "Neg": (10, unary("Neg")),
    "Floor": (10, unary("Floor")),
    "Ceil": (10, unary("Ceil")),
    "Reciprocal": (10, unary("Reciprocal")),
    "Clip": (10, clip),
    "chain": (10, chain),
    "Swish": (10, gate("Sigmoid")),
    "x HardSigmoid": (10, gate("HardSigmoid")),
    "Gelu by Erf": (10, erf_gelu),
    **{kind: (10, binary(kind)) for kind in ("Add", "Sub", "Mul", "Div", "Max", "Min")},
    "PRelu": (10, prelu),
    "BatchNormalization": (10, batch_norm),
    "LayerNormalization": (17, layer_norm),
    "Softmax": (10, softmax),
    "MaxPool": (12, max_pool),
    "AveragePool": (11, average_pool),
    "GlobalAveragePool": (10, global_average),
    "ReduceMean": (10, reduce_mean),
    "Concat": (10, concat),
    "Split": (10, split),
    "Slice": (10, slice_),
    "Pad": (10, pad),
    "Gather": (10, gather),
    "Transpose": (10, transpose),
    "Reshape": (10, reshape),
    "Resize nearest": (11, resize_nearest),
    "Resize linear": (11, resize_linear),
    "MatMul of activations": (10, dynamic_matmul),
    "Conv": (11, conv),
    "ConvTranspose": (11, conv_transpose),
    "Gemm": (11, gemm),
    "MatMul": (10, matmul),
    **{kind: (10, build) for kind, build in QLINEAR.items()},
}

#: kinds that onnxruntime computes in float32, in an order of sums that depends on the CPU
UNPROVEN = ("LayerNormalization",)
