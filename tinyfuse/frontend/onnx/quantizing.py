"""QuantizeLinear, DequantizeLinear, and the QLinear operators of onnxruntime's QOperator format."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tinyfuse.frontend.onnx.graph import Converter
from tinyfuse.frontend.onnx.model import Node
from tinyfuse.frontend.onnx.targets import output_quantization
from tinyfuse.frontend.onnx.values import (
    Constant,
    Function,
    Quantization,
    QuantizedConstant,
    Stored,
)
from tinyfuse.frontend.tensors import Refused
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
        raise Refused("an activation has a scale for each channel", _HINT_INT8, node.input(0))
    source = value if value.tensor.quant == q.signed else Stored(c.requantized_view(value.tensor, q), value.dtype)
    c.set(node, Function(source))


def _axis(node: Node, rank: int) -> int:
    axis = int(node.attributes.get("axis", 1))
    return axis + rank if axis < 0 else axis


def check_scales(c: Converter, node: Node) -> None:
    """Refuse a QuantizeLinear of activations that isn't to int8 or uint8 with one scale."""
    points = c.constant(node, 2)
    if output_quantization(c, node) is None:
        dtype = "uint8" if points is None else points.dtype
        raise Refused(f"activations of {dtype}, or with a scale for each channel, are not supported", _HINT_INT8)


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
    check_scales(c, node)
    q, name = c.quantization(node, 1, 2, dtype), node.outputs[0]
    if isinstance(value, Function):
        c.set(node, c.table(value, q, name, node.kind))
        return
    source = c.real(node.input(0))
    if source.dtype != "float32":
        raise Refused(f"it quantizes {source.dtype}", _HINT_INT8, node.input(0))
    made = c.emit("QUANTIZE", (source,), source.shape, "int8", name, q.signed, HalfEven(), node)
    c.set(node, Stored(made, q.dtype))


def _quantized_constant(c: Converter, node: Node, value: Constant, dtype: str) -> np.ndarray:
    """Return the stored values of a constant that a QuantizeLinear reads."""
    q = replace(c.quantization(node, 1, 2, dtype), axis=_axis(node, value.array.ndim))
    shape = [1] * value.array.ndim
    if not q.per_tensor:
        if not 0 <= q.axis < value.array.ndim or value.array.shape[q.axis] != q.scale.size:
            raise Refused(f"it has {q.scale.size} scales along a dimension of another size", _HINT_INT8)
        shape[q.axis] = -1
    if np.isnan(value.array).any():
        raise Refused("it quantizes NaN", "export the model again", node.input(0))
    with np.errstate(over="ignore"):
        scaled = np.rint(value.array.astype(np.float32) / q.scale.reshape(shape))
    ends = np.iinfo(dtype)
    return np.clip(scaled + q.zero_point.astype(np.float64).reshape(shape), ends.min, ends.max).astype(dtype)


@dataclass(frozen=True)
class _Layout:
    """Inputs of an operator of the QOperator format.

    kind      of the QDQ format
    operands  (data, scale, zero point) of each operand
    output    (scale, zero point) of the output
    bias      int32 on the scale of the sums
    axis      of the scales of weights, where there are several
    """

    kind: str
    operands: tuple[tuple[int, int, int], ...]
    output: tuple[int, int]
    bias: int | None = None
    axis: int = 1

    @property
    def most(self) -> int:
        return max(*self.output, self.bias or 0) + 1


_ONE, _TWO = ((0, 1, 2),), ((0, 1, 2), (3, 4, 5))
_QLINEAR = {
    "QLinearConv": _Layout("Conv", _TWO, (6, 7), bias=8, axis=0),
    "QGemm": _Layout("Gemm", _TWO, (7, 8), bias=6),
    "QLinearMatMul": _Layout("MatMul", _TWO, (6, 7)),
    "QLinearAdd": _Layout("Add", _TWO, (6, 7)),
    "QLinearMul": _Layout("Mul", _TWO, (6, 7)),
    "QLinearSigmoid": _Layout("Sigmoid", _ONE, (3, 4)),
    "QLinearLeakyRelu": _Layout("LeakyRelu", _ONE, (3, 4)),
    "QLinearAveragePool": _Layout("AveragePool", _ONE, (3, 4)),
    "QLinearGlobalAveragePool": _Layout("GlobalAveragePool", _ONE, (3, 4)),
    "QLinearSoftmax": _Layout("Softmax", _ONE, (3, 4)),
}
#: kind -> (least, most) inputs
QLINEAR = {kind: (layout.output[0] + 1, layout.most) for kind, layout in _QLINEAR.items()}
QLINEAR |= {"QLinearConcat": (5, 3 * 1024 + 2), "QGemm": (6, 9)}  # QGemm's bias may be left out, and its output float32


def _layout(node: Node) -> _Layout:
    if node.kind == "QLinearConcat":
        return _Layout("Concat", tuple((i, i + 1, i + 2) for i in range(2, len(node.inputs) - 2, 3)), (0, 1))
    layout = _QLINEAR[node.kind]
    return replace(layout, axis=0) if node.kind == "QGemm" and node.attributes.get("transB", 0) else layout


def convert_qlinear(c: Converter, node: Node) -> None:
    """An operator of the QOperator format, as the nodes of the QDQ format that mean the same."""
    layout, output = _layout(node), node.outputs[0]
    if node.attributes.get("channels_last", 0):
        raise Refused("channels_last is not supported", "save the model before onnxruntime optimizes it")
    if node.kind == "QGemm" and not node.input(layout.output[0]):
        raise Refused("its output is float32", "quantize the layer's output, too", output)
    floats: list[str] = []
    for k, places in enumerate(layout.operands):
        names = tuple(node.input(i) for i in places)
        made = replace(node, kind="DequantizeLinear", domain="", inputs=names, outputs=(f"{output}/input {k}",))
        convert_dequantize(c, replace(made, attributes={"axis": layout.axis}))
        floats += made.outputs
    if layout.bias is not None and node.input(layout.bias):
        floats.append(_bias(c, node, node.input(layout.bias)))
    result = f"{output}/float32"
    inner = replace(node, kind=layout.kind, domain="", inputs=tuple(floats), outputs=(result,))
    names = (result, *(node.input(i) for i in layout.output))
    quantize = replace(node, kind="QuantizeLinear", domain="", inputs=names, attributes={})
    c.readers[result] = [quantize]
    c.kinds[layout.kind].convert(c, inner)
    if quantize not in c.done:
        convert_quantize(c, quantize)


def _bias(c: Converter, node: Node, name: str) -> str:
    """The name of a layer's bias, an int32 constant on the scale of the sums, behind a DequantizeLinear."""
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
