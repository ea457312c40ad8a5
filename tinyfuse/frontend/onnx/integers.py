"""Replaces nodes that onnxruntime would compute in float32 by nodes that it computes in integers (rewritten.py)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyfuse.frontend.onnx.graph import Converter
from tinyfuse.frontend.onnx.model import Node
from tinyfuse.frontend.onnx.rewritten import Change
from tinyfuse.frontend.onnx.values import Quantization, Stored
from tinyfuse.frontend.onnx.window import Window
from tinyfuse.ir import Array


def _by(change: Change, q: Quantization) -> list[str]:
    """The names of a scale and a zero point."""
    return [change.constant(q.scale.astype(np.float32)), change.constant(q.zero_point.astype(q.dtype))]


def requantize_in_front(c: Converter, reader: Node, name: str, q: Quantization) -> None:
    """Quantize a layer's result before the activation that reads it.

    before   Conv -> Relu -> QuantizeLinear
    after    Conv -> QuantizeLinear -> DequantizeLinear -> Relu -> QuantizeLinear
    """
    change = Change(name)
    names = _by(change, q)
    stored = change.node("QuantizeLinear", [name, *names])
    change.renamed[name] = change.node("DequantizeLinear", [stored, *names])
    c.changes[reader.index] = change


def mean_in_integers(node: Node, source: Stored, axes: Sequence[int], to: Quantization) -> Change:
    """Convert a ReduceMean to a GlobalAveragePool of an image whose rows are the reduced dimensions."""
    change, shape, name = Change(node.outputs[0], replaces=True), source.tensor.shape, node.outputs[0]
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    sizes = [int(np.prod([shape[axis] for axis in group])) for group in (kept, axes)]
    before, after = _by(change, source.quantization), _by(change, to)
    stored = change.node("QuantizeLinear", [node.input(0), *before])
    stored = change.node("Transpose", [stored], perm=[*kept, *axes])
    image = change.node("DequantizeLinear", [change.reshaped(stored, (1, *sizes, 1)), *before])
    means = change.node("QuantizeLinear", [change.node("GlobalAveragePool", [image]), *after])
    keep = bool(node.attributes.get("keepdims", 1))
    wanted = [1 if axis in axes else dim for axis, dim in enumerate(shape) if keep or axis not in axes]
    change.node("DequantizeLinear", [change.reshaped(means, wanted), *after], name)
    return change


def conv_in_integers(
    node: Node, source: Stored, weights: Array, scales: Array, bias: Array | None, window: Window, extra: Sequence[int]
) -> Change:
    """Return a ConvTranspose as a Conv of the input with zeros between its elements.

    weights  int8 [inputs, outputs, rows, columns]; the Conv's kernels are rotated by 180 degrees.
    extra    rows and columns of output padding
    """
    change, shape = Change(node.outputs[0], replaces=True), list(source.tensor.shape)
    q = source.quantization
    names = _by(change, q)
    stored = change.node("QuantizeLinear", [node.input(0), *names])
    rank = len(shape) - 2
    stride, kernel = window.stride[:rank], window.kernel[:rank]
    spread = [*shape[:2], *(size for dim in shape[2:] for size in (dim, 1))]
    stored = change.reshaped(stored, spread)
    for i, step in enumerate(stride):
        if step > 1:
            axis = 3 + 2 * i
            spread[axis] = step - 1
            zeros = change.constant(np.full(spread, q.zero_point, q.dtype))
            stored = change.node("Concat", [stored, zeros], axis=[axis])
            spread[axis] = step
    stored = change.reshaped(stored, [*shape[:2], *(dim * step for dim, step in zip(shape[2:], stride, strict=True))])
    pads = np.array(window.pads).reshape(2, 2)[:rank]
    # negative pads cut the input
    before = np.array(kernel) - 1 - pads[:, 0]
    after = np.array(kernel) - 1 - pads[:, 1] + np.array(extra[:rank])
    ends = (np.array(shape[2:]) - 1) * np.array(stride) + 1 + np.minimum(after, 0)
    bounds = [np.maximum(-before, 0), ends, np.arange(2, 2 + rank)]
    stored = change.node("Slice", [stored, *(change.constant(each.astype(np.int64)) for each in bounds)])
    turned = np.flip(weights.swapaxes(0, 1), tuple(range(2, 2 + rank)))
    kernel_q = Quantization(scales, np.zeros(scales.shape, np.int8), "int8")
    inputs = [change.node("DequantizeLinear", [stored, *names])]
    along = {"axis": [0]} if scales.ndim else {}
    inputs.append(change.node("DequantizeLinear", [change.constant(turned), *_by(change, kernel_q)], "", **along))
    if bias is not None:
        products = (q.scale * scales).astype(np.float32)
        bias_q = Quantization(products, np.zeros(products.shape, np.int32), "int32")
        inputs.append(change.node("DequantizeLinear", [change.constant(bias), *_by(change, bias_q)], "", **along))
    padding = [int(pad) for pad in (*np.maximum(before, 0), *np.maximum(after, 0))]
    change.node("Conv", inputs, node.outputs[0], pads=padding, kernel_shape=list(kernel))
    return change
