"""Kernels of RESIZE_BILINEAR (runtime_c/tinyfuse_bilinear.h, runtime_c/tinyfuse_bilinear_f32.h)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tinyfuse.ir import Array, Op
from tinyfuse.kernels.core.c_types import SUFFIX
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Constant, Kernel
from tinyfuse.kernels.core.statements import Call, Let, Statement

#: (op, axis) -> (lower, upper, fraction): for every output index, the two input indexes and the weight between them
Places = Callable[[Op, int], tuple[Array, Array, Array]]

#: C struct tinyfuse_place
PLACE = np.dtype([("lower", "<u2"), ("upper", "<u2"), ("fraction", "<i2")])

#: C struct tinyfuse_place_f32
FLOAT_PLACE = np.dtype([("lower", "<u2"), ("upper", "<u2"), ("fraction", "<f4")])


class Bilinear(Kernel):
    """RESIZE_BILINEAR; a call computes one output row (`by_row`) or whole images. `places` returns the tables of
    positions."""

    def __init__(self, places: Places, dtype: str, by_row: bool):
        self.places, self.dtype = places, dtype
        self.by_row, self.whole, self.rings = by_row, not by_row, by_row
        form = f"row_{SUFFIX[dtype]}" if by_row else "s8" if dtype == "int8" else "f32_whole"
        self.name = f"tinyfuse_bilinear_{form}"
        self.suffix = "_f32" if dtype == "float32" else ""
        self.headers = (f"tinyfuse_bilinear{self.suffix}.h",)

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        tables = []
        for name, axis in (("rows", 1), ("columns", 2)):
            table = np.zeros(op.output.shape[axis], FLOAT_PLACE if self.dtype == "float32" else PLACE)
            table["lower"], table["upper"], table["fraction"] = self.places(op, axis)
            tables.append(Constant(name, table, f"tinyfuse_place{self.suffix}"))
        return tuple(tables)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        images, in_h, in_w, channels = op.input.shape
        fields = {
            "in_h": in_h, "in_w": in_w, "channels": channels, "out_h": op.output.shape[1],
            "out_w": op.output.shape[2], "in_ring": site.input(0).ring_rows,
            "rows": site.constant("rows"), "columns": site.constant("columns"),
        }  # fmt: skip
        source, target = site.input(0).pointer, site.output.pointer
        args = ("&p", source, site.output_row, target) if self.by_row else ("&p", images, source, target)
        return Let(f"tinyfuse_bilinear{self.suffix}", "p", fields), Call(self.name, args)


def bilinear_kernels(places: Places, dtype: str) -> tuple[Kernel, ...]:
    """Kernels for one dtype, best first."""
    return Bilinear(places, dtype, by_row=True), Bilinear(places, dtype, by_row=False)
