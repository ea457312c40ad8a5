"""Kernels of CUMSUM (runtime_c/tinyfuse_cumsum.h)."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from tinyfuse.ir import Op
from tinyfuse.kernels.core.c_types import SUFFIX
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import AccessOrder, CallSite, Kernel, element_access_orders
from tinyfuse.kernels.core.statements import Call, Let, Statement
from tinyfuse.kernels.counts.common import Counts
from tinyfuse.ops.pooling_reduce.cumsum import Cumsum, cumsum_axis, output_multiplier


class CumsumWhole(Kernel):
    """CUMSUM along any dimension, the whole output."""

    headers = ("tinyfuse_cumsum.h",)

    def __init__(self, dtype: str):
        self.dtype, self.name = dtype, f"tinyfuse_cumsum_{SUFFIX[dtype]}"

    def accepts(self, op: Op, context: Context) -> bool:
        return op.output.dtype == self.dtype

    def counts(self, op: Op, by_row: bool) -> Counts:
        shape = _shape(op)
        return {"calls": 1, "lines": shape["outer"] * shape["inner"], "outputs": op.output.elements}

    def access_orders(self, op: Op) -> Mapping[int, AccessOrder]:
        forward = not op.attributes_as(Cumsum).reverse and _shape(op)["inner"] == 1
        return element_access_orders(op, (0,) if forward else ())

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        a = op.attributes_as(Cumsum)
        fields = {**_shape(op), "exclusive": int(a.exclusive), "reverse": int(a.reverse)}
        params, pointers = Let("tinyfuse_cumsum", "p", fields), (site.input(0).pointer, site.output.pointer)
        if self.dtype == "float32":
            return params, Call(self.name, ("&p", *pointers))
        multiplier, shift = output_multiplier(op)
        scaling = Let("tinyfuse_cumsum_scaling", "scaling", {
            "in_zero_point": op.input.zero_point, "multiplier": multiplier, "shift": shift,
            "out_zero_point": op.output.zero_point,
        })  # fmt: skip
        return params, scaling, Call(self.name, ("&p", "&scaling", *pointers))


def _shape(op: Op) -> dict[str, int]:
    """Fields with the sizes before, along and after the dimension."""
    shape, axis = op.input.shape, cumsum_axis(op)
    return {"outer": prod(shape[:axis]), "count": shape[axis], "inner": prod(shape[axis + 1 :])}
