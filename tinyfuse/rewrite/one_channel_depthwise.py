"""A depthwise convolution of one input channel is a convolution with as many filters as it has outputs.

before   %o[..,8] = DEPTHWISE_CONV_2D(%in[..,1], %w[1,10,8,8]) depth_multiplier=8
after    %o[..,8] = CONV_2D(%in[..,1], %w'[8,10,8,1])

Both sum the same products in the same order and requantize alike. Convolutions gather a window once for all filters,
which takes a fourth of the instructions or less, and some scratch.
"""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np

from tinyfuse.ir import Graph, Op
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.core.convolution import Conv2D


def one_channel_depthwise(graph: Graph) -> Graph:
    """Replace depthwise convolutions of one input channel into several by convolutions."""
    ops = tuple(_as_convolution(op) if _is_one_channel(op) else op for op in graph.ops)
    return graph if ops == graph.ops else replace(graph, ops=ops)


def _is_one_channel(op: Op) -> bool:
    return FAMILIES[op.kind].depthwise and op.input.shape[3] == 1 and op.output.shape[3] > 1


def _as_convolution(op: Op) -> Op:
    weights, attributes = op.operand(1), op.attributes_as(Conv2D)
    data = np.ascontiguousarray(weights.values[0].transpose(2, 0, 1)[..., None])
    quant = replace(weights.quant, axis=0) if weights.quant is not None else None
    filters = replace(weights, shape=data.shape, data=data, quant=quant, index=-1)
    shared = {field.name: getattr(attributes, field.name) for field in fields(Conv2D)}
    return replace(op, kind="CONV_2D", inputs=(op.input, filters, *op.inputs[2:]), attributes=Conv2D(**shared))
