"""Kernels of CAST (runtime_c/tinyfuse_cast.h)."""

from __future__ import annotations

from tinyfuse.ir import Op
from tinyfuse.kernels.core.c_types import SUFFIX
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Division, Kernel
from tinyfuse.kernels.core.rows import divide_by_elements, element_count, input_pointer, output_pointer
from tinyfuse.kernels.core.statements import Call, Statement
from tinyfuse.kernels.counts.common import Counts, byte_counts, element_counts


class Cast(Kernel):
    """CAST from `source` to `result`, element by element, going forward."""

    headers = ("tinyfuse_cast.h",)
    by_row, rings = True, True

    def __init__(self, source: str, result: str):
        self.source, self.result = source, result
        self.name = f"tinyfuse_cast_{SUFFIX[source]}_{SUFFIX[result]}"
        # C allows bytes, or objects of the same type, to overlap the input
        self.in_place = (0,) if result in ("int8", "bool") or result == source else ()
        self.costs_as = "tinyfuse_copy" if result == source else None

    @property
    def computes_floats(self) -> bool:
        return super().computes_floats and self.source != self.result

    def accepts(self, op: Op, context: Context) -> bool:
        return (op.input.dtype, op.output.dtype) == (self.source, self.result)

    def counts(self, op: Op, by_row: bool) -> Counts:
        return element_counts(op, by_row) if self.costs_as is None else byte_counts(op, by_row)

    def division(self, op: Op, by_row: bool, context: Context) -> Division | None:
        return divide_by_elements(op, by_row)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        return (Call(self.name, (input_pointer(site, 0), output_pointer(site), element_count(op.output, site))),)
