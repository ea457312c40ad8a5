"""Helium convolution that keeps weights in registers (runtime_c/tinyfuse_conv_weight_stationary_mve.h).

It is exact for every bias and every shift to the right.
"""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import Array, Op
from tinyfuse.kernels.core.c_constants import c_constant
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite
from tinyfuse.kernels.core.methods import of_calls, of_operator
from tinyfuse.kernels.core.statements import Statement
from tinyfuse.kernels.counts.common import ceil_div
from tinyfuse.kernels.counts.helium_4x2 import weight_stationary_counts
from tinyfuse.kernels.layers.common.params import conv_row_call
from tinyfuse.kernels.layers.int8_helium.conv_2x4 import MveConvRow
from tinyfuse.kernels.layers.int8_helium.conv_4x2 import MveTile4x2
from tinyfuse.kernels.layers.int8_helium.vector_requantization import VectorChannels, by_shifts
from tinyfuse.kernels.requantize.layer_facts import layer_facts
from tinyfuse.ops.core.convolution import geometry
from tinyfuse.ops.weight_sums import channel_weights

_HEADER = "tinyfuse_conv_weight_stationary_mve.h"
_NAMES = ("TAPS", "BLOCK", "PIXELS", "SUMS_BYTES")
_TAPS, _BLOCK, _PIXELS, _SUMS_BYTES = (c_constant(_HEADER, f"TINYFUSE_WEIGHT_STATIONARY_{x}") for x in _NAMES)


class WeightStationaryConvRow(MveTile4x2):
    """Convolution of int8, for Helium, with stride 1 along a row, windows of two or three columns, and rows of at least
    four pixels.

    Weights of three taps, sixteen input channels and two output channels stay in registers for a row of pixels.
    """

    takes_half_even = False
    name = "tinyfuse_conv_weight_stationary_mve_row_s8"
    headers = (_HEADER,)
    by_row, whole, rings, indivisible = True, False, True, True
    path = of_operator(by_shifts)
    counts = of_calls(weight_stationary_counts)

    def accepts(self, op: Op, context: Context) -> bool:
        g = geometry(op)
        side_by_side = 1 < g.kernel_w <= _TAPS and (g.stride_w, g.dilation_w) == (1, 1)
        if not context.target.mve or not side_by_side or g.out_w < _PIXELS:
            return False
        small = context.speed_alone or self.scratch(op, context) <= MveConvRow().scratch(op, context)
        return small and super().accepts(op, context)

    def arranged_weights(self, op: Op, weights: Array) -> Array:
        g = geometry(op)
        blocks = ceil_div(g.in_c, _BLOCK)
        filters = weights.reshape(g.out_c, g.kernel_h, g.kernel_w, g.in_c)
        padded = np.pad(filters, ((0, 0), (0, 0), (0, _TAPS - g.kernel_w), (0, blocks * _BLOCK - g.in_c)))
        split = padded.reshape(g.out_c // 2, 2, g.kernel_h, _TAPS, blocks, _BLOCK)
        return split.transpose(0, 2, 4, 1, 3, 5)

    def scratch(self, op: Op, context: Context) -> int:
        g = geometry(op)
        passes = g.kernel_h * ceil_div(g.in_c, _BLOCK)
        return (1 + g.out_w) * _SUMS_BYTES + passes * (g.out_w + _TAPS - 1) * _BLOCK

    def requantization(self, op: Op) -> VectorChannels:
        return VectorChannels(channel_weights(op), layer_facts(op).channels)

    def requantized(self, op: Op) -> str:
        return by_shifts(op)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        return conv_row_call(self, op, site, site.scratch, self.form(op))
