"""PLANES, PLANES_TO_ROWS, ROWS_TO_PLANES: a TRANSPOSE of channels, in operators of ours that can make a row at a time.

rewrite/rows_of_planes.py makes them. An image whose channels are planes, [C, H, W], is under another name an image of
`Tensor.planes`: [1, H, C, W], whose row y is line y of every plane. Its rows become those of [1, H, W, C], or come from
them, one from one.
"""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import Array, Op, Tensor, given
from tinyfuse.ops.core.family import SAME_ROW, OpFamily, RowWindow


def in_memory(tensor: Tensor, data: Array) -> Array:
    """The values of a tensor as they follow each other in memory."""
    return data if tensor.planes == 1 else np.ascontiguousarray(data.swapaxes(1, 2))


def from_memory(tensor: Tensor, data: Array) -> Array:
    """The values of a tensor, in its shape, from those that follow each other in memory."""
    if tensor.planes == 1:
        return data.reshape(tensor.shape)
    _, height, planes, width = tensor.shape
    return np.ascontiguousarray(data.reshape(1, planes, height, width).swapaxes(1, 2))


class PlanesFamily(OpFamily):
    """A tensor of planes under the name of an image of rows, or that under the other name: the same memory."""

    kind = "PLANES"
    summary = "planes of channels as an image of rows, or rows as planes: nothing runs"
    in_files = False
    alias = True

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        return (from_memory(op.output, in_memory(op.input, given(inputs[0]))).reshape(op.output.shape),)


class _Swap(OpFamily):
    """Lines of channels become pixels, or pixels lines."""

    in_files = False
    transposes = True

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        return (np.ascontiguousarray(given(inputs[0]).swapaxes(2, 3)),)

    def moves(self, op: Op) -> tuple[int, ...]:
        return (0,)

    def row_window(self, op: Op, index: int) -> RowWindow | None:
        return SAME_ROW


class PlanesToRowsFamily(_Swap):
    """[1, H, C, W], of planes -> [1, H, W, C]."""

    kind = "PLANES_TO_ROWS"
    summary = "rows of pixels out of planes of channels"


class RowsToPlanesFamily(_Swap):
    """[1, H, W, C] -> [1, H, C, W], of planes."""

    kind = "ROWS_TO_PLANES"
    summary = "rows of pixels into planes of channels"
