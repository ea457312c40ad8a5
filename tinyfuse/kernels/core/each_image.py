"""Calls a kernel that computes one image for each image of a batch."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from tinyfuse.ir import Op, Tensor
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Kernel, TensorAccess
from tinyfuse.kernels.core.statements import Loop, Statement
from tinyfuse.kernels.core.wrapper import WholeWrapper
from tinyfuse.kernels.counts.common import Counts
from tinyfuse.ops.core.images import image_op


class EachImage(WholeWrapper):
    """Wrapper that calls `kernel` in a loop over the images [1, H, W, C] of the output and of input `index`; also in a
    loop over each image's rows if the kernel computes only rows. All images share the other inputs."""

    def __init__(self, kernel: Kernel, index: int = 0):
        super().__init__(kernel)
        self.index = index

    def inner(self, op: Op) -> Op:
        return image_op(op, self.index)

    def inner_by_row(self, by_row: bool) -> bool:
        return not self.kernel.whole

    def work(self, op: Op, context: Context) -> tuple[tuple[Kernel, Op, float], ...]:
        images = op.output.shape[0]
        return tuple((kernel, part, images * times) for kernel, part, times in super().work(op, context))

    def counts(self, op: Op, by_row: bool) -> Counts:
        return _counts_of_images(self.kernel, op, by_row, self.index)

    def slowest_counts(self, op: Op, by_row: bool) -> Counts:
        return _multiply_counts(op.output.shape[0], self.kernel.slowest_counts(self.inner(op), by_row))

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        image, rows = image_op(op, self.index), op.output.shape[1]
        source = _image_access(site.input(self.index), image.operand(self.index))
        result = _image_access(site.output, image.output)
        row = None
        if not self.kernel.whole:
            row, start, size = "y", result.pointer, image.output.elements // rows

            def row_at(number: str) -> str:
                return f"({start} + {number} * {size})"

            result = replace(result, pointer=row_at(row), row_at=row_at)
        inputs = (*site.inputs[: self.index], source, *site.inputs[self.index + 1 :])
        inner = CallSite(inputs, (result,), row, site.scratch, site.constant)
        body = self.kernel.call(image, inner, context)
        by_row = body if row is None else (Loop("y", rows, body, self.kernel.rows_a_call),)
        return (Loop("image", op.output.shape[0], by_row),)


@lru_cache(maxsize=8192)
def _counts_of_images(kernel: Kernel, op: Op, by_row: bool, index: int) -> Counts:
    return _multiply_counts(op.output.shape[0], kernel.counts(image_op(op, index), by_row))


def _multiply_counts(images: int, of_one: Counts) -> Counts:
    return {name: images * count for name, count in of_one.items()}


def _image_access(access: TensorAccess, image: Tensor) -> TensorAccess:
    return TensorAccess(image, f"({access.pointer} + image * {image.elements})", image.shape[1])
