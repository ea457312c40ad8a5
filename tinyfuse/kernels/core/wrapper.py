"""Kernels that call another kernel: for an operator in another form, for parts of it, or for each image of a batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

from tinyfuse.ir import Op, Tensor
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.cost import KernelCosts
from tinyfuse.kernels.core.kernel import CallSite, Kernel, TensorAccess
from tinyfuse.kernels.core.statements import Loop, Statement
from tinyfuse.kernels.counts.common import Counts
from tinyfuse.ops.core.images import image_op

#: names of all attributes that kernels declare
DECLARED = tuple(KernelCosts.__annotations__ | Kernel.__annotations__)


def _of_inner(method: str, *, by_row: bool = False) -> Callable[..., Any]:
    """Method of a wrapper that gives the kernel's answer for `inner(op)`. `by_row`: it is also asked how the calls are
    made, for which the wrapper asks with `inner_by_row`."""

    def answer(wrapper: Wrapper, op: Op, *asked: Any) -> Any:
        if by_row:
            asked = (wrapper.inner_by_row(asked[0]), *asked[1:])
        return getattr(wrapper.kernel, method)(wrapper.inner(op), *asked)

    return answer


def _derived(method: str, *, by_row: bool = False) -> Callable[..., Any]:
    """Method of a wrapper like that of `_of_inner`, unless the kernel inherits its own from Kernel, which derives the
    answer from other answers. It must then be derived from the wrapper's answers, which may differ."""

    def answer(wrapper: Wrapper, op: Op, *asked: Any) -> Any:
        if getattr(type(wrapper.kernel), method) is getattr(Kernel, method):
            return getattr(Kernel, method)(wrapper, op, *asked)
        return _of_inner(method, by_row=by_row)(wrapper, op, *asked)

    return answer


class Wrapper(Kernel):
    """Kernel whose calls are calls of `kernel` for `inner(op)`.

    Every attribute and method gives the answer of `kernel`, unless a subclass declares it or the constructor is given
    another value. tests/unit/test_wrapped_kernels.py fails if one is lost.
    """

    def __init__(self, kernel: Kernel, **differing: Any):
        unknown = differing.keys() - set(DECLARED)
        if unknown:
            raise TypeError(f"kernels declare no {', '.join(sorted(unknown))}")
        self.kernel = kernel
        bases = type(self).__mro__
        own = {name for base in bases[: bases.index(Wrapper)] for name in vars(base)}
        for name in DECLARED:
            if name in differing:
                setattr(self, name, differing[name])
            elif name not in own:
                setattr(self, name, getattr(kernel, name))

    def inner(self, op: Op) -> Op:
        """Operator that `kernel` computes."""
        return op

    def inner_by_row(self, by_row: bool) -> bool:
        """Tells whether `kernel` is called by rows if this kernel is called by rows (`by_row`) or whole."""
        return by_row

    accepts, constants, scratch = _of_inner("accepts"), _of_inner("constants"), _of_inner("scratch")
    takes_rings, division = _derived("takes_rings"), _derived("division", by_row=True)
    access_orders, row_access_orders = _of_inner("access_orders"), _of_inner("row_access_orders")
    parts, work, element = _of_inner("parts"), _of_inner("work"), _of_inner("element")
    path, code_path = _of_inner("path", by_row=True), _derived("code_path", by_row=True)
    own_code, copy_of_code, calls_too = _of_inner("own_code"), _derived("copy_of_code"), _of_inner("calls_too")
    windows_by, single_calls_as = _of_inner("windows_by"), _derived("single_calls_as")
    counts, slowest_counts, copied = _of_inner("counts"), _derived("slowest_counts"), _of_inner("copied")

    @property
    def computes_floats(self) -> bool:
        return self.kernel.computes_floats

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        return self.kernel.call(self.inner(op), site, context)


class WholeWrapper(Wrapper):
    """Wrapper whose calls compute the whole output and may call `kernel` several times. So a call overwrites no input,
    takes no rings, cannot be made in pieces, and no element of it can be part of a fused loop."""

    by_row, whole, rows_a_call = False, True, 1
    rings, in_order, accumulates, indivisible = False, False, False, False
    in_place: tuple[int, ...] = ()
    columns = 0

    takes_rings, division, element = Kernel.takes_rings, Kernel.division, Kernel.element
    access_orders, row_access_orders, copied = Kernel.access_orders, Kernel.row_access_orders, Kernel.copied


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
