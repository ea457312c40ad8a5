"""Conv, ConvTranspose, Gemm and MatMul: layers of int8 weights between DequantizeLinear and QuantizeLinear.

onnxruntime computes them by its QLinearConv, QLinearMatMul and QGemm: sums of integers, multiplied in float32 by
input scale * weight scale / output scale and rounded once, halves to even.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tinyfuse.frontend.onnx.graph import Converter, require_shape
from tinyfuse.frontend.onnx.integers import conv_in_integers, requantize_in_front
from tinyfuse.frontend.onnx.model import Node
from tinyfuse.frontend.onnx.targets import Target, target_of
from tinyfuse.frontend.onnx.values import Constant, Function, Quantization, QuantizedConstant, Stored
from tinyfuse.frontend.onnx.window import Window
from tinyfuse.frontend.tensors import Refused, constant_tensor
from tinyfuse.ir import Array, Quant, Tensor
from tinyfuse.ops.core.convolution import FLOAT_HALF_EVEN, Conv2D, DepthwiseConv2D
from tinyfuse.ops.layers.fully_connected import FullyConnected
from tinyfuse.ops.layers.transpose_conv import TransposeConv
from tinyfuse.ops.matmul.batch_matmul import BatchMatMul

_HINT_QUANTIZE = "quantize the model: onnxruntime.quantization.quantize_static writes Q/DQ pairs around every layer"
_HINT_WEIGHTS = "quantize weights symmetrically (zero point 0): int8, WeightSymmetric=True"


def convert_conv(c: Converter, node: Node) -> None:
    """Conv and ConvTranspose over one or two dimensions."""
    layer = _layer_operands(c, node, out_axis=1 if node.kind == "ConvTranspose" else 0)
    shape = layer.source.tensor.shape
    if len(shape) not in (3, 4) or shape[0] != 1 or layer.weights.ndim != len(shape):
        hint = "tinyfuse computes one image, [1, channels, rows, columns], or one sequence, [1, channels, steps]"
        raise Refused(f"its input is {list(shape)}", hint, node.input(0))
    window = Window.of(node, layer.weights.shape[2:], shape[2:])
    weights, data = layer.weights, layer.source.tensor
    if len(shape) == 3:  # a sequence is an image of one column: time goes down the rows
        weights = weights[..., None]
        data = c.reshaped(data, (*shape, 1), f"{data.name} (image)")
    image = c.image(data)
    made = (_transposed_conv if node.kind == "ConvTranspose" else _conv)(c, node, layer, image, weights, window)
    made = c.planes(made)
    if len(shape) == 3:
        made = c.reshaped(made, made.shape[:3], f"{layer.target.name} (sequence)")
    layer.target.take(c, made)


class _Layer:
    """Operands of a layer: its input, weights as int8 with their scales, an int32 bias, and where its result goes."""

    def __init__(self, source: Stored, weights: Array, scales: Array, bias: Array | None, target: Target, name: str):
        self.source, self.weights, self.scales, self.bias, self.target = source, weights, scales, bias, target
        self.name = name

    def constants(self, weights: Array, axis: int) -> tuple[Tensor, Tensor | None]:
        """Return the tensors of weights and bias. Several scales are those of the indexes of dimension `axis`."""
        scales = tuple(float(scale) for scale in self.scales.reshape(-1))
        quant = Quant(scales, (0,) * len(scales), axis if len(scales) > 1 else 0)
        bias = None
        if self.bias is not None:
            products = tuple(self.source.tensor.scale * scale for scale in scales)
            bias = constant_tensor(f"{self.name} (bias)", self.bias, Quant(products, (0,) * len(products)))
        return constant_tensor(f"{self.name} (weights)", weights, quant), bias

    @property
    def clamp(self) -> tuple[int, int] | None:
        return self.target.clamp if self.target.clamps else None


def check_weights(c: Converter, node: Node) -> None:
    """Refuse a layer whose weights are float32."""
    if isinstance(c.values.get(node.input(1)), Constant):
        raise _in_float32(node, 1)


def _in_float32(node: Node, i: int) -> Refused:
    """Return the refusal of a layer whose input `i` is float32."""
    message = f"{node.kind} is computed in float32, whose sums no standard orders"
    return Refused(message, _HINT_QUANTIZE, node.input(i))


def _layer_operands(c: Converter, node: Node, out_axis: int, transposed: bool = True) -> _Layer:
    """Return the quantized operands of a layer. Raises Refused if onnxruntime would compute the layer in float32."""
    source, weights = c.values[node.input(0)], c.values[node.input(1)]
    if not isinstance(source, Function) or source.kinds:
        raise _in_float32(node, 0)
    if not isinstance(weights, QuantizedConstant):
        raise Refused("its weights are not constants behind a DequantizeLinear", _HINT_QUANTIZE, node.input(1))
    target = target_of(c, node)
    if target is None:
        hint = "quantize the layer's output, too: put a QuantizeLinear behind it"
        raise Refused("its result is used in float32", hint, node.outputs[0])
    if len(target.nodes) > 1:
        requantize_in_front(c, target.nodes[0], node.outputs[0], target.quantization)
    q = weights.quantization
    if weights.array.ndim <= out_axis:
        raise Refused(f"its weights are {list(weights.array.shape)}", _HINT_WEIGHTS, node.input(1))
    if not q.per_tensor and q.axis % weights.array.ndim != out_axis:
        raise Refused(
            f"its weights have scales along dimension {q.axis}, not an output channel", _HINT_WEIGHTS, node.input(1)
        )
    stored = signed_weights(weights, node.input(1))
    bias = _bias(c, node, source.source, q, stored.shape[out_axis])
    return _Layer(source.source, stored, q.scale, bias, target, target.name)


def signed_weights(weights: QuantizedConstant, name: str) -> Array:
    """Weights less their zero point, int8; Refused where they don't fit."""
    q = weights.quantization
    shape = [1] * weights.array.ndim
    if not q.per_tensor:
        shape[q.axis] = -1
    values = weights.array.astype(np.int32) - q.zero_point.astype(np.int32).reshape(shape)
    if values.size and not -128 <= values.min() <= values.max() <= 127:
        raise Refused("weights less their zero point don't fit int8", _HINT_WEIGHTS, name)
    return values.astype(np.int8)


def _bias(c: Converter, node: Node, source: Stored, weights: Quantization, channels: int) -> Array | None:
    """Return the bias as int32 [channels] with the scale of the sums; None if the layer has none."""
    name = node.input(2)
    if not name:
        return None
    value = c.values[name]
    products = np.float32(source.tensor.scale) * weights.scale.reshape(-1).astype(np.float32)
    if isinstance(value, QuantizedConstant):
        stored = value.array
        scales = value.quantization.scale.reshape(-1)
        if 1 not in (scales.size, products.size) and scales.size != products.size:
            raise Refused(f"its bias has {scales.size} scales, its weights {products.size}", _HINT_WEIGHTS, name)
        if stored.dtype != np.int32 or not np.allclose(scales, products, rtol=1e-5, atol=0.0):
            hint = "quantize the model again with onnxruntime.quantization"
            raise Refused("its bias isn't int32 on the scale of input times weights", hint, name)
    elif isinstance(value, Constant) and value.array.dtype == np.float32:
        if products.size not in (1, value.array.size):
            raise Refused(
                f"its bias has {value.array.size} values, its weights {products.size} scales", _HINT_WEIGHTS, name
            )
        if not products.all():
            raise Refused("the scales of its input and weights multiply to zero", _HINT_WEIGHTS, name)
        with np.errstate(over="ignore"):
            quotients = np.rint(value.array.reshape(-1) / products)
        if not (np.abs(quotients) < 2.0**31).all():  # also where one is NaN
            hint = "give channels with small weights a larger scale"
            raise Refused("its bias doesn't fit int32 on the scale of input times weights", hint, name)
        stored = quotients.astype(np.int32)
    else:
        raise Refused("its bias is not a constant", "make it a constant", name)
    stored = stored.reshape(-1)
    if stored.size == 1:
        stored = stored.repeat(channels)
    if stored.size != channels:
        raise Refused(f"its bias has {stored.size} values for {channels} outputs", "export the model again", name)
    return stored


def _output_dims(image: Tensor, window: Window) -> list[int]:
    top, bottom, left, right = window.pads
    dims = []
    for size, kernel, stride, dilation, pad in zip(
        image.shape[1:3], window.kernel, window.stride, window.dilation, (top + bottom, left + right), strict=True
    ):
        dims.append((size + pad - (kernel - 1) * dilation - 1) // stride + 1)
    if min(dims) < 1:
        raise Refused("its window is larger than its padded input", "export the model again", image.name)
    return dims


def _conv(c: Converter, node: Node, layer: _Layer, image: Tensor, weights: Array, window: Window) -> Tensor:
    channels, per_group, groups = image.shape[3], weights.shape[1], window.group
    outs = weights.shape[0]
    if groups < 1 or per_group * groups != channels or outs % groups:
        raise Refused(
            f"its weights {list(weights.shape)} don't fit {channels} channels in {groups} groups",
            "export the model again",
        )
    depthwise = per_group == 1 and groups > 1
    settings: dict[str, Any] = {
        "padding": window.pads if any(window.pads) else "VALID",
        "stride": tuple(window.stride),
        "dilation": tuple(window.dilation),
        "clamp": layer.clamp,
        "rounding": FLOAT_HALF_EVEN,
    }
    if depthwise:
        kind, order, axis = "DEPTHWISE_CONV_2D", (1, 2, 3, 0), 3
        attributes: object = DepthwiseConv2D(depth_multiplier=outs // groups, **settings)
    else:
        kind, order, axis = "CONV_2D", (0, 2, 3, 1), 0
        attributes = Conv2D(**settings)
    shape = (1, *_output_dims(image, window), outs)
    operands = layer.constants(weights.transpose(order), axis)
    return c.emit(
        kind,
        (image, *_present(operands)),
        shape,
        "int8",
        layer.name,
        layer.target.quantization.signed,
        attributes,
        node,
    )


def _transposed_conv(c: Converter, node: Node, layer: _Layer, image: Tensor, weights: Array, window: Window) -> Tensor:
    if window.group != 1 or any(d != 1 for d in window.dilation):
        raise Refused("groups and dilations are not supported here", "upsample with Resize and a Conv instead")
    rank = len(c.shape(node.input(0))) - 2
    extra = list(node.attributes.get("output_padding") or [0] * rank)
    if len(extra) != rank:
        raise Refused(f"its output_padding has {len(extra)} values for {rank} dimensions", "export the model again")
    extra += [0] * (2 - rank)
    if node.attributes.get("output_shape"):
        raise Refused("output_shape is not supported", "give pads and output_padding instead")
    top, bottom, left, right = window.pads
    dims = [
        (size - 1) * stride + kernel - before - after + more
        for size, stride, kernel, before, after, more in zip(
            image.shape[1:3], window.stride, window.kernel, (top, left), (bottom, right), extra, strict=True
        )
    ]
    if min(dims) < 1 or min(extra) < 0 or weights.shape[0] != image.shape[3]:
        raise Refused("its weights or pads don't fit its input", "export the model again")
    require_shape(dims)
    tensor, bias = layer.constants(weights.transpose(1, 2, 3, 0), 0)
    shape = (1, *dims, weights.shape[1])
    size = constant_tensor(f"{layer.name} (shape)", np.array(shape, np.int32))
    attributes = TransposeConv(
        (top, left), (window.stride[0], window.stride[1]), clamp=layer.clamp, rounding=FLOAT_HALF_EVEN
    )
    operands = (size, tensor, image, *_present([bias]))
    c.changes[node.index] = conv_in_integers(node, layer.source, layer.weights, layer.scales, layer.bias, window, extra)
    return c.emit(
        "TRANSPOSE_CONV", operands, shape, "int8", layer.name, layer.target.quantization.signed, attributes, node
    )


def _present(tensors: Sequence[Tensor | None]) -> list[Tensor]:
    return [tensor for tensor in tensors if tensor is not None]


def convert_product(c: Converter, node: Node) -> None:
    """MatMul of two computed operands."""
    values, target = [c.values[name] for name in node.inputs], target_of(c, node)
    operands = [value.source for value in values if isinstance(value, Function) and not value.kinds]
    if len(operands) < 2 or target is None:
        raise Refused("MatMul is computed in float32, whose sums no standard orders", _HINT_QUANTIZE, node.input(0))
    (left, right), q = (stored.tensor for stored in operands), target.quantization
    depths = left.shape[-1:], right.shape[-2:-1]
    if (
        min(len(left.shape), len(right.shape)) < 2
        or max(len(left.shape), len(right.shape)) > 5
        or depths[0] != depths[1]
    ):
        raise Refused(f"{list(left.shape)} and {list(right.shape)} don't fit", "multiply matrices of rank 2 to 5")
    try:
        batches = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    except ValueError:
        raise Refused(f"{list(left.shape)} and {list(right.shape)} don't broadcast", "export the model again") from None
    shape, attributes = (*batches, left.shape[-2], right.shape[-1]), BatchMatMul(rounding=FLOAT_HALF_EVEN)
    made = c.emit("BATCH_MATMUL", (left, right), shape, "int8", node.outputs[0], q.signed, attributes, node)
    if len(target.nodes) > 1:
        requantize_in_front(c, target.nodes[0], node.outputs[0], q)
    # an activation behind it becomes a table
    c.set(node, Function(Stored(made, q.dtype)))


def convert_dense(c: Converter, node: Node) -> None:
    """Gemm, and MatMul."""
    if node.kind == "MatMul" and not any(isinstance(c.values[name], QuantizedConstant) for name in node.inputs):
        convert_product(c, node)
        return
    flipped = node.kind == "Gemm" and bool(node.attributes.get("transB", 0))
    if node.kind == "Gemm":
        plain = node.attributes.get("alpha", 1.0) == 1.0 and node.attributes.get("beta", 1.0) == 1.0
        if not plain or node.attributes.get("transA", 0):
            raise Refused("alpha, beta and transA are not supported", "fold them into the weights")
    layer = _layer_operands(c, node, out_axis=0 if flipped else 1)
    weights, data = layer.weights, layer.source.tensor
    if weights.ndim != 2:
        raise Refused(f"its weights have {weights.ndim} dimensions", "use a matrix of weights", node.input(1))
    weights = weights if flipped else weights.T
    if not data.shape or data.shape[-1] != weights.shape[1]:
        raise Refused(
            f"its weights {list(weights.shape)} don't fit {list(data.shape)}", "export the model again", node.input(1)
        )
    operands = layer.constants(weights, 0)
    shape = (*data.shape[:-1], weights.shape[0])
    attributes = FullyConnected(clamp=layer.clamp, rounding=FLOAT_HALF_EVEN)
    made = c.emit(
        "FULLY_CONNECTED", (data, *_present(operands)), shape, "int8", layer.name, layer.target.quantization.signed,
        attributes, node,
    )  # fmt: skip
    layer.target.take(c, made)
