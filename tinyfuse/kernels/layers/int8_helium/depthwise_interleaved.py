"""Depthwise convolutions with small windows for Helium (runtime_c/tinyfuse_depthwise_interleaved_mve.h)."""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import Op
from tinyfuse.kernels.core.c_constants import c_constant
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Constant, RowKernel
from tinyfuse.kernels.core.methods import of_operator
from tinyfuse.kernels.core.statements import Statement
from tinyfuse.kernels.counts.common import Counts
from tinyfuse.kernels.counts.depthwise import interleaved_depthwise_counts
from tinyfuse.kernels.layers.common.params import conv_row_call
from tinyfuse.kernels.layers.int8_helium import vector_requantization
from tinyfuse.kernels.requantize.half_even import half_even
from tinyfuse.kernels.requantize.layer_facts import layer_facts
from tinyfuse.ops.core.convolution import FLOAT_HALF_EVEN, TWO_ROUNDINGS, ConvGeometry, geometry, rounds_by

_HEADER = "tinyfuse_depthwise_interleaved_mve.h"
_NAMES = ("ROWS", "WIDTH", "PLANES", "OUTPUTS", "JOB_BYTES", "PLANE_BYTES", "WORD")
_ROWS, _WIDTH, _PLANES, _OUTPUTS, _JOB_BYTES, _PLANE_BYTES, _WORD = (
    c_constant(_HEADER, f"TINYFUSE_INTERLEAVED_{x}") for x in _NAMES
)

#: the most channels for which 16 bits hold the offset of eight outputs' last from their first
_MOST_CHANNELS = (2**16 - 1) // (_OUTPUTS - 1)


class InterleavedDepthwiseRow(RowKernel):
    """Depthwise convolution of int8, for Helium, with depth multiplier 1 and windows of at most three rows and four
    columns.

    Eight outputs of a row are computed at a time. The rows of a column are interleaved in scratch. Columns `stride_w`
    apart are a plane; there are at most two planes.
    """

    name = "tinyfuse_depthwise_interleaved_mve_row_s8"
    headers = (_HEADER,)
    columns = _OUTPUTS
    at_once = "TINYFUSE_INTERLEAVED_CHANNELS"
    path = of_operator(vector_requantization.cost_path)

    def accepts(self, op: Op, context: Context) -> bool:
        g = geometry(op)
        small = g.kernel_h <= _ROWS and g.kernel_w <= _WIDTH and g.dilation_w == 1 and _planes(g) <= _PLANES
        plain = small and g.in_c == g.out_c <= _MOST_CHANNELS
        if rounds_by(op, FLOAT_HALF_EVEN):
            return context.target.mve and plain and context.target.fpu and half_even(op, 1) is not None
        return context.target.mve and plain and rounds_by(op, TWO_ROUNDINGS) and layer_facts(op).biases_fit

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        g = geometry(op)
        layer = vector_requantization.vector_channels(op, 1)
        weights = np.zeros((g.in_c, 4, 4), np.int8)
        weights[:, : g.kernel_w, : g.kernel_h] = layer.weights.reshape(-1, g.kernel_h, g.kernel_w).swapaxes(1, 2)
        channels = Constant("channels", layer.channels.reshape(-1), "int32_t")
        return Constant("weights", weights.reshape(-1), "int8_t"), channels

    def scratch(self, op: Op, context: Context) -> int:
        g = geometry(op)
        column = _WORD * c_constant(_HEADER, self.at_once)
        columns: int = min(_OUTPUTS, g.out_w) + (g.kernel_w - 1) // g.stride_w  # those that eight outputs of a row read
        return _JOB_BYTES + _planes(g) * (_PLANE_BYTES + column * columns)

    def counts(self, op: Op, by_row: bool) -> Counts:
        counts = interleaved_depthwise_counts(op, by_row, _OUTPUTS, c_constant(_HEADER, self.at_once))
        return {**counts, **vector_requantization.requantizing_counts(op, counts["chunk_channels"], 1)}

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        form = f"TINYFUSE_INTERLEAVED_{vector_requantization.requantized(op).upper()}"
        return conv_row_call(self, op, site, site.scratch, self.at_once, form)


class SmallInterleavedDepthwiseRow(InterleavedDepthwiseRow):
    """Depthwise convolution as by InterleavedDepthwiseRow that computes half the channels at a time, in half the
    scratch.

    It is accepted if the scratch takes at most one row of the input, because it then often fits into the oldest row of
    a ring.
    """

    at_once = "TINYFUSE_INTERLEAVED_FEWER"

    def accepts(self, op: Op, context: Context) -> bool:
        if context.optimize != "ram" or not super().accepts(op, context):
            return False
        g = geometry(op)
        return self.scratch(op, context) <= g.in_w * g.in_c

    def path(self, op: Op, by_row: bool, context: Context) -> str:
        return f"{super().path(op, by_row, context)} fewer"


def _planes(g: ConvGeometry) -> int:
    """Return the planes of columns that windows read."""
    planes: int = min(g.stride_w, g.kernel_w)
    return planes
