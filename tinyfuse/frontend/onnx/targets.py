"""Finds the QuantizeLinear that quantizes a node's result, and the activations between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tinyfuse.frontend.onnx.model import Node
from tinyfuse.frontend.onnx.values import STORED, Quantization, Stored
from tinyfuse.frontend.tensors import HINT_UNSOUND, Refused
from tinyfuse.ir import Tensor

if TYPE_CHECKING:
    from tinyfuse.frontend.onnx.graph import Converter

_RANGE = (-128, 127)


@dataclass(frozen=True, eq=False)
class Target:
    """Quantization of the float32 result of a node.

    quantization  of the QuantizeLinear's output
    clamp         (low, high) that Relu and Clip nodes on the way leave, in stored int8 values
    nodes         these nodes and the QuantizeLinear, which no other node needs
    """

    quantization: Quantization
    clamp: tuple[int, int]
    nodes: tuple[Node, ...]

    @property
    def clamps(self) -> bool:
        """Tell whether a Relu or Clip changes results that the quantization alone would not."""
        return self.clamp != _RANGE

    @property
    def name(self) -> str:
        return self.nodes[-1].outputs[0]

    def take(self, converter: Converter, tensor: Tensor) -> None:
        """Make `tensor` the QuantizeLinear's output, and mark the nodes as converted."""
        converter.done |= set(self.nodes)
        converter.values[self.name] = Stored(tensor, self.quantization.dtype)


def target_of(converter: Converter, node: Node) -> Target | None:
    """Return where a node's only result is quantized; None where it is used in float32."""
    name, nodes = node.outputs[0], list[Node]()
    while (reader := converter.sole_reader(name)) is not None and reader.input(0) == name:
        nodes.append(reader)
        if reader.kind == "QuantizeLinear":
            quantization = output_quantization(converter, reader)
            if quantization is None:
                return None
            return Target(quantization, _clamp(converter, nodes[:-1], quantization), tuple(nodes))
        if reader.kind not in ("Relu", "Clip") or len(reader.outputs) != 1:
            return None
        name = reader.outputs[0]
    return None


def output_quantization(converter: Converter, node: Node) -> Quantization | None:
    """The quantization of a QuantizeLinear's output; None where it isn't int8 or uint8 with one scale."""
    points = converter.constant(node, 2)
    dtype = "uint8" if points is None else str(points.dtype)
    if dtype not in STORED:
        return None
    quantization = converter.quantization(node, 1, 2, dtype)
    return quantization if quantization.per_tensor else None


def clip_bounds(converter: Converter, node: Node) -> tuple[float, float]:
    """(least, greatest) number that a Relu or Clip lets pass."""
    if node.kind == "Relu":
        return 0.0, np.inf
    bounds = []
    for i, attribute, default in ((1, "min", -np.inf), (2, "max", np.inf)):
        found = converter.constant(node, i) if node.input(i) else node.attributes.get(attribute)
        if found is not None and np.asarray(found).size != 1:
            raise Refused("a bound is not one number", HINT_UNSOUND)
        bounds.append(default if found is None else float(np.asarray(found).reshape(-1)[0]))
    return bounds[0], bounds[1]


def _clamp(converter: Converter, nodes: list[Node], quantization: Quantization) -> tuple[int, int]:
    low, high = _RANGE
    for node in nodes:
        least, most = quantization.quantize(np.array(clip_bounds(converter, node), np.float32)).tolist()
        low, high = min(max(low, least), most), max(min(high, most), least)
    return low, high
