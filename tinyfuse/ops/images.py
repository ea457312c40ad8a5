"""Operators that compute each image of a batch by itself: convolutions and pooling."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace

import numpy as np

from tinyfuse.ir import Array, Op, Tensor, given
from tinyfuse.ops.base import OpFamily, RowWindow


class ImageOperator(OpFamily):
    """Its kernels are of one image; a batch takes them in a loop, and doesn't stream by rows."""

    one_image = True

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        one = image_op(op)
        images = (self.image(one, given(inputs[0])[n : n + 1], *inputs[1:]) for n in range(op.input.shape[0]))
        return (np.concatenate(list(images)),)

    @abstractmethod
    def image(self, op: Op, *inputs: Array | None) -> Array:
        """The exact output [1, H, W, C] of an image, as `reference`."""

    def row_window(self, op: Op, index: int) -> RowWindow | None:
        return self.window(op) if index == 0 and op.input.shape[0] == 1 else None

    @abstractmethod
    def window(self, op: Op) -> RowWindow:
        """Which rows of an image an output row reads."""


def image_op(op: Op) -> Op:
    """The operator on the first image of its batch."""
    source, result = (_first(tensor) for tensor in (op.input, op.output))
    return replace(op, inputs=(source, *op.inputs[1:]), outputs=(result,))


def _first(tensor: Tensor) -> Tensor:
    return replace(tensor, shape=(1, *tensor.shape[1:]))
