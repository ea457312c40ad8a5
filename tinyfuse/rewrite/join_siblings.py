"""Joins layers that read the same tensor, and whose results a CONCATENATION puts side by side, into one layer.

before   %a = CONV_2D(%x, %v);  %b = CONV_2D(%x, %w);  %c = CONCATENATION(%a, %b)      along the channels
after    %c = CONV_2D(%x, [%v, %w])

A convolution or fully connected layer computes each channel independently, so every bit stays. Each window is gathered
and extended to int16 only once, and nothing is copied. This is horizontal fusion, as HFuse does it for GPUs (Li et al.,
"Automatic Horizontal Fusion for GPU Kernels", 2022), down to the registers. The layers must be adjacent in the
CONCATENATION, have the same windows, paddings, clamps and quantization, and no other reader.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from itertools import groupby
from typing import TypeVar

import numpy as np

from tinyfuse.ir import Graph, Op, Quant, Tensor
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.core.convolution import FLOAT_HALF_EVEN, Conv2D, rounds_by
from tinyfuse.ops.movement.concatenation import Concatenation

_Number = TypeVar("_Number", int, float)


def join_siblings(graph: Graph) -> Graph:
    """Join sibling layers into one layer."""
    instead: dict[Op, list[Op]] = {}
    for op in graph.ops:
        runs = _runs(graph, op) if _joins_channels(op) else []
        if all(len(run) == 1 for run in runs):
            continue
        inputs: list[Tensor] = []
        for run in runs:
            layers = [graph.producer[tensor] for tensor in run] if len(run) > 1 else []
            output = op.output if len(runs) == 1 else _side_by_side(run)
            instead |= {layer: [] for layer in layers}
            if layers:
                instead[layers[0]] = [_joined(layers, output)]
            inputs.append(output if layers else run[0])
        instead[op] = [replace(op, inputs=tuple(inputs))] if len(runs) > 1 else []
    return replace(graph, ops=tuple(new for op in graph.ops for new in instead.get(op, [op]))) if instead else graph


def _joins_channels(op: Op) -> bool:
    last = len(op.output.shape) - 1 if op.outputs else -1
    return isinstance(op.attributes, Concatenation) and op.attributes.axis % (last + 1) == last


def _runs(graph: Graph, op: Op) -> list[list[Tensor]]:
    """Return the CONCATENATION's inputs in order, with siblings grouped in runs."""
    return [list(run) for _, run in groupby(op.operands, key=lambda tensor: _likeness(graph, op, tensor) or object())]


def _likeness(graph: Graph, op: Op, tensor: Tensor) -> Hashable:
    """Return a key equal for sibling layers; None if `tensor` isn't made by such a layer for one use in `op` alone."""
    layer = graph.producer.get(tensor)
    if layer is None:  # a graph input or a constant
        return None
    alone = tensor not in graph.outputs and graph.consumers[tensor] == (op,) and op.inputs.count(tensor) == 1
    if not alone or tensor.quant != op.output.quant or layer.activations != layer.inputs[:1]:
        return None
    family = FAMILIES[layer.kind]
    if (family.data_and_weights, family.channel_axis) != ((0, 1), 0):
        return None
    weights, bias = layer.operand(1), layer.optional(2)
    if weights.shape[-1] != layer.input.shape[-1]:
        return None  # grouped convolutions, or a dense layer whose vectors span several dimensions
    kernel = weights.dtype, weights.shape[1:], _arithmetic(layer)
    return layer.kind, layer.input, layer.attributes, kernel, bias and bias.dtype


def _arithmetic(layer: Op) -> Quant | str | None:
    """Return the part of the weights' quantization that decides how scales are multiplied.

    Dense layers and uint8 convolutions multiply a per-tensor scale in float32: only equal quantizations may join.
    Layers of FLOAT_HALF_EVEN multiply every scale in float32.
    """
    quant = layer.operand(1).quant
    in_floats = not FAMILIES[layer.kind].convolution or layer.attributes_as(Conv2D).float_scales
    if quant is None or (in_floats and not quant.per_channel and not rounds_by(layer, FLOAT_HALF_EVEN)):
        return quant
    return "a scale per channel"


def _side_by_side(tensors: Sequence[Tensor]) -> Tensor:
    """Return a tensor with the channels of all `tensors`, in order."""
    shape = (*tensors[0].shape[:-1], sum(tensor.shape[-1] for tensor in tensors))
    return replace(tensors[0], name=f"{tensors[0].name} (siblings)", shape=shape, index=-1)


def _joined(layers: Sequence[Op], output: Tensor) -> Op:
    """Return one layer with the channels of all `layers`."""
    first = layers[0]
    weights = [layer.operand(1) for layer in layers]
    alike = len({constant.quant for constant in weights}) == 1 and not (
        weights[0].quant and weights[0].quant.per_channel
    )
    constants = [_stacked(weights, weights[0].quant if alike else _of_every_channel(weights))]
    if first.optional(2) is not None:
        constants.append(
            _stacked([layer.operand(2) for layer in layers], None)
        )  # the bias scale follows from the others
    return replace(first, inputs=(first.input, *constants, *first.inputs[1 + len(constants) :]), outputs=(output,))


def _stacked(constants: Sequence[Tensor], quant: Quant | None) -> Tensor:
    """Concatenate constants along dimension 0."""
    data = np.concatenate([constant.values for constant in constants])
    return replace(
        constants[0], name=f"{constants[0].name} (siblings)", shape=data.shape, quant=quant, data=data, index=-1
    )


def _of_every_channel(weights: Sequence[Tensor]) -> Quant:
    """Return per-channel scales and zero points for the concatenated weights."""

    def repeated(numbers: tuple[_Number, ...], channels: int) -> tuple[_Number, ...]:
        return numbers if len(numbers) == channels else numbers * channels

    pairs = [(one.quantization, one.shape[0]) for one in weights]
    scales = tuple(scale for quant, channels in pairs for scale in repeated(quant.scale, channels))
    zero_points = tuple(zero for quant, channels in pairs for zero in repeated(quant.zero_point, channels))
    return Quant(scales, zero_points)
