"""QuantizeLinear, DequantizeLinear, and the QLinear operators of onnxruntime's QOperator format."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tinyfuse.frontend.onnx.graph import Converter, Refused
from tinyfuse.frontend.onnx.model import Node
from tinyfuse.frontend.onnx.targets import output_quantization
from tinyfuse.frontend.onnx.values import (
    Constant,
    Function,
    Quantization,
    QuantizedConstant,
    Stored,
)
from tinyfuse.ops.elementwise.quantize import HalfEven

_HINT_INT8 = "quantize activations to int8 or uint8 with one scale each"
#: stored dtypes of constants
_CONSTANTS = ("int8", "uint8", "int32")


def convert_dequantize(c: Converter, node: Node) -> None:
    """DequantizeLinear: the numbers that stored values stand for."""
    value = c.values[node.input(0)]
    if node.attributes.get("block_size"):
        raise Refused("scales of blocks are not supported", "quantize with a scale a tensor or a channel")
    if isinstance(value, Constant):
        dtype = str(value.array.dtype)
        if dtype not in _CONSTANTS:
            raise Refused(f"a constant of {dtype} is not supported", "quantize weights to int8", node.input(0))
        q = replace(c.quantization(node, 1, 2, dtype), axis=_axis(node, value.array.ndim))
        inside = 0 <= q.axis < value.array.ndim
        if not q.per_tensor and not (inside and value.array.shape[q.axis] == q.scale.size):
            raise Refused(f"it has {q.scale.size} scales along a dimension of another size", _HINT_INT8)
        c.set(node, QuantizedConstant(value.array, q))
        return
    if not isinstance(value, Stored):
        raise Refused("its input is not int8 or uint8", _HINT_INT8, node.input(0))
    q = c.quantization(node, 1, 2, value.dtype)
    if not q.per_tensor:
        raise Refused("an activation has a scale a channel", _HINT_INT8, node.input(0))
    source = value if value.tensor.quant == q.signed else Stored(c.requantized_view(value.tensor, q), value.dtype)
    c.set(node, Function(source, lambda numbers: numbers))


def _axis(node: Node, rank: int) -> int:
    axis = int(node.attributes.get("axis", 1))
    return axis + rank if axis < 0 else axis


def convert_quantize(c: Converter, node: Node) -> None:
    """QuantizeLinear: stored values of numbers; of a function of stored values a table."""
    if node.attributes.get("block_size"):
        raise Refused("scales of blocks are not supported", "quantize with a scale a tensor or a channel")
    value = c.values[node.input(0)]
    points = c.constant(node, 2)
    dtype = "uint8" if points is None else str(points.dtype)
    if isinstance(value, Constant) and dtype in (*_CONSTANTS[:2],):
        c.set(node, Constant(_quantized_constant(c, node, value, dtype)))
        return
    q = output_quantization(c, node)
    if q is None:
        raise Refused(f"activations of {dtype}, or with a scale a channel, are not supported", _HINT_INT8)
    name = node.outputs[0]
    if isinstance(value, Function):
        c.set(node, c.table(value.source, value.compute, q, name, (*value.kinds, "QuantizeLinear")))
        return
    source = c.real(node.input(0))
    if source.dtype != "float32":
        raise Refused(f"it quantizes {source.dtype}", _HINT_INT8, node.input(0))
    made = c.emit("QUANTIZE", (source,), source.shape, "int8", name, q.signed, HalfEven(), node)
    c.set(node, Stored(made, q.dtype))


def _quantized_constant(c: Converter, node: Node, value: Constant, dtype: str) -> np.ndarray:
    """A constant's stored values."""
    q = replace(c.quantization(node, 1, 2, dtype), axis=_axis(node, value.array.ndim))
    shape = [1] * value.array.ndim
    if not q.per_tensor:
        shape[q.axis] = -1
    scaled = np.rint(value.array.astype(np.float32) / q.scale.reshape(shape))
    ends = np.iinfo(dtype)
    return np.clip(scaled + q.zero_point.astype(np.float64).reshape(shape), ends.min, ends.max).astype(dtype)


def convert_qlinear(c: Converter, node: Node) -> None:
    """An operator of the QOperator format, as the nodes of the QDQ format that mean the same."""
    layout = _QLINEAR[node.kind]
    kind, operands, output = layout
    floats = []
    for k, (data, scale, point) in enumerate(operands):
        if not node.input(data):
            continue
        name = f"{node.outputs[0]}/input {k}"
        axis = 0 if node.kind in ("QLinearConv",) else 1
        made = Node(
            node.index,
            "DequantizeLinear",
            "",
            node.name,
            (node.input(data), node.input(scale), node.input(point)),
            (name,),
            {"axis": axis},
        )
        convert_dequantize(c, made)
        floats.append(name)
    bias = node.input(8) if node.kind == "QLinearConv" else ""
    if bias:
        floats.append(_bias(c, node, bias))
    result = f"{node.outputs[0]}/float32"
    inner = Node(node.index, kind, "", node.name, tuple(floats), (result,), node.attributes)
    quantize = Node(
        node.index,
        "QuantizeLinear",
        "",
        node.name,
        (result, node.input(output[0]), node.input(output[1])),
        node.outputs,
        {},
    )
    c.readers[result] = [quantize]
    c.kinds[kind].convert(c, inner)
    if quantize not in c.done:
        convert_quantize(c, quantize)


def _bias(c: Converter, node: Node, name: str) -> str:
    """The name of QLinearConv's bias, an int32 constant on the scale of the sums, behind a DequantizeLinear."""
    value = c.values[name]
    if not isinstance(value, Constant) or value.array.dtype != np.int32:
        raise Refused("its bias is not a constant int32", "quantize the model again", name)
    sx, sw = c.constant(node, 1), c.constant(node, 4)
    assert sx is not None, "its input has a scale"
    assert sw is not None, "its weights have scales"
    products = (np.float32(sx.reshape(-1)[0]) * sw.astype(np.float32)).reshape(-1)
    scale = products.reshape(()) if products.size == 1 else products
    made = f"{node.outputs[0]}/bias"
    c.values[made] = QuantizedConstant(value.array, Quantization(scale, np.zeros(scale.shape, np.int32), "int32"))
    return made


#: kind -> (kind of the QDQ format, (data, scale, zero point) of each operand, (scale, zero point) of the output)
_QLINEAR = {
    "QLinearConv": ("Conv", ((0, 1, 2), (3, 4, 5)), (6, 7)),
    "QLinearMatMul": ("MatMul", ((0, 1, 2), (3, 4, 5)), (6, 7)),
    "QLinearAdd": ("Add", ((0, 1, 2), (3, 4, 5)), (6, 7)),
    "QLinearMul": ("Mul", ((0, 1, 2), (3, 4, 5)), (6, 7)),
    "QLinearSigmoid": ("Sigmoid", ((0, 1, 2),), (3, 4)),
    "QLinearLeakyRelu": ("LeakyRelu", ((0, 1, 2),), (3, 4)),
    "QLinearAveragePool": ("AveragePool", ((0, 1, 2),), (3, 4)),
    "QLinearGlobalAveragePool": ("GlobalAveragePool", ((0, 1, 2),), (3, 4)),
    "QLinearSoftmax": ("Softmax", ((0, 1, 2),), (3, 4)),
}
#: kind -> (least, most) inputs
QLINEAR = {
    kind: (output[0] + 1, 9 if kind == "QLinearConv" else output[1] + 1) for kind, (_, _, output) in _QLINEAR.items()
}
