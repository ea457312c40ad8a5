"""Pools, means and Softmax."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np

from tinyfuse.frontend.onnx.graph import Converter, checked_axis
from tinyfuse.frontend.onnx.integers import mean_in_integers
from tinyfuse.frontend.onnx.model import Node
from tinyfuse.frontend.onnx.movement import moved
from tinyfuse.frontend.onnx.targets import Target, target_of
from tinyfuse.frontend.onnx.values import Function, Stored
from tinyfuse.frontend.onnx.window import Window
from tinyfuse.frontend.tensors import Refused, constant_tensor
from tinyfuse.ir import Array, Quant, Tensor
from tinyfuse.ops.core.convolution import FLOAT_HALF_EVEN
from tinyfuse.ops.elementwise.quantize import HalfEven
from tinyfuse.ops.pooling_reduce.pooling import Pool2D
from tinyfuse.ops.pooling_reduce.reduce import Reducer
from tinyfuse.ops.pooling_reduce.table_softmax import table_of

_HINT_QUANTIZE = (
    "put DequantizeLinear in front and QuantizeLinear behind it: in float32 no standard orders its sums "
    "(torch.onnx.export with dynamo=False writes averages that quantize_static quantizes)"
)


def _window(node: Node, shape: tuple[int, ...]) -> tuple[Window, list[int]]:
    """The window of a pool over a tensor [1, C, H, W] or [1, C, L], and the rows and columns of its output."""
    if len(shape) not in (3, 4) or shape[0] != 1:
        raise Refused(
            f"it does not support an input of shape {list(shape)}", "pool images [1, channels, rows, columns]"
        )
    kernel = [int(size) for size in node.attributes.get("kernel_shape") or []]
    if len(kernel) != len(shape) - 2 or min(kernel) < 1 or max(kernel) > 32767:
        raise Refused(f"kernel_shape {kernel} doesn't fit {list(shape)}", "export the model again")
    window = Window.of(node, kernel, shape[2:])
    if any(d != 1 for d in window.dilation):
        raise Refused("dilations are not supported here", "use a pool without dilation")
    image = [*shape[2:], 1][:2]
    top, bottom, left, right = window.pads
    pads = [[top, bottom], [left, right]]
    dims = []
    for axis, (size, kernel_size, stride) in enumerate(zip(image, window.kernel, window.stride, strict=True)):
        room = size + sum(pads[axis]) - kernel_size
        count = room // stride + 1
        # a window that would begin beyond the image and its padding in front is left out
        begins_inside = count * stride < size + pads[axis][0]
        if node.attributes.get("ceil_mode", 0) and room % stride and begins_inside:
            pads[axis][1] += stride - room % stride
            count += 1
        if count < 1 or max(pads[axis]) >= kernel_size:
            raise Refused("its window doesn't fit its input", "export the model again")
        dims.append(count)
    (top, bottom), (left, right) = pads
    window.pads = (top, bottom, left, right)
    return window, dims


def _pool(c: Converter, node: Node, tensor: Tensor, kind: str, quant: Quant | None, name: str) -> Tensor:
    """The pool of a tensor [1, C, H, W] or [1, C, L]."""
    window, dims = _window(node, tensor.shape)
    data = tensor if len(tensor.shape) == 4 else c.reshaped(tensor, (*tensor.shape, 1), f"{tensor.name} (image)")
    image = c.image(data)
    attributes = Pool2D(
        window.pads if any(window.pads) else "VALID", (window.kernel[0], window.kernel[1]),
        (window.stride[0], window.stride[1]),
    )  # fmt: skip
    made = c.emit(kind, (image,), (1, *dims, image.shape[3]), image.dtype, name, quant, attributes, node)
    planes = c.planes(made)
    return planes if len(tensor.shape) == 4 else c.reshaped(planes, planes.shape[:3], f"{name} (sequence)")


def convert_max_pool(c: Converter, node: Node) -> None:
    """Convert MaxPool of stored or float32 values."""
    if len(node.outputs) > 1 and any(c.readers.get(name) for name in node.outputs[1:]):
        raise Refused("the indexes of its maxima are not supported", "leave out its second output")

    def fold(_array: Array) -> Array:
        raise Refused("its input is a constant", "fold constants when exporting")

    moved(c, node, lambda t: _pool(c, node, t, "MAX_POOL_2D", t.quant, node.outputs[0]), fold)


def _stored_operand(c: Converter, node: Node) -> tuple[Stored, Target]:
    """The stored input of a node, and where its result is quantized."""
    value = c.values[node.input(0)]
    target = target_of(c, node)
    if not isinstance(value, Function) or value.kinds or target is None:
        raise Refused(f"{node.kind} is computed in float32", _HINT_QUANTIZE, node.input(0))
    return value.source, target


def convert_average_pool(c: Converter, node: Node) -> None:
    """Convert AveragePool: computed in float32, as onnxruntime does; over the whole image it is a GlobalAveragePool
    there."""
    source, target = _stored_operand(c, node)
    tensor = source.tensor
    window, dims = _window(node, tensor.shape)
    if node.attributes.get("count_include_pad", 0) and any(window.pads):
        if node.attributes.get("ceil_mode", 0):
            raise Refused("count_include_pad with ceil_mode is not supported", "use one of both")
        tensor = _padded(c, node, tensor, window)
        node = replace(node, attributes={**node.attributes, "pads": None, "auto_pad": "VALID"})
        window, dims = _window(node, tensor.shape)
    if dims == [1, 1] and not any(window.pads) and [*tensor.shape[2:], 1][:2] == list(window.kernel):
        convert_mean(c, replace(node, kind="GlobalAveragePool"))
        return
    real = c.emit("DEQUANTIZE", (tensor,), tensor.shape, "float32", node.input(0))
    made = _pool(c, node, real, "AVERAGE_POOL_2D", None, node.outputs[0])
    quant = target.quantization.signed
    stored = HalfEven(int(target.quantization.zero_point.item()))
    target.take(c, c.emit("QUANTIZE", (made,), made.shape, "int8", target.name, quant, stored, node))


def _padded(c: Converter, node: Node, tensor: Tensor, window: Window) -> Tensor:
    """The tensor [1, C, H, W] or [1, C, L] with stored zeros around it."""
    top, bottom, left, right = window.pads
    pads = np.array([(0, 0), (0, 0), (top, bottom), (left, right)][: len(tensor.shape)], np.int32)
    name = f"{node.input(0)} (padded)"
    shape = [dim + int(sum(pair)) for dim, pair in zip(tensor.shape, pads, strict=True)]
    around = constant_tensor(f"{name} (pads)", pads)
    fill = constant_tensor(f"{name} (value)", np.array([tensor.zero_point], tensor.dtype), tensor.quant)
    return c.emit("PADV2", (tensor, around, fill), shape, tensor.dtype, name, tensor.quant, None, node)


def convert_mean(c: Converter, node: Node) -> None:
    """Convert GlobalAveragePool, and ReduceMean over rows and columns."""
    source, target = _stored_operand(c, node)
    shape = source.tensor.shape
    keep = True
    axes = list(range(2, len(shape)))
    if node.kind == "ReduceMean":
        given = c.numbers(node, 1, "axes")
        axes = list(range(len(shape))) if given is None else sorted({checked_axis(a, len(shape)) for a in given})
        keep = bool(node.attributes.get("keepdims", 1))
        c.changes[node.index] = mean_in_integers(node, source, axes, target.quantization)
    wanted = [1 if i in axes else dim for i, dim in enumerate(shape) if keep or i not in axes]
    over = constant_tensor(f"{target.name} (axes)", np.array(axes, np.int32))
    attributes = Reducer(keep, rounding=FLOAT_HALF_EVEN)
    quant = target.quantization.signed
    made = c.emit("MEAN", (source.tensor, over), wanted, "int8", target.name, quant, attributes, node)
    target.take(c, made)


def convert_softmax(c: Converter, node: Node) -> None:
    """Convert a Softmax of stored values along the last dimension."""
    source, target = _stored_operand(c, node)
    shape = source.tensor.shape
    opset = int(node.attributes.get("opset", c.model.opset))  # QLinearSoftmax has an attribute for it
    axis = checked_axis(int(node.attributes.get("axis", -1 if opset >= 13 else 1)), len(shape))
    data = source.tensor
    if opset < 13 and axis != len(shape) - 1:
        data = c.reshaped(data, (prod(shape[:axis]), prod(shape[axis:])), f"{data.name} (rows)")
    elif axis != len(shape) - 1:
        raise Refused(f"axis {axis} is not the last one", "transpose its input")
    exps = table_of(f"{target.name} (exps)", data.scale, data.shape[-1])
    quant = target.quantization.signed
    made = c.emit("TABLE_SOFTMAX", (data, exps), data.shape, "int8", target.name, quant, None, node)
    target.take(c, made if data.shape == shape else c.reshaped(made, shape, f"{target.name} (shape)"))
