"""Converts BatchNormalization and LayerNormalization between DequantizeLinear and QuantizeLinear, in float32.

Each node becomes operators of one rounding each.
"""

from __future__ import annotations

import numpy as np

from tinyfuse.frontend.onnx.elementwise import real_arithmetic
from tinyfuse.frontend.onnx.graph import Converter
from tinyfuse.frontend.onnx.model import Node
from tinyfuse.frontend.onnx.values import Real
from tinyfuse.frontend.tensors import Refused, constant_tensor
from tinyfuse.ir import Array, Tensor
from tinyfuse.ops.pooling_reduce.reduce import Reducer

_F32 = np.float32
_HINT_FOLD = "fold it into the layer in front before quantizing (torch.nn.utils.fuse_conv_bn_eval)"


def _parameter(c: Converter, node: Node, i: int, size: int) -> Array:
    """float32 [size]: a constant input."""
    found = c.constant(node, i)
    if found is None or found.dtype != _F32 or found.size != size:
        raise Refused(f"its input {i} is not a constant of {size} float32 numbers", _HINT_FOLD, node.input(i))
    return found.reshape(-1)


class _Steps:
    """Emits the operators of a node one after the other, each in float32."""

    def __init__(self, c: Converter, node: Node):
        self.c, self.node, self.count = c, node, 0

    def name(self) -> str:
        self.count += 1
        return f"{self.node.outputs[0]} (step {self.count})"

    def binary(self, kind: str, x: Tensor, y: Tensor | Array) -> Tensor:
        name = self.name()
        other = y if isinstance(y, Tensor) else constant_tensor(f"{name} (constant)", y)
        return real_arithmetic(self.c, kind, x, other, name, self.node)

    def root(self, x: Tensor) -> Tensor:
        return self.c.emit("SQRT", (x,), x.shape, "float32", self.name(), None, None, self.node)

    def mean(self, x: Tensor, axis: int) -> Tensor:
        shape = (*x.shape[:axis], *(1 for _ in x.shape[axis:]))
        name = self.name()
        axes = constant_tensor(f"{name} (axes)", np.arange(axis, len(x.shape), dtype=np.int32))
        return self.c.emit("MEAN", (x, axes), shape, "float32", name, None, Reducer(keep_dims=True), self.node)


def convert_batch_norm(c: Converter, node: Node) -> None:
    """BatchNormalization with constant statistics: a product and a sum a channel."""
    shape = c.shape(node.input(0))
    if len(node.outputs) > 1 or len(shape) < 2:
        raise Refused("it computes statistics, or its input has no channels", "export the model for inference")
    scale, bias, mean, variance = (_parameter(c, node, i, shape[1]) for i in (1, 2, 3, 4))
    with np.errstate(all="ignore"):
        factor = _F32(1) / np.sqrt(variance + _F32(node.attributes.get("epsilon", 1e-5))) * scale
        rest = bias - mean * factor
    steps, channels = _Steps(c, node), (-1, *(1 for _ in shape[2:]))
    product = steps.binary("MUL", c.real(node.input(0)), factor.reshape(channels))
    c.set(node, Real(steps.binary("ADD", product, rest.reshape(channels))))


def convert_layer_norm(c: Converter, node: Node) -> None:
    """Convert LayerNormalization: differences to the mean, divided by the root of their mean square.

    onnxruntime's sums depend on the CPU (Welford's recurrence, or AVX2 sums in double), so no implementation can equal
    all of them.
    """
    shape = c.shape(node.input(0))
    axis = int(node.attributes.get("axis", -1))
    if not -len(shape) <= axis < len(shape) or len(node.outputs) > 1:
        raise Refused("its axis is beyond its input, or its statistics are used", "export the model again")
    axis %= len(shape)
    parameters = [_parameter(c, node, i, int(np.prod(shape[axis:]))) for i in (1, 2) if node.input(i)]
    c.float_sums.append(str(node))
    x, steps = c.real(node.input(0)), _Steps(c, node)
    centred = steps.binary("SUB", x, steps.mean(x, axis))
    variance = steps.mean(steps.binary("MUL", centred, centred), axis)
    epsilon = np.full(1, node.attributes.get("epsilon", 1e-5), _F32)
    made = steps.binary("DIV", centred, steps.root(steps.binary("ADD", variance, epsilon)))
    for kind, parameter in zip(("MUL", "ADD"), parameters, strict=False):
        made = steps.binary(kind, made, parameter.reshape(shape[axis:]))
    c.set(node, Real(made))
