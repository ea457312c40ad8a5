"""Our kernel of depthwise convolutions with small windows for Helium (runtime_c/tinyfuse_depthwise_columns.h)."""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import Op
from tinyfuse.kernels.base import CallSite, Constant, Context, Kernel, Statement
from tinyfuse.kernels.c_constants import c_constant
from tinyfuse.kernels.convolution_counts import columns_counts
from tinyfuse.kernels.counts import Counts
from tinyfuse.kernels.packing import channel_weights, conv_row_call, folded_bias, rectified, shifts_right
from tinyfuse.ops.convolution import ConvGeometry, channel_multipliers, geometry

_HEADER = "tinyfuse_depthwise_columns.h"
_NAMES = ("ROWS", "WIDTH", "PLANES", "OUTPUTS", "CHANNELS", "BYTES", "JOB_BYTES")
_ROWS, _WIDTH, _PLANES, _OUTPUTS, _CHANNELS, _BYTES, _JOB_BYTES = (
    c_constant(_HEADER, f"TINYFUSE_COLUMNS_{x}") for x in _NAMES
)

#: what 16 bits hold of the distance between two outputs of eight
_MOST_CHANNELS = (2**16 - 1) // (_OUTPUTS - 1)


class ColumnsDepthwiseRow(Kernel):
    """Depthwise convolution with depth multiplier 1 of at most three rows and four columns, eight outputs of a row at
    a time. Columns that lie `stride_w` apart are a plane, of which there are at most two.

    A call for row y reads only the input rows of y's own window (from RowWindow.first(y) on), and
    writes only its output row, which must not overlap them.
    """

    name = "tinyfuse_depthwise_columns_row_s8"
    headers = (_HEADER,)
    by_row, whole, rings = True, False, True

    def accepts(self, op: Op, context: Context) -> bool:
        g = geometry(op)
        small = g.kernel_h <= _ROWS and g.kernel_w <= _WIDTH and g.dilation_w == 1 and _planes(g) <= _PLANES
        plain = small and g.in_c == g.out_c <= _MOST_CHANNELS and shifts_right(op)
        return context.target.mve and plain and (rectified(op) or bool((channel_multipliers(op)[1] < 0).all()))

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        g = geometry(op)
        weights = np.zeros((g.in_c, 4, 4), np.int8)
        weights[:, : g.kernel_w, : g.kernel_h] = channel_weights(op).reshape(-1, g.kernel_h, g.kernel_w).swapaxes(1, 2)
        channels = np.stack([folded_bias(op), *channel_multipliers(op)], axis=1).astype(np.int32)
        return Constant("weights", weights.reshape(-1), "int8_t"), Constant("channels", channels.reshape(-1), "int32_t")

    def scratch(self, op: Op, context: Context) -> int:
        g = geometry(op)
        padding = g.in_c if g.pads_rows else 0
        return _JOB_BYTES + _BYTES * _planes(g) * _plane_columns(g) + padding

    def path(self, op: Op, by_row: bool, context: Context) -> str:
        return "rectified" if rectified(op) else "clamped"

    def counts(self, op: Op, by_row: bool) -> Counts:
        return columns_counts(op, by_row, _OUTPUTS, _CHANNELS)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        return conv_row_call(self, op, site, site.scratch, int(rectified(op)))


def _planes(g: ConvGeometry) -> int:
    """Planes of columns that are read at all."""
    planes: int = min(g.stride_w, g.kernel_w)
    return planes


def _plane_columns(g: ConvGeometry) -> int:
    """Columns `stride_w` apart that eight outputs of a row read."""
    columns: int = min(_OUTPUTS, g.out_w) + (g.kernel_w - 1) // g.stride_w
    return columns
