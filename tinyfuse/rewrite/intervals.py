"""Computes exact integer intervals of the stored values that each channel can hold, over all inputs of the model.

Forward, operator by operator: a convolution's accumulator lies between the sums of the least and the
greatest products of its taps (a tap outside the image contributes 0), and requantization never
decreases, so its ends map to the ends of the output. A channel whose interval is one value is
constant. Operators of other kinds may compute anything that their dtype holds.
"""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import Array, Graph, Op, Tensor
from tinyfuse.ir.fixedpoint import INT32_MAX, INT32_MIN
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.core.convolution import (
    DepthwiseConv2D,
    bias_values,
    channel_multipliers,
    clamp_range,
    geometry,
    scaled_sums,
)
from tinyfuse.ops.pooling_reduce.reduce_scaling import outputs_of_totals, reduced_count
from tinyfuse.ops.weight_sums import sums_by_sign

Interval = tuple[Array, Array]


def channel_intervals(graph: Graph) -> dict[Tensor, Interval]:
    """Return (least, greatest) stored value of every index of the last dimension, int64 [C], for each int8
    activation."""
    known: dict[Tensor, Interval] = {}

    def of(tensor: Tensor) -> Interval:
        if tensor in known:
            return known[tensor]
        channels = tensor.shape[-1] if tensor.shape else 1
        return np.full(channels, -128), np.full(channels, 127)

    for op in graph.ops:
        if not op.outputs or op.output.dtype != "int8" or op.input.dtype != "int8":
            continue
        family = FAMILIES[op.kind]
        if family.channel_axis is not None:
            known[op.output] = _accumulated(op, *of(op.input))
        elif family.pools:
            low, high = clamp_range(op)
            least, most = of(op.input)
            known[op.output] = np.clip(least, low, high), np.clip(most, low, high)
        elif family.reduces and family.passes_channels(op):
            known[op.output] = _reduced(op, *of(op.input))
        elif family.alias and op.input.shape[-1:] == op.output.shape[-1:]:
            known[op.output] = of(op.input)
    return known


def _reduced(op: Op, low: Array, high: Array) -> Interval:
    """Return the interval of each channel of a reduction over other dimensions."""
    if not FAMILIES[op.kind].sums:
        return low, high
    count, zero_point = reduced_count(op), op.input.zero_point
    least, greatest = (outputs_of_totals(op, count * (end - zero_point)).astype(np.int64) for end in (low, high))
    return least, greatest


def _accumulated(op: Op, low: Array, high: Array) -> Interval:
    """Return the interval of each output channel of a convolution or fully connected layer."""
    if op.kind == "FULLY_CONNECTED" and (
        low.size != op.operand(1).shape[1] or any(op.operand(1).quantization.zero_point)
    ):
        return _anything(op)
    totals = np.array(_sums(op, low - op.input.zero_point, high - op.input.zero_point)) + bias_values(op)
    if totals[0].min() <= INT32_MIN or totals[1].max() > INT32_MAX:
        return _anything(op)  # the accumulator might wrap
    shifts = channel_multipliers(op)[1]
    if shifts.max() > 0 and ((np.abs(totals) << np.maximum(shifts, 0)) > INT32_MAX).any():
        return _anything(op)
    scaled = scaled_sums(op, totals) + op.output.zero_point
    lowest, highest = clamp_range(op)
    least, greatest = np.clip(scaled, lowest, highest)
    return least, greatest


def _anything(op: Op) -> Interval:
    """Return the range of the clamp, for each output channel."""
    least, greatest = (np.full(op.output.shape[-1], end) for end in clamp_range(op))
    return least, greatest


def _sums(op: Op, low: Array, high: Array) -> Interval:
    """Return (least, greatest) accumulator of each output channel without its bias.

    `low` and `high` are the ends of the input channels less the zero point.
    """
    if (low == low[0]).all() and (high == high[0]).all():  # the common case, computed faster
        return _sums_of_equal(op, int(low[0]), int(high[0]))
    weights = op.operand(1).values
    if op.kind == "FULLY_CONNECTED":
        taps = weights[:, None, None, :]
        padded = False
    elif op.kind == "CONV_2D":
        taps = weights
        padded = is_padded(op)
        groups = geometry(op).groups
        if groups > 1:
            # each output channel reads the input channels of its own group
            of_output = np.arange(weights.shape[0]) // (weights.shape[0] // groups)
            width = weights.shape[3]
            columns = of_output[:, None] * width + np.arange(width)
            low, high = low[columns], high[columns]
    else:
        multiplier = op.attributes_as(DepthwiseConv2D).depth_multiplier
        taps = weights[0].transpose(2, 0, 1)[..., None]
        low, high = (np.repeat(end, multiplier)[:, None] for end in (low, high))
        padded = is_padded(op)
    if padded:  # a tap outside the image contributes 0
        low, high = np.minimum(low, 0), np.maximum(high, 0)
    # a product lies between w * low and w * high: centre w * (low + high) / 2, radius |w| * (high - low) / 2. float64
    # holds these integers exactly and multiplies faster
    both, apart = low + high, high - low
    reach = 128 * taps[0].size * max(np.abs(both).max(), apart.max())
    taps = taps.reshape(taps.shape[0], -1, taps.shape[3]).astype(np.float32 if reach < 2**24 else np.float64)
    middle = _products(taps, both).astype(np.int64)
    away = _products(np.abs(taps, out=taps), apart).astype(np.int64)
    return (middle - away) >> 1, (middle + away) >> 1


def _sums_of_equal(op: Op, low: int, high: int) -> Interval:
    """Return what `_sums` returns, for an input whose channels all lie between `low` and `high`."""
    if (low > 0 or high < 0) and FAMILIES[op.kind].convolution and is_padded(op):
        low, high = min(low, 0), max(high, 0)
    positive, negative = sums_by_sign(op)
    return low * positive + high * negative, high * positive + low * negative


def _products(taps: Array, inputs: Array) -> Array:
    """Sum taps [out channels, taps, in channels] times inputs, [in channels] or one row per output channel."""
    weights, inputs = taps[:, 0] if taps.shape[1] == 1 else taps.sum(axis=1), inputs.astype(taps.dtype)
    sums: Array = weights @ inputs if inputs.ndim == 1 else (weights * inputs).sum(axis=1)
    return sums


def is_padded(op: Op) -> bool:
    """Tell whether any tap of a convolution ever falls outside its input."""
    g = geometry(op)
    bottom = (g.out_h - 1) * g.stride_h - g.pad_top + (g.kernel_h - 1) * g.dilation_h
    right = (g.out_w - 1) * g.stride_w - g.pad_left + (g.kernel_w - 1) * g.dilation_w
    return g.pad_top > 0 or g.pad_left > 0 or bottom >= g.in_h or right >= g.in_w
