"""Operators that compute each image of a batch by itself: convolutions and pooling."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace

import numpy as np

from tinyfuse.ir import Array, Op, Tensor, given
from tinyfuse.ops.core.family import OpFamily, RowWindow


class ImageFamily(OpFamily):
    """Base of families whose kernels compute one image. A batch is computed by a loop over its images, and never row by
    row."""

    one_image = True

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        one, at = image_op(op, self.image_input), self.image_input
        data = given(inputs[at])
        images = [self.image(one, *inputs[:at], data[n : n + 1], *inputs[at + 1 :]) for n in range(len(data))]
        return (np.concatenate(images),)

    @abstractmethod
    def image(self, op: Op, *inputs: Array | None) -> Array:
        """Exact output [1, H, W, C] for one image; `inputs` as in `reference`."""

    def row_window(self, op: Op, index: int) -> RowWindow | None:
        return self.window(op) if index == self.image_input and op.output.shape[0] == 1 else None

    @abstractmethod
    def window(self, op: Op) -> RowWindow:
        """Return the rows of an image that an output row reads."""


def image_op(op: Op, index: int = 0) -> Op:
    """The operator on the first image of the batch that its input `index` holds."""
    if op.operand(index).shape[0] == 1:
        return op
    source, result = _first(op.operand(index)), _first(op.output)
    return replace(op, inputs=(*op.inputs[:index], source, *op.inputs[index + 1 :]), outputs=(result,))


def _first(tensor: Tensor) -> Tensor:
    return replace(tensor, shape=(1, *tensor.shape[1:]))
