"""Operators that compute each image of a batch by itself: convolutions and pooling."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from tinyfuse.ir import Op
from tinyfuse.kernels.each_image import EachImage, image_op
from tinyfuse.ops.base import Kernel, Operator, RowWindow


class ImageOperator(Operator):
    """`kernels` are of one image; a batch takes them in a loop, and doesn't stream by rows."""

    def kernels_for(self, op: Op) -> tuple[Kernel, ...]:
        return self.kernels if op.input.shape[0] == 1 else tuple(EachImage(kernel) for kernel in self.kernels)

    def reference(self, op: Op, *inputs: np.ndarray | None) -> tuple[np.ndarray, ...]:
        one = image_op(op)
        images = (self.image(one, inputs[0][n : n + 1], *inputs[1:]) for n in range(op.input.shape[0]))
        return (np.concatenate(list(images)),)

    @abstractmethod
    def image(self, op: Op, *inputs: np.ndarray | None) -> np.ndarray:
        """The exact output [1, H, W, C] of an image, as `reference`."""

    def row_window(self, op: Op, index: int) -> RowWindow | None:
        return self.window(op) if index == 0 and op.input.shape[0] == 1 else None

    @abstractmethod
    def window(self, op: Op) -> RowWindow:
        """Which rows of an image an output row reads."""
