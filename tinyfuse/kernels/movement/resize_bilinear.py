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


class _Bilinear(Kernel):
    """Base of the kernels of RESIZE_BILINEAR. `places` returns the tables of positions."""

    def __init__(self, places: Places, name: str, dtype: str = "int8"):
        self.places, self.dtype = places, dtype
        self.name = f"tinyfuse_bilinear_{name}"
        self.struct, self.place = "tinyfuse_bilinear", "tinyfuse_place"
        if dtype == "float32":
            self.struct, self.place = "tinyfuse_bilinear_f32", "tinyfuse_place_f32"
        self.headers = (f"{self.struct}.h",)

    def accepts(self, op: Op, context: Context) -> bool:
        return op.output.dtype == self.dtype

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        tables = []
        for name, axis in (("rows", 1), ("columns", 2)):
            table = np.zeros(op.output.shape[axis], FLOAT_PLACE if self.dtype == "float32" else PLACE)
            table["lower"], table["upper"], table["fraction"] = self.places(op, axis)
            tables.append(Constant(name, table, self.place))
        return tuple(tables)

    def params(self, op: Op, site: CallSite) -> Let:
        """Definition of the C function's parameters."""
        _, in_h, in_w, channels = op.input.shape
        fields = {
            "in_h": in_h, "in_w": in_w, "channels": channels, "out_h": op.output.shape[1],
            "out_w": op.output.shape[2], "in_ring": site.input(0).ring_rows,
            "rows": site.constant("rows"), "columns": site.constant("columns"),
        }  # fmt: skip
        return Let(self.struct, "p", fields)


class BilinearRow(_Bilinear):
    """RESIZE_BILINEAR; a call computes one output row."""

    by_row, whole, rings = True, False, True

    def __init__(self, places: Places, dtype: str = "int8"):
        super().__init__(places, f"row_{SUFFIX[dtype]}", dtype)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        args = ("&p", site.input(0).pointer, site.output_row, site.output.pointer)
        return self.params(op, site), Call(self.name, args)


class Bilinear(_Bilinear):
    """RESIZE_BILINEAR; a call computes whole images."""

    def __init__(self, places: Places, dtype: str = "int8"):
        super().__init__(places, "s8" if dtype == "int8" else "f32_whole", dtype)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        args = ("&p", op.input.shape[0], site.input(0).pointer, site.output.pointer)
        return self.params(op, site), Call(self.name, args)
