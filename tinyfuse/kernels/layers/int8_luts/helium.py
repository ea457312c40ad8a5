"""Helium kernels of LOOKED_UP, layers whose outputs pass through lookup tables.

Pointwise convolutions are computed by runtime_c/tinyfuse_matmul_4x2_mve.h, depthwise ones by
runtime_c/tinyfuse_depthwise_interleaved_mve.h. Both look eight outputs up at once, just before they store them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

import numpy as np

from tinyfuse.ir import Array, Op
from tinyfuse.ir.fixedpoint import multiply_by_quantized_multiplier
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Constant
from tinyfuse.kernels.core.statements import Call, Expr, Let, Statement
from tinyfuse.kernels.counts.common import Counts
from tinyfuse.kernels.layers.int8_helium.conv_4x2 import (
    BLOCK,
    MvePointwise4x2,
    depth_class,
    looked_up_pointwise_counts,
)
from tinyfuse.kernels.layers.int8_helium.depthwise_interleaved import InterleavedDepthwiseRow
from tinyfuse.kernels.layers.int8_luts.dsp import LookedUpLayer, layer_of
from tinyfuse.kernels.requantize.two_roundings import accumulator_range, shifts_right
from tinyfuse.ops.core.convolution import channel_multipliers, geometry
from tinyfuse.ops.elementwise.table import TABLE_VALUES
from tinyfuse.ops.layers.looked_up import LookedUp

#: the most tables: 16 bits hold the offset of each
_MOST_TABLES = 256


class _LookedUpHelium(LookedUpLayer):
    """A convolution with lookup tables for Helium.

    Halves are rounded away from zero, which needs a right shift in every channel.
    """

    def accepts(self, op: Op, context: Context) -> bool:
        layer = layer_of(op)
        plain = super().accepts(op, context) and shifts_right(layer)
        return plain and bool((channel_multipliers(layer)[1] < 0).all())

    def level_tables(self, op: Op, context: Context) -> Array | None:
        """Return tables indexed by outputs less their zero point, or None where the C adds the zero point first."""
        return _level_tables(op)

    def tables(self, op: Op, context: Context) -> Array:
        """Return the tables that the C reads."""
        level_tables = self.level_tables(op, context)
        return _tables(op) if level_tables is None else level_tables

    def layer_call(self, op: Op, site: CallSite, context: Context) -> tuple[tuple[Statement, ...], tuple[Expr, ...]]:
        lets, args = super().layer_call(op, site, context)
        return tuple(map(_clear_zero_point, lets)) if self.level_tables(op, context) is not None else lets, args


def _clear_zero_point(statement: Statement) -> Statement:
    """Return the declaration with output zero point 0, or any other statement as it is."""
    if isinstance(statement, Let) and isinstance(statement.value, Mapping) and "out_zero_point" in statement.value:
        return replace(statement, value={**statement.value, "out_zero_point": 0})
    return statement


class LookedUpPointwise4x2(_LookedUpHelium):
    """A pointwise convolution by runtime_c/tinyfuse_matmul_4x2_mve.h with lookup tables."""

    name = "tinyfuse_pointwise_4x2_lut_mve_s8"
    depthwise = False

    def __init__(self, plain: MvePointwise4x2):
        super().__init__(plain)
        self._pointwise = plain

    def accepts(self, op: Op, context: Context) -> bool:
        return super().accepts(op, context) and len(_tables(op)) <= _MOST_TABLES

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        weights, channels = self._pointwise.constants(layer_of(op), context)
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

    def level_tables(self, op: Op, context: Context) -> Array | None:
        """Return tables of levels for layers with few inputs, where they save most: two pairs of channels an
        iteration."""
        few = depth_class(layer_of(op)) == "narrow" and op.output.shape[-1] % 4 == 0
        return super().level_tables(op, context) if few else None

    def form(self, op: Op, context: Context) -> str:
        """Return which of the C's loops computes the layer: levels, narrow, once, whole or deep."""
        if self.level_tables(op, context) is not None:
            return "levels"
        sort, depth = depth_class(layer_of(op)), geometry(layer_of(op)).in_c
        return "whole" if sort == "deep" and depth % BLOCK == 0 else sort

    def path(self, op: Op, by_row: bool, context: Context) -> str:
        form = self.form(op, context)
        return "levels" if form == "levels" else depth_class(layer_of(op))

    def code_path(self, op: Op, by_row: bool, context: Context) -> str:
        return self.path(op, by_row, context)

    def counts(self, op: Op, by_row: bool) -> Counts:
        return looked_up_pointwise_counts(layer_of(op), by_row)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        lets, args = self.layer_call(op, site, context)
        form = "LEVELS" if self.form(op, context) == "levels" else "LUT"
        return *lets, Call(self.name, (*args, site.constant("tables"), f"TINYFUSE_4X2_MVE_{form}"))


class LookedUpInterleavedDepthwise(_LookedUpHelium):
    """A depthwise convolution by runtime_c/tinyfuse_depthwise_interleaved_mve.h, where each channel has its own table.

    A channel's table follows its bias, multiplier and shift in the constant "channels".
    """

    name = InterleavedDepthwiseRow.name
    depthwise = True
    columns = InterleavedDepthwiseRow.columns

    def __init__(self) -> None:
        self._depthwise = InterleavedDepthwiseRow()
        super().__init__(self._depthwise)

    def accepts(self, op: Op, context: Context) -> bool:
        return super().accepts(op, context) and len(_tables(op)) == op.output.shape[-1]

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        weights, channels = self._depthwise.constants(layer_of(op), context)
        tables = np.ascontiguousarray(self.tables(op, context)).view("<i4")
        together = np.concatenate((channels.data.reshape(len(tables), -1), tables), axis=1)
        return weights, Constant("channels", together.reshape(-1), "int32_t")

    def level_tables(self, op: Op, context: Context) -> Array | None:
        """Return tables of levels for an even count of channels, which the C looks up in pairs."""
        return super().level_tables(op, context) if op.output.shape[-1] % 2 == 0 else None

    def form(self, op: Op, context: Context) -> str:
        return "lut" if self.level_tables(op, context) is None else "levels"

    def path(self, op: Op, by_row: bool, context: Context) -> str:
        return self.form(op, context)

    def counts(self, op: Op, by_row: bool) -> Counts:
        return self._depthwise.counts(layer_of(op), by_row)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        lets, args = self.layer_call(op, site, context)
        return *lets, Call(self.name, (*args, f"TINYFUSE_INTERLEAVED_{self.form(op, context).upper()}"))


def _tables(op: Op) -> Array:
    """Return the tables int8 [1 or out_c, 256]: the results of 0 to 127, then of -128 to -1."""
    return op.attributes_as(LookedUp).table.operand(1).values.reshape(-1, 256)


@lru_cache(maxsize=512)
def _level_tables(op: Op) -> Array | None:
    """Return the tables indexed by levels, outputs less their zero point saturated to a byte; None if that is not
    exact.

    It is exact where levels that saturation merges have one result, such as those far below zero before a RELU, or
    where no input reaches them.
    """
    tables, layer = _tables(op), layer_of(op)
    zero_point, (least, most) = layer.output.zero_point, accumulator_range(layer)
    multipliers, shifts = channel_multipliers(layer)
    if least is None or most is None:
        return None
    first, last = (multiply_by_quantized_multiplier(ends, multipliers, shifts) for ends in (least, most))
    levels = np.arange(-128 - abs(zero_point), 129 + abs(zero_point))
    first, last = (np.clip(each, levels[0], levels[-1])[:, None] for each in (first, last))
    reached = (first <= levels) & (levels <= last)
    exact, saturated = (
        np.clip(each, -128, 127) for each in (levels + zero_point, np.clip(levels, -128, 127) + zero_point)
    )
    results = np.broadcast_to(tables, (len(first), 256))
    if (reached & (results[:, exact] != results[:, saturated])).any():
        return None
    return np.ascontiguousarray(tables[:, np.clip(TABLE_VALUES.astype(np.int64) + zero_point, -128, 127)])
