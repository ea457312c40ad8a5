"""COMPUTED_LAYER: a convolution or fully connected layer whose weights or bias a run computes. Only
rewrite/computed_weights.py makes it. It is a kind of its own, so that the weights of all other layers are known to be
constants."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from tinyfuse.ir import ITEM_BYTES, Array, Op, Tensor
from tinyfuse.ops.core.convolution import Clamped
from tinyfuse.ops.core.family import OpFamily
from tinyfuse.ops.layers.conv_2d import Conv2DFamily
from tinyfuse.ops.layers.depthwise_conv_2d import DepthwiseConv2DFamily
from tinyfuse.ops.layers.fully_connected import FullyConnectedFamily
from tinyfuse.ops.layers.transpose_conv import TransposeConvFamily

#: kind -> family
LAYERS: dict[str, OpFamily] = {
    family.kind: family
    for family in (Conv2DFamily(), DepthwiseConv2DFamily(), FullyConnectedFamily(), TransposeConvFamily())
}


@dataclass(frozen=True)
class ComputedLayer:
    """Attributes of COMPUTED_LAYER: the kind of the layer, and the layer's attributes."""

    kind: str
    layer: Clamped


def places(kind: str) -> tuple[int, int, int]:
    """Indexes of a layer's inputs: (data, weights, bias)."""
    data, weights = LAYERS[kind].data_and_weights or (0, 1)
    return data, weights, max(data, weights) + 1


def is_computed(op: Op) -> bool:
    """Tell whether the operator is a layer whose weights or bias are not constants."""
    if op.kind not in LAYERS:
        return False
    parts = [op.optional(i) for i in places(op.kind)[1:]]
    return any(tensor is not None and not tensor.is_constant for tensor in parts)


def with_stand_ins(op: Op) -> Op:
    """Layer with constant zeros instead of computed weights and biases, and computed data instead of constant data.
    Shapes, multipliers and rules follow from it, but not sums."""
    data = places(op.kind)[0]

    def stand_in(i: int, tensor: Tensor | None) -> Tensor | None:
        if tensor is None or i == data:
            return tensor and replace(tensor, data=None)
        if tensor.is_constant or tensor.dtype not in ITEM_BYTES:  # a rule refuses other dtypes
            return tensor
        return replace(tensor, data=np.broadcast_to(np.zeros((), tensor.dtype), tensor.shape))

    return replace(op, inputs=tuple(stand_in(i, tensor) for i, tensor in enumerate(op.inputs)))


@lru_cache(maxsize=512)
def layer_of(op: Op) -> Op:
    """Layer of a COMPUTED_LAYER, with zeros for computed weights and biases (`with_stand_ins`)."""
    a = op.attributes_as(ComputedLayer)
    return with_stand_ins(replace(op, kind=a.kind, attributes=a.layer))


class ComputedLayerFamily(OpFamily):
    """COMPUTED_LAYER; its inputs and output are those of the layer."""

    kind = "COMPUTED_LAYER"
    summary = "a layer whose weights or bias are computed at run time"
    in_files = False

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        layer = layer_of(op)
        return LAYERS[layer.kind].reference(layer, *inputs)

    def macs(self, op: Op) -> int:
        layer = layer_of(op)
        return LAYERS[layer.kind].macs(layer)
