"""Kernels that call another kernel, for an operator in another form or for parts of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tinyfuse.ir import Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.cost import KernelCosts
from tinyfuse.kernels.core.kernel import CallSite, Kernel
from tinyfuse.kernels.core.statements import Statement

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
