"""PLANES, PLANES_TO_ROWS and ROWS_TO_PLANES: operators that move channels between the first and the last dimension of
an image, and can run row by row.

rewrite/rows_of_planes.py replaces a TRANSPOSE by them. An image with channels first, [C, H, W], is also viewed as
`Tensor.planes`: [1, H, C, W], whose row y holds line y of all planes. Row y of the image with channels last, [1, H, W,
C], has the same elements in another order.
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
    """PLANES: views a tensor with channels first as an image of rows (`Tensor.planes`), or back; the memory is the
    same."""

    kind = "PLANES"
    summary = "planes of channels as an image of rows, or rows as planes: nothing runs"
    in_files = False
    alias = True

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        return (from_memory(op.output, in_memory(op.input, given(inputs[0]))).reshape(op.output.shape),)


class _Swap(OpFamily):
    """Base of operators that convert an image between channels first and channels last."""

    in_files = False
    transposes = True

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        return (np.ascontiguousarray(given(inputs[0]).swapaxes(2, 3)),)

    def moves(self, op: Op) -> tuple[int, ...]:
        return (0,)

    def row_window(self, op: Op, index: int) -> RowWindow | None:
        return SAME_ROW


class PlanesToRowsFamily(_Swap):
    """PLANES_TO_ROWS: [1, H, C, W], whose tensor is `Tensor.planes` -> an image with channels last [1, H, W, C]."""

    kind = "PLANES_TO_ROWS"
    summary = "rows of pixels out of planes of channels"


class RowsToPlanesFamily(_Swap):
    """ROWS_TO_PLANES: an image with channels last [1, H, W, C] -> [1, H, C, W], whose tensor is `Tensor.planes`."""

    kind = "ROWS_TO_PLANES"
    summary = "rows of pixels into planes of channels"
