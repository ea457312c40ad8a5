"""Our kernels of LOOKED_UP for Helium, whose outputs are looked up eight at once, as they are stored: 1x1 convolutions
by four pixels (runtime_c/tinyfuse_four_mve.h), and depthwise ones by eight (runtime_c/tinyfuse_depthwise_columns.h)."""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import Array, Op
from tinyfuse.kernels.base import CallSite, Constant, Context
from tinyfuse.kernels.counts import Counts
from tinyfuse.kernels.depthwise_columns import ColumnsDepthwiseRow
from tinyfuse.kernels.looked_up import LookedUpLayer, layer_of
from tinyfuse.kernels.mve_four import BLOCK, FourPointwise, four_pixels_counts, sort_of_depth
from tinyfuse.kernels.statements import Call, Statement
from tinyfuse.ops.convolution import channel_multipliers, geometry
from tinyfuse.ops.looked_up import LookedUp

#: what a byte tells apart
_MOST_TABLES = 256


class _LookedUp(LookedUpLayer):
    """Halves go away from zero, which wants every channel's shift to be right."""

    def accepts(self, op: Op, context: Context) -> bool:
        return super().accepts(op, context) and bool((channel_multipliers(layer_of(op))[1] < 0).all())


class LookedUpFours(_LookedUp):
    """Convolutions by tinyfuse_four_mve.h."""

    name = "tinyfuse_pointwise_four_tables_mve_s8"
    depthwise = False

    def __init__(self, plain: FourPointwise):
        super().__init__(plain)
        self._four = plain

    def accepts(self, op: Op, context: Context) -> bool:
        return super().accepts(op, context) and len(_tables(op)) <= _MOST_TABLES

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        weights, channels = self._four.constants(layer_of(op), context)
        tables, pairs = _tables(op), channels.data.reshape(-1, 6)
        places = np.zeros((len(pairs), 2), "<u2")
        if len(tables) > 1:
            places[:] = 256 * np.arange(len(tables)).reshape(-1, 2)
        together = np.concatenate((pairs, places.view("<i4")), axis=1)
        return (
            weights,
            Constant("channels", together.reshape(-1), "int32_t"),
            Constant("tables", tables.reshape(-1), "int8_t", align=1),
        )

    def form(self, op: Op, context: Context) -> str:
        """Which of the C's functions computes it."""
        sort, depth = sort_of_depth(layer_of(op)), geometry(layer_of(op)).in_c
        return "whole" if sort == "deep" and depth % BLOCK == 0 else sort

    def path(self, op: Op, by_row: bool, context: Context) -> str:
        return sort_of_depth(layer_of(op))

    def counts(self, op: Op, by_row: bool) -> Counts:
        return four_pixels_counts(layer_of(op), by_row)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        lets, args = self.layer_call(op, site, context)
        return *lets, Call(self.name, (*args, site.constant("tables")))


class LookedUpColumns(_LookedUp):
    """Depthwise convolutions by tinyfuse_depthwise_columns.h, each channel with its own table, which stands among its
    constants."""

    name = ColumnsDepthwiseRow.name
    depthwise = True
    columns = ColumnsDepthwiseRow.columns

    def __init__(self) -> None:
        self._columns = ColumnsDepthwiseRow()
        super().__init__(self._columns)

    def accepts(self, op: Op, context: Context) -> bool:
        return super().accepts(op, context) and len(_tables(op)) == op.output.shape[-1]

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        weights, channels = self._columns.constants(layer_of(op), context)
        tables = np.ascontiguousarray(_tables(op)).view("<i4")
        together = np.concatenate((channels.data.reshape(len(tables), -1), tables), axis=1)
        return weights, Constant("channels", together.reshape(-1), "int32_t")

    def form(self, op: Op, context: Context) -> str:
        return "columns"

    def path(self, op: Op, by_row: bool, context: Context) -> str:
        return "tables"

    def counts(self, op: Op, by_row: bool) -> Counts:
        return self._columns.counts(layer_of(op), by_row)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        lets, args = self.layer_call(op, site, context)
        return *lets, Call(self.name, (*args, "TINYFUSE_COLUMNS_TABLES"))


def _tables(op: Op) -> Array:
    """int8 [1 or out_c, 256]: the results of 0 to 127, then of -128 to -1."""
    return op.attributes_as(LookedUp).table.operand(1).values.reshape(-1, 256)
