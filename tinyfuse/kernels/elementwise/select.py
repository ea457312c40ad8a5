"""Kernels of SELECT_V2 and ADD_N (runtime_c/tinyfuse_select.h, tinyfuse_add_n.h)."""

from __future__ import annotations

from collections.abc import Mapping

from tinyfuse.ir import Op
from tinyfuse.kernels.core.c_types import CTYPE, SUFFIX
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.element import Element
from tinyfuse.kernels.core.kernel import AccessOrder, CallSite, Kernel, element_access_orders
from tinyfuse.kernels.core.methods import of_operator
from tinyfuse.kernels.core.rows import constant_operands, element_count, row_pointers
from tinyfuse.kernels.core.statements import Call, Expr, Let, Statement, c_array, c_loops
from tinyfuse.kernels.counts.common import Counts, count_calls, element_counts
from tinyfuse.ops.elementwise.add_n import add_n_multiplier
from tinyfuse.ops.elementwise.select import MOST_LOOPS, select_loops


class _Operands(Kernel):
    """Base of kernels with any number of operands, some of them constants."""

    by_row, rings = True, True

    function: str
    constants = of_operator(constant_operands)

    def __init__(self, dtype: str):
        self.dtype, self.name = dtype, f"tinyfuse_{self.function}_{SUFFIX[dtype]}"
        self.headers = (f"tinyfuse_{self.function}.h",)

    def access_orders(self, op: Op) -> Mapping[int, AccessOrder]:
        same = (t.dtype == op.output.dtype and t.elements == op.output.elements for t in op.operands)
        return element_access_orders(op, [i for i, replaceable in enumerate(same) if replaceable])

    def pointers(self, op: Op, site: CallSite) -> list[str]:
        """C pointers to each operand: its start, or the row that the output's row is computed from."""
        rows = [tensor.shape[-3] if len(tensor.shape) >= 3 else 1 for tensor in op.operands]
        steps = [t.elements // height if height > 1 else 0 for t, height in zip(op.operands, rows, strict=True)]
        return row_pointers(site, steps)


class Select(_Operands):
    """SELECT_V2 for operands of one dtype."""

    function = "select"

    def counts(self, op: Op, by_row: bool) -> Counts:
        """Counts of `element_counts`, and times that the innermost loop begins ("strips")."""
        dims, *_ = select_loops(op, rows=by_row)
        return {**element_counts(op, by_row), "strips": op.output.elements // max(1, dims[-1])}

    def element(self, op: Op) -> Element | None:
        if op.output.dtype != self.dtype:
            return None
        return Element("select", "choices", suffix="_f32" if self.dtype == "float32" else "")

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        dims, *strides = select_loops(op, rows=site.row is not None)
        names = ("condition_stride", "x_stride", "y_stride")
        nest = {"dim": c_loops(dims, MOST_LOOPS, 1)}
        nest |= {name: c_loops(s, MOST_LOOPS, 0) for name, s in zip(names, strides, strict=True)}
        let = Let("tinyfuse_select", "nest", nest)
        return let, Call(self.name, ("&nest", *self.pointers(op, site), site.output.pointer))


class AddN(_Operands):
    """ADD_N for operands of one dtype."""

    function = "add_n"

    def counts(self, op: Op, by_row: bool) -> Counts:
        """Counts the outputs by the number of operands, because the compiler specializes the code for each number that
        it knows."""
        count = min(len(op.inputs), 4)
        outputs = {f"outputs_of_{n}": op.output.elements if n == count else 0 for n in (2, 3, 4)}
        return {"calls": count_calls(op, by_row), **outputs}

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        inputs = len(op.inputs)
        # an array of pointers: in C, the length follows the name
        let = Let(f"{CTYPE[self.dtype]} *const", f"inputs[{inputs}]", c_array(self.pointers(op, site)))
        call: tuple[Expr, ...] = ("inputs", inputs, site.output.pointer, element_count(op.output, site))
        if self.dtype == "int8":
            multiplier, shift = add_n_multiplier(op)
            call += (-(inputs + 1) * op.input.zero_point, multiplier, -shift, op.output.zero_point)
        return let, Call(self.name, call)
