"""Lets a layer whose window is as high as the image accumulate its sums row by row.

before   %o[1,1,W,U] = DEPTHWISE_CONV_2D(%in[1,H,V,C], %w[1,H,K,U]) VALID
after    %s[1,H,W,U] = ROW_MACS(%in, %w');  %o = OUTPUT_OF_SUMS(%s)

It also applies to CONV_2D, to FULLY_CONNECTED after a RESHAPE of an image, and to MEAN or integer SUM over rows, or
over rows and columns (ROW_SUM, MEAN_OF_SUM). Row y of %s holds the accumulators after row y of the image. In a ring of
one row, each row of accumulators replaces the one before. Integer sums have no order, so every bit stays.

Layers must be int8, because the order of float32 sums matters, and int16 data may need int64 sums. A MEAN of float32
adds its rows in order anyway.

Accumulators take four bytes each, so a layer is split only if they are at most half as large as the image. Portable C
adds them. A depthwise layer or a mean has too few products for that to cost time; other layers are split if only RAM
counts, and with `balanced` if that costs almost no instructions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tinyfuse.ir import Array, Graph, Op, Tensor
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.core.convolution import REAL_MULTIPLIER, geometry, rounds_by
from tinyfuse.ops.pooling_reduce.reduce_scaling import reduced_axes
from tinyfuse.ops.pooling_reduce.row_macs import PartOfLayer, RowMacs
from tinyfuse.ops.pooling_reduce.row_sum import sum_dtype


def split_full_height(graph: Graph) -> Graph:
    """Split depthwise convolutions and means as high as their image."""
    return _split_all(graph, _split_cheap)


def split_dense(graph: Graph) -> Graph:
    """Split convolutions and fully connected layers as high as their image."""
    return _split_all(graph, _split_layer)


def _split_all(graph: Graph, split: Callable[[Graph, Op], list[Op] | None]) -> Graph:
    ops: list[Op] = []
    for op in graph.ops:
        # a ring (ring_window.py) holds all rows already: nothing to save
        splits = not op.states and bool(op.inputs)
        ops += (split(graph, op) if splits else None) or [op]
    return graph if len(ops) == len(graph.ops) else replace(graph, ops=tuple(ops))


def _split_cheap(graph: Graph, op: Op) -> list[Op] | None:
    if FAMILIES[op.kind].sums and (op.kind == "MEAN" or op.input.dtype != "float32"):
        return _split_mean(op)
    return _split_convolution(op) if FAMILIES[op.kind].depthwise and op.input.dtype == "int8" else None


def _split_layer(graph: Graph, op: Op) -> list[Op] | None:
    family = FAMILIES[op.kind]
    if family.channel_axis is None or family.depthwise or op.input.dtype != "int8":
        return None
    return _split_convolution(op) if family.convolution else _split_dense(graph, op)


def _split_convolution(op: Op) -> list[Op] | None:
    if op.input.shape[0] != 1 or op.operand(1).dtype == "int16" or rounds_by(op, REAL_MULTIPLIER):
        return None
    g, depthwise = geometry(op), FAMILIES[op.kind].depthwise
    if (g.out_h, g.kernel_h, g.dilation_h, g.pad_top) != (1, g.in_h, 1, 0) or not (depthwise or g.groups == 1):
        return None
    data = op.operand(1).values
    # [1, H, K, U] and [U, H, K, C] -> [H, K, U, terms]
    weights = data[0][..., None] if depthwise else data.transpose(1, 2, 0, 3)
    along = RowMacs(g.stride_w, g.dilation_w, g.pad_left, depthwise)
    return _parts(op, op.input, weights, along, op.output)


def _split_dense(graph: Graph, op: Op) -> list[Op] | None:
    producer = graph.producer.get(op.input)
    if producer is None or producer.kind != "RESHAPE" or not producer.input.is_image:
        return None
    image, weights = producer.input, op.operand(1)
    _, height, width, channels = image.shape
    if image.quant != op.input.quant or any(weights.quantization.zero_point) or rounds_by(op, REAL_MULTIPLIER):
        return None
    if weights.shape[1] != image.elements:
        return None
    units = weights.shape[0]
    # [U, H * W * C] -> [H, W, U, C]: a convolution with a kernel as large as the image
    rows = weights.values.reshape(units, height, width, channels).transpose(1, 2, 0, 3)
    result = replace(op.output, name=f"{op.output.name} (row)", shape=(1, 1, 1, units), index=-1)
    parts = _parts(op, image, rows, RowMacs(1, 1, 0, False), result)
    return parts and [*parts, _renamed(result, op)]


def _split_mean(op: Op) -> list[Op] | None:
    if not op.input.is_image or reduced_axes(op) not in ((1,), (1, 2)):
        return None
    _, height, width, channels = op.input.shape
    columns = 1 if 2 in reduced_axes(op) else width
    sums = Tensor(f"{op.output.name} (sum)", (1, height, columns, channels), sum_dtype(op.input.dtype))
    result = replace(op.output, name=f"{op.output.name} (row)", shape=(1, 1, columns, channels), index=-1)
    if height == 1 or not _worthwhile(sums, op.input):
        return None
    return [
        Op("ROW_SUM", (op.input,), (sums,), index=op.index, estimate_mark=op.estimate_mark),
        Op("MEAN_OF_SUM", (sums,), (result,), PartOfLayer(op), index=op.index, estimate_mark=op.estimate_mark),
        _renamed(result, op),
    ]


def _parts(op: Op, image: Tensor, weights: Array, along: RowMacs, result: Tensor) -> list[Op] | None:
    height, units, columns = image.shape[1], weights.shape[2], result.shape[2]
    sums = Tensor(f"{op.output.name} (sum)", (1, height, columns, units), "int32")
    if height == 1 or not _worthwhile(sums, image):
        return None
    quant = replace(op.operand(1).quantization, axis=2)  # the axis of output units
    constant = replace(op.operand(1), shape=weights.shape, quant=quant, data=np.ascontiguousarray(weights), index=-1)
    return [
        Op("ROW_MACS", (image, constant), (sums,), along, index=op.index, estimate_mark=op.estimate_mark),
        Op("OUTPUT_OF_SUMS", (sums,), (result,), PartOfLayer(op), index=op.index, estimate_mark=op.estimate_mark),
    ]


def _worthwhile(sums: Tensor, image: Tensor) -> bool:
    return 2 * sums.bytes // sums.shape[1] <= image.bytes


def _renamed(result: Tensor, op: Op) -> Op:
    """Return an operator that reshapes `result` to the output of `op`."""
    return Op("RESHAPE", (result,), op.outputs, index=op.index, estimate_mark=op.estimate_mark)
