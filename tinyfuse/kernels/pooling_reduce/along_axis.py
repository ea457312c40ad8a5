"""Kernels of ARG_MAX and ARG_MIN, and of CUMSUM (runtime_c/tinyfuse_arg_extreme*.h, runtime_c/tinyfuse_cumsum.h)."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from tinyfuse.ir import Op
from tinyfuse.kernels.core.c_types import SUFFIX
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import AccessOrder, CallSite, Kernel, element_access_orders
from tinyfuse.kernels.core.statements import Call, Let, Statement
from tinyfuse.kernels.counts.common import Counts
from tinyfuse.ops.pooling_reduce.arg_max import reduced_axis
from tinyfuse.ops.pooling_reduce.cumsum import Cumsum, cumsum_axis, output_multiplier


class ArgExtreme(Kernel):
    """ARG_MAX or ARG_MIN along any dimension, the whole output."""

    def __init__(self, dtype: str):
        self.dtype, self.name = dtype, f"tinyfuse_arg_extreme_{SUFFIX[dtype]}"
        self.headers = ("tinyfuse_arg_extreme.h" if dtype == "int8" else "tinyfuse_arg_extreme_f32.h",)

    def accepts(self, op: Op, context: Context) -> bool:
        return op.input.dtype == self.dtype

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        dims = _around(op.input.shape, reduced_axis(op))
        least = op.kind == "ARG_MIN"
        flip = -int(least) if self.dtype == "int8" else int(least)
        return (Call(self.name, (site.input(0).pointer, *dims, flip, site.output.pointer)),)


class CumsumWhole(Kernel):
    """CUMSUM along any dimension, the whole output."""

    headers = ("tinyfuse_cumsum.h",)

    def __init__(self, dtype: str):
        self.dtype, self.name = dtype, f"tinyfuse_cumsum_{SUFFIX[dtype]}"

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
    return dict(zip(("outer", "count", "inner"), _around(op.input.shape, cumsum_axis(op)), strict=True))


def _around(shape: tuple[int, ...], axis: int) -> tuple[int, int, int]:
    """Sizes before, along and after a dimension."""
    return prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :])
