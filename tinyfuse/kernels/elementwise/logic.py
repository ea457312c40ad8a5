"""Kernel of LOGICAL_NOT (runtime_c/tinyfuse_binary.h)."""

from __future__ import annotations

from tinyfuse.ir import Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.element import Element
from tinyfuse.kernels.core.kernel import CallSite, Division, Kernel
from tinyfuse.kernels.core.rows import divide_by_elements, element_count, input_pointer, output_pointer
from tinyfuse.kernels.core.statements import Call, Statement


class Not(Kernel):
    """LOGICAL_NOT, element by element, going forward."""

    name = "tinyfuse_logical_not_bool"
    headers = ("tinyfuse_binary.h",)
    by_row, rings = True, True
    in_place = (0,)

    def element(self, op: Op) -> Element | None:
        return Element("logical_not", "choices")

    def division(self, op: Op, by_row: bool, context: Context) -> Division | None:
        return divide_by_elements(op, by_row)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        return (Call(self.name, (input_pointer(site, 0), output_pointer(site), element_count(op.output, site))),)
