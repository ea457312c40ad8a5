"""Helium depthwise convolution of a single-column image (runtime_c/tinyfuse_depthwise_1d_mve.h)."""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import Op
from tinyfuse.kernels.core.c_constants import c_constant
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Constant, Kernel
from tinyfuse.kernels.core.methods import of_operator
from tinyfuse.kernels.core.statements import Call, Let, Statement
from tinyfuse.kernels.counts.common import Counts, ceil_div
from tinyfuse.kernels.layers.common.column_blocks import columns_as_rows
from tinyfuse.kernels.layers.common.params import POINTER_BYTES, input_zero_point, output_fields
from tinyfuse.kernels.layers.int8_helium.vector_requantization import by_shifts
from tinyfuse.kernels.requantize.layer_facts import layer_facts
from tinyfuse.ops.core.convolution import TWO_ROUNDINGS, ConvGeometry, geometry, rounds_by
from tinyfuse.ops.weight_sums import channel_weights

_HEADER = "tinyfuse_depthwise_1d_mve.h"
_TAPS, _OUTPUTS, _CHANNELS, _WORD = (
    c_constant(_HEADER, f"TINYFUSE_1D_{x}") for x in ("TAPS", "OUTPUTS", "CHANNELS", "WORD")
)

#: the most channels for which 16 bits hold the offset of eight outputs' last from their first
_MOST_CHANNELS = (2**16 - 1) // (_OUTPUTS - 1)


class Depthwise1D(Kernel):
    """Depthwise convolution of a whole int8 image of a single column, for Helium, with depth multiplier 1 and stride 1.

    Windows have at most thirteen rows; eight outputs of a channel are computed at a time. The output must not overlap
    the input, as it may in kernels by rows, so this kernel is accepted only if speed alone counts.
    """

    name = "tinyfuse_depthwise_1d_mve_s8"
    headers = (_HEADER,)
    path = of_operator(by_shifts)

    def accepts(self, op: Op, context: Context) -> bool:
        if not context.target.mve or not context.speed_alone or (g := _row_of(op)) is None:
            return False
        if g.kernel_h != 1 or not 1 < g.kernel_w <= _TAPS:
            return False
        plain = (g.stride_w, g.dilation_w) == (1, 1) and g.in_c == g.out_c <= _MOST_CHANNELS
        if not plain or not rounds_by(op, TWO_ROUNDINGS) or not layer_facts(op).biases_fit:
            return False
        return by_shifts(op) != "shifted"

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        weights = channel_weights(op)
        padded = np.pad(weights, ((0, 0), (0, _CHANNELS - weights.shape[1])))
        channels = layer_facts(op).channels
        return Constant("weights", padded.reshape(-1), "int8_t"), Constant("channels", channels.reshape(-1), "int32_t")

    def scratch(self, op: Op, context: Context) -> int:
        g = _certain(op)
        pixels, blocks = g.out_w - 1 + g.kernel_w, ceil_div(g.out_w, _OUTPUTS) * _OUTPUTS // _WORD + 3
        padding = g.in_c if g.pad_left > 0 or pixels - g.pad_left > g.in_w else 0
        listed = ceil_div(pixels, _WORD) * _WORD * POINTER_BYTES
        return listed + blocks * _WORD * _CHANNELS + padding

    def counts(self, op: Op, by_row: bool) -> Counts:
        g = _certain(op)
        groups = ceil_div(g.in_c, _CHANNELS)
        chunks, pixels = ceil_div(g.out_w, _OUTPUTS), g.out_w - 1 + g.kernel_w
        return {
            "calls": 1,
            "line_pixels": pixels,
            "line_groups": groups,
            "line_fours": groups * ceil_div(pixels, _WORD),
            "line_chunks": groups * chunks,
            "line_channel_chunks": g.in_c * chunks,
        }

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        g = _certain(op)
        fields = {
            "in_w": g.in_w, "in_c": g.in_c, "out_w": g.out_w, "kernel_w": g.kernel_w, "pad_left": g.pad_left,
            "in_zero_point": input_zero_point(op.input),
        }  # fmt: skip
        form = f"TINYFUSE_4X2_MVE_{by_shifts(op).upper()}"
        constants = site.constant("weights"), site.constant("channels")
        args = ("&p", site.input(0).pointer, site.output.pointer, *constants, site.scratch, form)
        return Let("tinyfuse_1d", "p", fields | output_fields(op)), Call(self.name, args)


def _row_of(op: Op) -> ConvGeometry | None:
    """Return the geometry of the convolution with its column seen as a row; None if the image has more columns."""
    row_op = columns_as_rows(op)
    return None if row_op is None else geometry(row_op)


def _certain(op: Op) -> ConvGeometry:
    row = _row_of(op)
    assert row is not None, "the kernel accepted it"
    return row
