"""Random CONV_2D, DEPTHWISE_CONV_2D and FULLY_CONNECTED operators, as Op and as .tflite."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from cases.common import add_operator, broken_rules
from tflite_builder import ModelBuilder

from tinyfuse.ir import Op, Quant, Tensor
from tinyfuse.ops.core.convolution import Conv2D, DepthwiseConv2D, padded_dims
from tinyfuse.ops.layers.conv_2d import Conv2DFamily
from tinyfuse.ops.layers.depthwise_conv_2d import DepthwiseConv2DFamily
from tinyfuse.ops.layers.fully_connected import FullyConnected, FullyConnectedFamily

FAMILIES = {f.kind: f for f in (Conv2DFamily(), DepthwiseConv2DFamily(), FullyConnectedFamily())}


@dataclass(frozen=True)
class Shape:
    """Parameters of a case besides random numbers; `groups` for CONV_2D, `multiplier` for depthwise."""

    kind: str
    height: int
    width: int
    channels: int
    out_channels: int
    kernel: tuple[int, int] = (1, 1)
    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    padding: str | tuple[int, int, int, int] = "SAME"
    activation: str = "NONE"
    groups: int = 1
    multiplier: int = 1
    per_channel: bool = True
    bias: bool = True
    weights_zero_point: int = 0
    batch: int = 1
    weights_dtype: str = "int8"


def _f32(value) -> float:
    return float(np.float32(value))


def make_op(shape: Shape, rng: np.random.Generator, extreme: bool = False) -> Op:
    """An operator of this shape with random weights and quantization. `extreme`: weights and biases from the ends of
    their ranges, multipliers far apart."""
    kh, kw = shape.kernel
    if shape.kind == "FULLY_CONNECTED":
        w_shape, axis, fan_in = (shape.out_channels, shape.channels), 0, shape.channels
        in_shape = (shape.height, shape.channels)
    elif shape.kind == "CONV_2D":
        per_group = shape.channels // shape.groups
        w_shape, axis, fan_in = (shape.out_channels, kh, kw, per_group), 0, kh * kw * per_group
        in_shape = (shape.batch, shape.height, shape.width, shape.channels)
    else:
        w_shape, axis, fan_in = (1, kh, kw, shape.channels * shape.multiplier), 3, kh * kw
        in_shape = (shape.batch, shape.height, shape.width, shape.channels)
    out_c = w_shape[axis]
    scales = out_c if shape.per_channel else 1
    low, high = (-128, 128) if shape.weights_zero_point else (-127, 128)
    w_data = rng.integers(low, high, w_shape).astype(np.int8)
    if extreme:
        w_data = rng.choice(np.array([-127, 127, 0, 1], np.int8), w_shape)
    if shape.weights_dtype == "int4":
        w_data >>= 4
    in_scale, in_zero = _f32(rng.uniform(0.01, 0.1)), int(rng.integers(-128, 128))
    out_zero = int(rng.choice([-128, rng.integers(-128, 128), 127]))
    w_scale = tuple(_f32(s) for s in rng.uniform(0.002, 0.02, scales))
    if extreme:
        w_scale = tuple(_f32(s) for s in 10.0 ** rng.uniform(-7, 1, scales))
    typical = 70 if shape.weights_dtype == "int8" else 4
    reach = in_scale * float(np.median(w_scale)) * 70 * typical * np.sqrt(fan_in)
    out_scale = _f32(reach * rng.uniform(0.3, 3) / 128)
    spread = 70 * typical * np.sqrt(fan_in)
    bias_data = rng.integers(-int(spread), int(spread) + 1, out_c).astype(np.int32)
    if extreme:
        bias_data[rng.random(out_c) < 0.2] = rng.choice([-(2**30), 2**30, 2**20, -(2**24)])
    zero_points = (shape.weights_zero_point,) * scales
    x = Tensor("x", in_shape, "int8", Quant((in_scale,), (in_zero,)), index=0)
    w = Tensor("w", w_shape, shape.weights_dtype, Quant(w_scale, zero_points, axis), w_data, index=1)
    bias_scales = tuple(_f32(np.float32(in_scale) * np.float32(s)) for s in w_scale)
    b = Tensor("b", (out_c,), "int32", Quant(bias_scales, (0,) * scales), bias_data, index=2)
    inputs: tuple[Tensor | None, ...] = (x, w, b if shape.bias else None)
    if shape.kind == "DEPTHWISE_CONV_2D" and not shape.bias:
        inputs = (x, w)  # TFLM's depthwise convolution crashes on a bias of index -1
    if shape.kind == "FULLY_CONNECTED":
        attributes: object = FullyConnected(shape.activation)
        out_shape = (shape.height, out_c)
    else:
        fields = (shape.padding, shape.stride, shape.dilation, shape.activation)
        depthwise = shape.kind == "DEPTHWISE_CONV_2D"
        attributes = DepthwiseConv2D(*fields, depth_multiplier=shape.multiplier) if depthwise else Conv2D(*fields)
        (rows, _), (columns, _) = padded_dims(Op(shape.kind, inputs, (), attributes))
        out_shape = (shape.batch, rows, columns, out_c)
    y = Tensor("y", out_shape, "int8", Quant((out_scale,), (out_zero,)), index=3)
    return Op(shape.kind, inputs, (y,), attributes, index=0)


def with_multipliers(op: Op, multipliers: np.ndarray, zero_point: int) -> Op:
    """The layer, which has a bias, with these real multipliers, one for each channel, and biases of both signs."""
    x, weights, bias = op.inputs
    scales = tuple(_f32(each) for each in multipliers * (op.output.scale / x.scale))
    reach = np.minimum(100 / multipliers, 40000) * np.random.default_rng(0).uniform(-1, 1, len(multipliers))
    biased = replace(bias.quant, scale=tuple(_f32(x.scale * each) for each in scales))
    bias = replace(bias, data=reach.astype(np.int32), quant=biased)
    output = replace(op.output, quant=replace(op.output.quant, zero_point=(zero_point,)))
    weights = replace(weights, quant=replace(weights.quant, scale=scales))
    return replace(op, inputs=(x, weights, bias), outputs=(output,))


def model_of(op: Op) -> bytes:
    """The .tflite with this one operator; its padding must be "SAME" or "VALID"."""
    builder = ModelBuilder()
    return builder.build(*add_operator(builder, op, options_of(op)))


def options_of(op: Op) -> dict[str, object]:
    """The schema's options for op.attributes."""
    options: dict[str, object] = {"fused_activation_function": op.attributes.activation}
    if op.kind != "FULLY_CONNECTED":
        options |= {
            "padding": op.attributes.padding,
            "stride_h": op.attributes.stride[0], "stride_w": op.attributes.stride[1],
            "dilation_h_factor": op.attributes.dilation[0],
            "dilation_w_factor": op.attributes.dilation[1],
        }  # fmt: skip
    if op.kind == "DEPTHWISE_CONV_2D":
        options["depth_multiplier"] = op.attributes.depth_multiplier
    elif op.attributes.quantized_bias_type != "FLOAT32":
        options["quantized_bias_type"] = op.attributes.quantized_bias_type
    return options


def random_shape(kind: str, rng: np.random.Generator, explicit_padding: bool = False) -> Shape:
    """A small shape with every attribute drawn at random; the kernel fits a VALID window."""

    def pick(*values):
        return values[int(rng.integers(len(values)))]

    kernel = (1, 1) if rng.random() < 0.2 else (int(rng.integers(1, 6)), int(rng.integers(1, 5)))
    if rng.random() < 0.3:
        kernel = (3, 3)
    dilation = pick((1, 1), (1, 1), (2, 1), (1, 3))
    span = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    height, width = (s + int(rng.integers(0, 8)) for s in span)
    groups = pick(1, 1, 2, 3) if kind == "CONV_2D" else 1
    padding: object = pick("SAME", "VALID")
    if explicit_padding:
        padding = tuple(int(v) for v in rng.integers(0, 3, 4))
    if rng.random() < 0.15:
        width, kernel, dilation = 1, (kernel[0], 1), (dilation[0], 1)
    fully_connected = kind == "FULLY_CONNECTED"
    per_channel = bool(rng.random() < 0.6)
    return Shape(
        kind,
        int(rng.integers(1, 4)) if fully_connected else height,
        width,
        int(rng.integers(1, 40)) if fully_connected else groups * pick(4, 8, *range(1, 12)),
        groups * int(rng.integers(1, 9)),
        kernel,
        pick((1, 1), (2, 2), (1, 2), (3, 1)),
        dilation,
        padding,
        pick("NONE", "RELU", "RELU6", "RELU_N1_TO_1"),
        groups,
        pick(1, 1, 2, 3),
        per_channel,
        bool(rng.random() < 0.8),
        int(rng.integers(-128, 128)) if fully_connected and not per_channel and rng.random() < 0.4 else 0,
        1 if fully_connected else pick(1, 1, 1, 1, 2, 3),
    )


def random_input(op: Op, rng: np.random.Generator, extreme: bool = False) -> np.ndarray:
    if extreme:
        return rng.choice(np.array([-128, 127, op.input.zero_point], np.int8), op.input.shape)
    return rng.integers(-128, 128, op.input.shape).astype(np.int8)


def of_int4(shape: Shape) -> Shape:
    """The layer with int4 weights; TFLM requires one scale for fully connected layers."""
    per_channel = shape.per_channel and shape.kind != "FULLY_CONNECTED"
    return replace(shape, weights_dtype="int4", per_channel=per_channel)


def tflm_cases(kind: str, extreme: bool, weights: str = "int8") -> list[tuple[Op, list[np.ndarray]]]:
    """Operators that test_conv_ops.py compares with TFLM, each with its inputs."""
    rng = np.random.default_rng(2 if extreme else 1)
    cases = []
    for _ in range(60):
        shape = random_shape(kind, rng)
        op = make_op(of_int4(shape) if weights == "int4" else shape, rng, extreme)
        if broken_rules(op):
            assert extreme, broken_rules(op)
            continue
        cases.append((op, [random_input(op, rng, extreme) for _ in range(2)]))
    return cases
