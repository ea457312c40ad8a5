"""A convolution with one output pixel, whose window covers its input, is a fully connected layer.

before   %o[1,1,1,100] = CONV_2D(%in[1,6,40,1], %w[100,6,40,1]) VALID
after    %o[1,1,1,100] = FULLY_CONNECTED(%in[1,6,40,1], %w'[100,240])

Both sum the same products in the same order and requantize alike. Dense layers read their input as it lies in memory,
and need no window in scratch. Weights over padding are dropped: they multiply the zero point, or are left out.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tinyfuse.ir import INT4, Graph, Op, Tensor
from tinyfuse.ops.core.convolution import Conv2D, channel_multipliers, geometry, quantized
from tinyfuse.ops.layers.fully_connected import FullyConnected


def dense_windows(graph: Graph) -> Graph:
    """Return the graph with FULLY_CONNECTED in place of each CONV_2D whose only window covers its input."""
    ops = tuple(_as_dense(op) or op for op in graph.ops)
    return graph if ops == graph.ops else replace(graph, ops=ops)


def _as_dense(op: Op) -> Op | None:
    """Return the layer as FULLY_CONNECTED; None if it is another operator or would be requantized differently."""
    if op.kind != "CONV_2D" or op.input.is_state or not op.operand(1).is_constant:
        return None
    if op.operand(1).dtype in (INT4, "int16"):  # dense layers have no such weights, or none with a scale per channel
        return None
    weights = _weights_over_input(op)
    if weights is None:
        return None
    a = op.attributes_as(Conv2D)
    attributes = FullyConnected(a.activation, a.clamp, quantized_bias_type=a.quantized_bias_type, rounding=a.rounding)
    dense = replace(op, kind="FULLY_CONNECTED", inputs=(op.input, weights, *op.inputs[2:]), attributes=attributes)
    if not quantized(op) or _requantizes_alike(op, dense):
        return dense
    # FULLY_CONNECTED multiplies per-tensor scales in float32, per-channel scales in double precision
    quant = weights.quantization
    each = replace(quant, scale=quant.scale * weights.shape[0], zero_point=quant.zero_point * weights.shape[0])
    dense = replace(dense, inputs=(op.input, replace(weights, quant=each), *op.inputs[2:]))
    return dense if _requantizes_alike(op, dense) else None


def _weights_over_input(op: Op) -> Tensor | None:
    """Return weights [out_c, in_h * in_w * in_c] over the input's elements.

    Return None for layers with several windows or groups, and for windows of one pixel: those need no gathering.
    """
    g, filters = geometry(op), op.operand(1)
    sparse = (g.dilation_h > 1 and g.kernel_h > 1) or (g.dilation_w > 1 and g.kernel_w > 1)
    if (g.out_h, g.out_w, g.groups) != (1, 1, 1) or sparse or g.in_h * g.in_w == 1:
        return None
    values = filters.values[:, g.pad_top : g.pad_top + g.in_h, g.pad_left : g.pad_left + g.in_w]
    if values.shape[1:] != op.input.shape[1:]:
        return None
    data = np.ascontiguousarray(values).reshape(len(values), -1)
    quant = replace(filters.quant, axis=0) if filters.quant is not None else None
    return replace(filters, shape=data.shape, data=data, quant=quant, index=-1)


def _requantizes_alike(one: Op, other: Op) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(channel_multipliers(one), channel_multipliers(other), strict=True))
