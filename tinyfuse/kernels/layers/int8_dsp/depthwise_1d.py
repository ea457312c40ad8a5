"""Depthwise convolutions k x 1 and 1 x k, with the DSP extension (runtime_c/tinyfuse_depthwise_1d.h)."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from tinyfuse.ir import Array, Op
from tinyfuse.kernels.core.c_constants import c_constant
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Constant, Kernel, require_proven
from tinyfuse.kernels.core.methods import of_operator
from tinyfuse.kernels.core.rows import row_pointer
from tinyfuse.kernels.core.statements import Call, Let, Statement
from tinyfuse.kernels.counts.common import Counts, ceil_div
from tinyfuse.kernels.counts.depthwise import depthwise_counts
from tinyfuse.kernels.layers.common.params import input_zero_point, output_fields
from tinyfuse.kernels.layers.common.taps import quads_of
from tinyfuse.kernels.layers.int8_dsp.depthwise import form_argument, form_of
from tinyfuse.kernels.layers.int8_dsp.lanes import in_256ths
from tinyfuse.kernels.requantize.single_rounding import SHIFT, any_single_rounding
from tinyfuse.kernels.requantize.two_roundings import LANE_SUMS, bounded
from tinyfuse.ops.core.convolution import ConvGeometry, geometry

_HEADER = "tinyfuse_depthwise_1d.h"
_TAPS, _OUTPUTS, _RECORD, _HEAD = (
    c_constant(_HEADER, f"TINYFUSE_DW_1D_{name}") for name in ("TAPS", "OUTPUTS", "RECORD", "HEAD")
)


class _Depthwise1D(Kernel):
    """Base of depthwise convolutions of int8 with depth multiplier, stride and dilation 1 and at least four channels.

    Windows have two to fifteen pixels of a column or of a row. Weights are int16 in flash, each stored twice.
    """

    name = "tinyfuse_depthwise_1d_s8"
    headers = (_HEADER,)
    weights = "unpacked"
    path = of_operator(form_of)

    def accepts(self, op: Op, context: Context) -> bool:
        g = geometry(op)
        allowed = context.weights in ("auto", self.weights) and context.target.dsp and not context.target.mve
        plain = (g.stride_h, g.stride_w, g.dilation_h, g.dilation_w) == (1, 1, 1, 1) and g.in_c == g.out_c >= 4
        return allowed and plain and self.is_along_axis(g) and 2 <= _taps(g) <= _TAPS and _channels(op) is not None

    def is_along_axis(self, g: ConvGeometry) -> bool:
        """Return whether windows extend only along the axis that this class computes, with no padding along the other
        one."""
        raise NotImplementedError

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        channels = require_proven(_channels(op))
        return (Constant("channels", channels[quads_of(len(channels))].reshape(-1), "int32_t"),)

    def scratch(self, op: Op, context: Context) -> int:
        g = geometry(op)
        blocks, steps = _blocks(g), _steps(g)
        copied = 4 * 4 * (_HEAD + 2 * steps) if blocks > 1 else 0
        return (3 * blocks + steps - 1) * _RECORD + copied

    def counts(self, op: Op, by_row: bool) -> Counts:
        g, layer = geometry(op), depthwise_counts(op, by_row)
        out_n, lines = (g.out_w, g.out_h) if _along_rows(g) else (g.out_h, g.out_w)
        calls = g.out_h if by_row else 1
        quads, blocks, steps = ceil_div(g.in_c, 4) * lines, _blocks(g), _steps(g)
        return {
            "calls": calls,
            "line_records": calls * (2 * blocks + steps - 1),
            "line_groups": quads,
            "line_words": quads // lines * calls * (_HEAD + 2 * steps) * (blocks > 1),
            "line_pairs": quads * ceil_div(out_n - 1 + _taps(g), 2),
            "line_blocks": 4 * quads * blocks,
            "line_block_steps": 4 * quads * blocks * steps,
            "line_outputs": quads * out_n,
            **{name: layer[name] for name in ("clamped_outputs", "narrowed_outputs")},
        }

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        g = geometry(op)
        pixel, in_row, out_row = g.in_c, g.in_w * g.in_c, g.out_w * g.in_c
        if _along_rows(g):
            line = {"in_n": g.in_w, "out_n": g.out_w, "taps": g.kernel_w, "pad": g.pad_left, "step": pixel}
            lines = {"lines": g.out_h if site.row is None else 1, "in_line": in_row, "out_line": out_row}
        else:
            line = {"in_n": g.in_h, "out_n": g.out_h, "taps": g.kernel_h, "pad": g.pad_top, "step": in_row}
            lines = {"lines": g.out_w, "in_line": pixel, "out_line": pixel}
        fields = {**line, **lines, "in_c": g.in_c, "in_zero_point": input_zero_point(op.input), **output_fields(op)}
        source = site.input(0).pointer if site.row is None else row_pointer(site.input(0), site.row)
        arguments = ("&p", source, site.output.pointer, site.constant("channels"), site.scratch, form_argument(op))
        return Let("tinyfuse_dw_1d", "p", fields), Call(self.name, arguments)


class DepthwiseColumns(_Depthwise1D):
    """Depthwise convolution of int8 with k x 1 windows, computed for a whole image.

    Outputs must not overlap the input, as they may in kernels by rows, so it is accepted only if speed alone counts.
    """

    def accepts(self, op: Op, context: Context) -> bool:
        return context.speed_alone and super().accepts(op, context)

    def is_along_axis(self, g: ConvGeometry) -> bool:
        return g.kernel_w == 1 and not g.pads_columns and g.in_w == g.out_w


class DepthwiseAlongRow(_Depthwise1D):
    """Depthwise convolution of int8 with 1 x k windows, one output row a call."""

    by_row, whole, rings = True, False, True

    def is_along_axis(self, g: ConvGeometry) -> bool:
        return g.kernel_h == 1 and not g.pads_rows and g.in_h == g.out_h


def _along_rows(g: ConvGeometry) -> bool:
    return g.kernel_h == 1


def _taps(g: ConvGeometry) -> int:
    return g.kernel_h * g.kernel_w


def _steps(g: ConvGeometry) -> int:
    return _taps(g) // 2 + 1


def _blocks(g: ConvGeometry) -> int:
    return ceil_div(g.out_w if _along_rows(g) else g.out_h, _OUTPUTS)


@lru_cache(maxsize=512)
def _channels(op: Op) -> Array | None:
    """Return int32 [channels, words], a record per channel as the header has it.

    None where no single-rounding requantization is exact and sums are too large for the bounded form.
    """
    line, zero_point = any_single_rounding(op), op.output.zero_point
    fields: tuple[Array | int, ...]  # first words of a channel, in the C's order
    if line is not None:
        channels, weights = line.channels(), 256 * line.weights.astype(np.int64)
        # with per-channel shifts the rounding lies in the bias
        shift, rounding = (0, (2 * zero_point + 1) << (SHIFT - 1)) if line.shift is None else (line.shift, 0)
        fields = shift, channels["bias"], channels["multiplier"], rounding
    else:
        layer = bounded(op)
        if layer is None:
            return None
        weights, bias = 2 * layer.weights.astype(np.int64), layer.channels["bias"].astype(np.int64)
        if (np.abs(bias) + 64 * np.abs(weights).sum(1) >= LANE_SUMS).any():
            return None
        channels = in_256ths(layer.channels, 0)
        shift = channels["shift"].astype(np.int64)
        fields = shift, channels["bias"] // 128, channels["multiplier"], (2 * zero_point + 1) << shift
    head = np.stack([np.broadcast_to(field, len(weights)) for field in fields], axis=1)
    return np.concatenate([head.astype("<i4"), _words(weights)], axis=1)


def _words(weights: Array) -> Array:
    """Return int32 [channels, 2 * steps] of weights [channels, taps]: for step j taps 2j, 2j + 1, then 2j - 1, 2j."""
    channels, taps = weights.shape
    steps = taps // 2 + 1
    taken = np.zeros((channels, 2 * steps + 1), "<i2")
    taken[:, 1 : 1 + taps] = weights
    pairs = np.stack([taken[:, 1:].reshape(channels, steps, 2), taken[:, :-1].reshape(channels, steps, 2)], axis=2)
    words: Array = np.ascontiguousarray(pairs).view("<i4").reshape(channels, 2 * steps)
    return words
