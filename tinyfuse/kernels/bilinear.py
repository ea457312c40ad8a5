"""Our kernels of RESIZE_BILINEAR (runtime_c/tinyfuse_bilinear.h)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tinyfuse.ir import Array, Op
from tinyfuse.kernels.base import Call, CallSite, Constant, Context, Kernel, Let, Statement

#: (op, axis) -> (lower, upper, fraction) of every index of the output's dimension
Places = Callable[[Op, int], tuple[Array, Array, Array]]

#: tinyfuse_place
PLACE = np.dtype([("lower", "<u2"), ("upper", "<u2"), ("fraction", "<i2")])


class _Bilinear(Kernel):
    headers = ("tinyfuse_bilinear.h",)

    def __init__(self, places: Places):
        self.places = places

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        tables = []
        for name, axis in (("rows", 1), ("columns", 2)):
            table = np.zeros(op.output.shape[axis], PLACE)
            table["lower"], table["upper"], table["fraction"] = self.places(op, axis)
            tables.append(Constant(name, table, "tinyfuse_place"))
        return tuple(tables)

    def params(self, op: Op, site: CallSite) -> Let:
        _, in_h, in_w, channels = op.input.shape
        fields = {
            "in_h": in_h, "in_w": in_w, "channels": channels, "out_h": op.output.shape[1],
            "out_w": op.output.shape[2], "in_ring": site.input(0).ring_rows,
            "rows": site.constant("rows"), "columns": site.constant("columns"),
        }  # fmt: skip
        return Let("tinyfuse_bilinear", "p", fields)


class BilinearRow(_Bilinear):
    """One row of an image a call."""

    name = "tinyfuse_bilinear_row_s8"
    by_row, whole, rings = True, False, True

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        args = ("&p", site.input(0).pointer, site.output_row, site.output.pointer)
        return self.params(op, site), Call(self.name, args)


class Bilinear(_Bilinear):
    """Whole images."""

    name = "tinyfuse_bilinear_s8"

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        args = ("&p", op.input.shape[0], site.input(0).pointer, site.output.pointer)
        return self.params(op, site), Call(self.name, args)
