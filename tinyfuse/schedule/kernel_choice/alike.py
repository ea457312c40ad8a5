"""Groups layers that get equal estimates, so that a kernel is chosen only for the first of each group.

Networks repeat their layers. The kernel of an int8 layer and its cost follow from shapes, zero points and clamp, and
from the form in which its requantization is exact; values of weights and scales change little else. So among estimated
operators (`Op.estimate_mark`) the first one stands for all similar ones.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache

from tinyfuse.ir import Op, Tensor
from tinyfuse.kernels.requantize.single_rounding import any_single_rounding
from tinyfuse.kernels.tables.layers import LAYERS, layer_dtype
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.core.convolution import clamp_range


@lru_cache(maxsize=8192)
def first_alike(op: Op) -> Op:
    """First similar operator of the estimate; itself if code is made of it, or its weights are not constant."""
    constants = all(tensor is None or tensor.is_constant for tensor in op.inputs[1:])
    if op.estimate_mark is None or not constants or op.kind not in LAYERS or layer_dtype(op) != "int8":
        return op
    return op.estimate_mark.first(_signature(op), op)


def _signature(op: Op) -> Hashable:
    weights, line = op.operand(1).quantization, any_single_rounding(op) if FAMILIES[op.kind].convolution else None
    form = line is None, line is not None and line.shift is None
    shapes = tuple(map(_shape, (*op.inputs, op.output)))
    zero_points = op.input.zero_point, op.output.zero_point, any(weights.zero_point)
    return op.kind, op.attributes, shapes, zero_points, clamp_range(op), form, weights.per_channel


def _shape(tensor: Tensor | None) -> Hashable:
    return tensor and (tensor.shape, tensor.dtype, tensor.planes, tensor.is_state, tensor.cursor is not None)
