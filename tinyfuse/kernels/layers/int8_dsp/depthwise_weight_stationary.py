"""Depthwise 3x3 convolutions that keep weights in registers (runtime_c/tinyfuse_depthwise_weight_stationary.h)."""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import Op
from tinyfuse.kernels.core.c_constants import c_constant
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Constant, RowKernel, require_proven
from tinyfuse.kernels.core.statements import Call, Statement
from tinyfuse.kernels.counts.common import Counts
from tinyfuse.kernels.counts.depthwise import depthwise_counts
from tinyfuse.kernels.layers.common.params import conv_params
from tinyfuse.kernels.layers.common.taps import quads_of
from tinyfuse.kernels.layers.int8_dsp.depthwise import form_argument, form_of
from tinyfuse.kernels.requantize.single_rounding import any_single_rounding
from tinyfuse.ops.core.convolution import geometry

_HEADER = "tinyfuse_depthwise_weight_stationary.h"
#: bytes of a record: two columns of four channels
_RECORD = c_constant(_HEADER, "TINYFUSE_DW_WEIGHT_STATIONARY_RECORD")


class WeightStationaryDepthwiseRow(RowKernel):
    """Depthwise 3x3 convolution of int8 with depth multiplier 1, dilation 1, stride 1 or 2 along a row, at least four
    channels.

    It is requantized with a single rounding. Any padding; weights are int16 in flash.
    """

    name = "tinyfuse_depthwise_weight_stationary_row_s8"
    headers = (_HEADER,)
    weights = "unpacked"

    def accepts(self, op: Op, context: Context) -> bool:
        g = geometry(op)
        allowed = context.weights in ("auto", self.weights) and context.target.dsp and not context.target.mve
        plain = (g.kernel_h, g.kernel_w, g.dilation_h, g.dilation_w) == (3, 3, 1, 1) and g.stride_w in (1, 2)
        return allowed and plain and g.in_c == g.out_c >= 4 and any_single_rounding(op) is not None

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        """Return the constant "channels", int32 words of each channel: weights, bias, multiplier, and its shift if it
        has one.

        Weights are multiplied by 256, two to a word: for each column those of rows 0 and 1, then those of row 2 in
        columns 0, 1 and in columns 1, 2.
        """
        found = require_proven(any_single_rounding(op))
        rows = 256 * found.weights.astype("<i2").reshape(-1, 3, 3)
        pairs = np.concatenate([rows[:, :2].transpose(0, 2, 1).reshape(-1, 6), rows[:, 2, [0, 1, 1, 2]]], axis=1)
        line = found.channels()
        words = [
            np.ascontiguousarray(pairs).view("<i4"),
            *(line[name][:, None] for name in require_proven(line.dtype.names)),
        ]
        channels = np.concatenate(words, axis=1).astype("<i4")
        return (Constant("channels", channels[quads_of(len(channels))].reshape(-1), "int32_t"),)

    def scratch(self, op: Op, context: Context) -> int:
        g = geometry(op)
        columns = (g.out_w - 1) * g.stride_w + 3
        return (columns + 1) // 2 * _RECORD + (g.in_w * g.in_c if g.pads_rows else 0)

    def path(self, op: Op, by_row: bool, context: Context) -> str:
        own_shifts = " own_shifts" if form_of(op) == "own_shifts" else ""
        return f"stride {geometry(op).stride_w}{own_shifts}"

    def counts(self, op: Op, by_row: bool) -> Counts:
        g, layer = geometry(op), depthwise_counts(op, by_row)
        quads, columns = layer["fours"], (g.out_w - 1) * g.stride_w + 3
        columns_of_image = min(max(columns - g.pad_left, 0), g.in_w)
        odd = g.out_w % 2 if g.stride_w == 1 else 0
        names = ("calls", "fours", "border_taps", "clamped_outputs", "narrowed_outputs")
        return {
            **{name: layer[name] for name in names},
            "records": quads * ((columns_of_image + g.pad_left % 2 + 1) // 2),
            "steps": quads * (g.out_w // (2 if g.stride_w == 1 else 1)),
            "odd_steps": quads * odd,
        }

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        arguments = ("&p", site.input(0).pointer, site.output_row, site.output.pointer, site.constant("channels"))
        return conv_params(op, site), Call(self.name, (*arguments, site.scratch, form_argument(op)))
