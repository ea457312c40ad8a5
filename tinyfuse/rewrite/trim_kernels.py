"""Kernel rows and columns that are zero in every filter are cut off at the ends.

before   %o = CONV_2D(%in, %w[8,3,3,4]) padding=(1, 1, 1, 1)      with %w[:, 0] all zero
after    %o = CONV_2D(%in, %w'[8,2,3,4]) padding=(0, 1, 1, 1)

A zero tap adds nothing wherever it falls. A smaller window takes less work, and a group keeps fewer rows for it. At the
top and left, no more rows or columns are cut than there is padding, because padding cannot be negative. A depthwise 3x3
stays: its own kernel is faster than the general one for a narrower window. float32 stays: 0 times an infinity is not a
number.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tinyfuse.ir import Graph, Op
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.core.convolution import Conv2D, padded_dims, quantized


def trim_kernels(graph: Graph) -> Graph:
    """Cut rows and columns of zeros from the ends of convolution kernels."""
    ops = tuple(_trimmed(op) if _has_kernel(op) else op for op in graph.ops)
    return graph if ops == graph.ops else replace(graph, ops=ops)


def _has_kernel(op: Op) -> bool:
    family = FAMILIES[op.kind]
    if not family.convolution or not quantized(op):
        return False
    size = op.operand(1).shape[1:3]
    return size != (1, 1) and not (family.depthwise and size == (3, 3))


def _trimmed(op: Op) -> Op:
    """Return the operator with the smallest equivalent kernel; itself if that is its own."""
    weights, attributes = op.operand(1), op.attributes_as(Conv2D)
    padding: list[tuple[int, int]] = []
    cuts: list[slice] = []
    for axis, (count, before) in enumerate(padded_dims(op), 1):
        dim = op.input.shape[axis]
        stride, dilation = attributes.stride[axis - 1], attributes.dilation[axis - 1]
        used = np.flatnonzero(weights.values.any(axis=tuple(a for a in range(4) if a != axis)))
        first, last = (int(used[0]), int(used[-1])) if used.size else (0, 0)
        first = min(first, before // dilation)
        before -= first * dilation
        # padding that the last window reads after the input; negative if the window ends before the input does
        after = (count - 1) * stride + (last - first) * dilation + 1 - dim - before
        cuts.append(slice(first, last + 1))
        padding.append((before, after))
    if cuts == [slice(0, dim) for dim in weights.shape[1:3]]:
        return op
    data = np.ascontiguousarray(weights.values[:, cuts[0], cuts[1]])
    kernel = replace(weights, shape=data.shape, data=data, index=-1)
    inputs = (op.input, kernel, *op.inputs[2:])
    return replace(op, inputs=inputs, attributes=replace(attributes, padding=(*padding[0], *padding[1])))
