"""Kernels that call another kernel, for an operator in another form or for parts of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tinyfuse.ir import Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.cost import KernelCosts
from tinyfuse.kernels.core.element import Element
from tinyfuse.kernels.core.kernel import AccessOrder, CallSite, Constant, Division, Kernel
from tinyfuse.kernels.core.statements import Statement
from tinyfuse.kernels.counts.common import Counts

#: names of all attributes that kernels declare
DECLARED = tuple(KernelCosts.__annotations__ | Kernel.__annotations__)


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

    def _derives(self, method: str) -> bool:
        """Tells whether `kernel` inherits a method from Kernel, which derives the answer from other answers. It must
        then be derived from this wrapper's answers, which may differ."""
        return getattr(type(self.kernel), method) is getattr(Kernel, method)

    def accepts(self, op: Op, context: Context) -> bool:
        return self.kernel.accepts(self.inner(op), context)

    def takes_rings(self, op: Op) -> bool:
        if self._derives("takes_rings"):
            return super().takes_rings(op)
        return self.kernel.takes_rings(self.inner(op))

    def access_orders(self, op: Op) -> Mapping[int, AccessOrder]:
        return self.kernel.access_orders(self.inner(op))

    def row_access_orders(self, op: Op) -> Mapping[int, AccessOrder]:
        return self.kernel.row_access_orders(self.inner(op))

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return self.kernel.constants(self.inner(op), context)

    def scratch(self, op: Op, context: Context) -> int:
        return self.kernel.scratch(self.inner(op), context)

    def parts(self, op: Op, context: Context) -> tuple[tuple[Kernel, Op], ...]:
        return self.kernel.parts(self.inner(op), context)

    def work(self, op: Op, context: Context) -> tuple[tuple[Kernel, Op, float], ...]:
        return self.kernel.work(self.inner(op), context)

    def path(self, op: Op, by_row: bool, context: Context) -> str:
        return self.kernel.path(self.inner(op), self.inner_by_row(by_row), context)

    def code_path(self, op: Op, by_row: bool, context: Context) -> str:
        if self._derives("code_path"):
            return super().code_path(op, by_row, context)
        return self.kernel.code_path(self.inner(op), self.inner_by_row(by_row), context)

    def own_code(self, op: Op) -> bool:
        return self.kernel.own_code(self.inner(op))

    def copy_of_code(self, op: Op, context: Context) -> str:
        if self._derives("copy_of_code"):
            return super().copy_of_code(op, context)
        return self.kernel.copy_of_code(self.inner(op), context)

    def calls_too(self, op: Op) -> tuple[str, ...]:
        return self.kernel.calls_too(self.inner(op))

    def windows_by(self, op: Op, context: Context) -> str | None:
        return self.kernel.windows_by(self.inner(op), context)

    def single_calls_as(self, op: Op) -> str | None:
        if self._derives("single_calls_as"):
            return super().single_calls_as(op)
        return self.kernel.single_calls_as(self.inner(op))

    def element(self, op: Op) -> Element | None:
        return self.kernel.element(self.inner(op))

    def division(self, op: Op, by_row: bool, context: Context) -> Division | None:
        if self._derives("division"):
            return super().division(op, by_row, context)
        return self.kernel.division(self.inner(op), self.inner_by_row(by_row), context)

    @property
    def computes_floats(self) -> bool:
        return self.kernel.computes_floats

    def counts(self, op: Op, by_row: bool) -> Counts:
        return self.kernel.counts(self.inner(op), by_row)

    def slowest_counts(self, op: Op, by_row: bool) -> Counts:
        if self._derives("slowest_counts"):
            return super().slowest_counts(op, by_row)
        return self.kernel.slowest_counts(self.inner(op), by_row)

    def copied(self, op: Op) -> Counts:
        return self.kernel.copied(self.inner(op))

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        return self.kernel.call(self.inner(op), site, context)


class WholeWrapper(Wrapper):
    """Wrapper whose calls compute the whole output and may call `kernel` several times. So a call overwrites no input,
    takes no rings, cannot be made in pieces, and no element of it can be part of a fused loop."""

    by_row, whole, rows_a_call = False, True, 1
    rings, in_order, accumulates, indivisible = False, False, False, False
    in_place: tuple[int, ...] = ()
    columns = 0

    def takes_rings(self, op: Op) -> bool:
        return False

    def access_orders(self, op: Op) -> Mapping[int, AccessOrder]:
        return {}

    def row_access_orders(self, op: Op) -> Mapping[int, AccessOrder]:
        return {}

    def element(self, op: Op) -> Element | None:
        return None

    def division(self, op: Op, by_row: bool, context: Context) -> Division | None:
        return None

    def copied(self, op: Op) -> Counts:
        return {}
