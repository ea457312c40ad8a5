"""Our kernels of LOOKED_UP for Helium, whose outputs are looked up eight at once, as they are stored: 1x1 convolutions
by four pixels (runtime_c/tinyfuse_four_mve.h), and depthwise ones by eight (runtime_c/tinyfuse_depthwise_columns.h)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

import numpy as np

from tinyfuse.ir import Array, Op
from tinyfuse.ir.fixedpoint import multiply_by_quantized_multiplier
from tinyfuse.kernels.core.kernel import CallSite, Constant, Context
from tinyfuse.kernels.core.statements import Call, Expr, Let, Statement
from tinyfuse.kernels.counts.common import Counts
from tinyfuse.kernels.layers.int8_helium.conv_4x2 import BLOCK, FourPointwise, four_pixels_counts, sort_of_depth
from tinyfuse.kernels.layers.int8_helium.depthwise_interleaved import ColumnsDepthwiseRow
from tinyfuse.kernels.layers.int8_luts.dsp import LookedUpLayer, layer_of
from tinyfuse.kernels.requantize.two_roundings import accumulator_range, shifts_right
from tinyfuse.ops.core.convolution import channel_multipliers, geometry
from tinyfuse.ops.elementwise.table import TABLE_VALUES
from tinyfuse.ops.layers.looked_up import LookedUp

#: what a byte tells apart
_MOST_TABLES = 256


class _LookedUp(LookedUpLayer):
    """Halves go away from zero, which wants every channel's shift to be right."""

    def accepts(self, op: Op, context: Context) -> bool:
        layer = layer_of(op)
        plain = super().accepts(op, context) and shifts_right(layer)
        return plain and bool((channel_multipliers(layer)[1] < 0).all())

    def of_levels(self, op: Op, context: Context) -> Array | None:
        """The tables of outputs less their zero point, where the C looks these up."""
        return _of_levels(op)

    def tables(self, op: Op, context: Context) -> Array:
        """What the C looks up in."""
        of_levels = self.of_levels(op, context)
        return _tables(op) if of_levels is None else of_levels

    def layer_call(self, op: Op, site: CallSite, context: Context) -> tuple[tuple[Statement, ...], tuple[Expr, ...]]:
        lets, args = super().layer_call(op, site, context)
        return tuple(map(_of_level, lets)) if self.of_levels(op, context) is not None else lets, args


def _of_level(statement: Statement) -> Statement:
    """Parameters of a layer whose zero point is 0."""
    if isinstance(statement, Let) and isinstance(statement.value, Mapping) and "out_zero_point" in statement.value:
        return replace(statement, value={**statement.value, "out_zero_point": 0})
    return statement


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
        tables, pairs = self.tables(op, context), channels.data.reshape(-1, 6)
        places = np.zeros((len(pairs), 2), "<u2")
        if len(tables) > 1:
            places[:] = 256 * np.arange(len(tables)).reshape(-1, 2)
        together = np.concatenate((pairs, places.view("<i4")), axis=1)
        return (
            weights,
            Constant("channels", together.reshape(-1), "int32_t"),
            Constant("tables", tables.reshape(-1), "int8_t", align=1),
        )

    def of_levels(self, op: Op, context: Context) -> Array | None:
        """Of few inputs, for which it counts; two pairs of channels are looked up in an iteration then."""
        few = sort_of_depth(layer_of(op)) == "narrow" and op.output.shape[-1] % 4 == 0
        return super().of_levels(op, context) if few else None

    def form(self, op: Op, context: Context) -> str:
        """Which of the C's functions computes it."""
        if self.of_levels(op, context) is not None:
            return "levels"
        sort, depth = sort_of_depth(layer_of(op)), geometry(layer_of(op)).in_c
        return "whole" if sort == "deep" and depth % BLOCK == 0 else sort

    def path(self, op: Op, by_row: bool, context: Context) -> str:
        form = self.form(op, context)
        return "levels" if form == "levels" else sort_of_depth(layer_of(op))

    def counts(self, op: Op, by_row: bool) -> Counts:
        return four_pixels_counts(layer_of(op), by_row)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        lets, args = self.layer_call(op, site, context)
        form = "LEVELS" if self.form(op, context) == "levels" else "TABLES"
        return *lets, Call(self.name, (*args, site.constant("tables"), f"TINYFUSE_FOUR_{form}"))


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
        tables = np.ascontiguousarray(self.tables(op, context)).view("<i4")
        together = np.concatenate((channels.data.reshape(len(tables), -1), tables), axis=1)
        return weights, Constant("channels", together.reshape(-1), "int32_t")

    def of_levels(self, op: Op, context: Context) -> Array | None:
        """Channels are looked up in pairs then."""
        return super().of_levels(op, context) if op.output.shape[-1] % 2 == 0 else None

    def form(self, op: Op, context: Context) -> str:
        return "tables" if self.of_levels(op, context) is None else "levels"

    def path(self, op: Op, by_row: bool, context: Context) -> str:
        return self.form(op, context)

    def counts(self, op: Op, by_row: bool) -> Counts:
        return self._columns.counts(layer_of(op), by_row)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        lets, args = self.layer_call(op, site, context)
        return *lets, Call(self.name, (*args, f"TINYFUSE_COLUMNS_{self.form(op, context).upper()}"))


def _tables(op: Op) -> Array:
    """int8 [1 or out_c, 256]: the results of 0 to 127, then of -128 to -1."""
    return op.attributes_as(LookedUp).table.operand(1).values.reshape(-1, 256)


@lru_cache(maxsize=512)
def _of_levels(op: Op) -> Array | None:
    """The same of outputs less their zero point; None where a byte doesn't tell them apart. It does as far as is needed
    where those at the end that it leaves out have one result, as in front of a RELU those far below zero, or where no
    inputs give them."""
    tables, layer = _tables(op), layer_of(op)
    zero_point, (least, most) = layer.output.zero_point, accumulator_range(layer)
    multipliers, shifts = channel_multipliers(layer)
    if least is None or most is None:
        return None
    first, last = (multiply_by_quantized_multiplier(ends, multipliers, shifts) for ends in (least, most))
    levels = np.arange(-128 - abs(zero_point), 129 + abs(zero_point))
    first, last = (np.clip(each, levels[0], levels[-1])[:, None] for each in (first, last))
    reached = (first <= levels) & (levels <= last)
    wanted, held = (np.clip(each, -128, 127) for each in (levels + zero_point, np.clip(levels, -128, 127) + zero_point))
    results = np.broadcast_to(tables, (len(first), 256))
    if (reached & (results[:, wanted] != results[:, held])).any():
        return None
    return np.ascontiguousarray(tables[:, np.clip(TABLE_VALUES.astype(np.int64) + zero_point, -128, 127)])
