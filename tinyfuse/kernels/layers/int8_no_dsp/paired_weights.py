"""Layers for cores without the DSP extension that multiply two weights, or two inputs, by one instruction.

A word holds both, 16 bits apart (SIMD within a register). The C is runtime_c/tinyfuse_paired.h and
tinyfuse_depthwise_paired.h.
"""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import Array, Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Constant, RowKernel, require_proven
from tinyfuse.kernels.core.methods import always, of_calls, of_operator
from tinyfuse.kernels.core.rows import piece_pointer, vectors
from tinyfuse.kernels.core.statements import Call, Let, Statement
from tinyfuse.kernels.counts.depthwise import paired_depthwise_counts, paired_depthwise_words
from tinyfuse.kernels.layers.common.params import POINTER_BYTES, conv_params, orders_by_batches, output_fields
from tinyfuse.kernels.layers.int8_dsp.conv import MatmulKernel
from tinyfuse.kernels.layers.int8_dsp.dense import Dense, DenseWide
from tinyfuse.kernels.layers.int8_dsp.depthwise import form_argument, form_of
from tinyfuse.kernels.layers.int8_dsp.im2col_blocks import Im2colRow, PointwiseInBlocks
from tinyfuse.kernels.layers.int8_dsp.lanes import BYTES, Matmul, form_name, matmul_depth
from tinyfuse.kernels.requantize.single_rounding import SingleRounding, any_single_rounding
from tinyfuse.ops.core.convolution import geometry

#: bytes that an input takes in scratch
_INPUT_BYTES = 4


class _Paired(MatmulKernel):
    """Base of int8 layers with at least two output channels that hold the weights of two channels in a word."""

    weights = "unpacked"
    arrays = ("pairs",)
    block = always(2)
    input_bytes = always(_INPUT_BYTES)

    def accepts(self, op: Op, context: Context) -> bool:
        if context.weights not in ("auto", self.weights) or context.target.dsp or not super().accepts(op, context):
            return False
        weights = require_proven(self.layer(op, context)).weights
        return len(weights) > 1 and pairs_fit(weights)

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        """Return the constant "pairs", int32: for each pair of channels the weights, then both channels'
        requantization."""
        layer = require_proven(self.layer(op, context))
        channels = _pairs(len(layer.weights))
        scales = _scales(layer)[channels].view("<i4").reshape(len(channels), -1)
        parts = pair_weights(layer.weights[channels]), scales
        return (Constant("pairs", np.concatenate(parts, axis=1).reshape(-1), "int32_t"),)

    def path(self, op: Op, by_row: bool, context: Context) -> str:
        return form_name(self.form(op, context))


class PairedDense(_Paired):
    """Fully connected layer of int8 with paired weights, which have no zero point.

    Inputs are converted to int32 in scratch first, at most `DenseWide.few_inputs` of them.
    """

    name = "tinyfuse_dense_paired_s8"
    headers = ("tinyfuse_dense_paired.h",)
    form_of = Dense.name
    by_row, rings = True, True
    access_orders = of_operator(orders_by_batches, buffered=True)

    def accepts(self, op: Op, context: Context) -> bool:
        weights = op.operand(1)
        few = weights.shape[1] <= DenseWide.few_inputs[context.optimize] and not context.divided
        return few and not any(weights.quantization.zero_point) and super().accepts(op, context)

    def scratch(self, op: Op, context: Context) -> int:
        return _INPUT_BYTES * matmul_depth(op)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        (out_c, in_c), (pointer, batches) = op.operand(1).shape, vectors(op, site)
        fields = {"batches": batches, "in_c": in_c, "out_c": out_c} | output_fields(op)
        arguments = ("&p", pointer, site.output.pointer, site.constant("pairs"), site.scratch, self.form(op, context))
        return Let("tinyfuse_dense_paired", "p", fields), Call(self.name, arguments)


class PairedConvRow(_Paired, Im2colRow):
    """Convolution of int8 without groups, with paired weights, a row at a time."""

    name = "tinyfuse_conv_paired_row_s8"
    headers = ("tinyfuse_conv_paired.h",)


class PairedPointwise(_Paired, PointwiseInBlocks):
    """1x1 convolution of int8 with stride 1 and paired weights."""

    name = "tinyfuse_pointwise_paired_s8"
    headers = ("tinyfuse_pointwise_paired.h",)


class PairedDepthwiseRow(RowKernel):
    """Depthwise convolution of int8 with depth multiplier 1 and single-rounding requantization, two outputs of a
    channel in a word."""

    name = "tinyfuse_depthwise_paired_row_s8"
    headers = ("tinyfuse_depthwise_paired.h",)
    weights = "unpacked"
    counts = of_calls(paired_depthwise_counts)

    def accepts(self, op: Op, context: Context) -> bool:
        if context.weights not in ("auto", self.weights) or context.target.dsp:
            return False
        g, line = geometry(op), any_single_rounding(op)
        return g.in_c == g.out_c and g.dilation_w == 1 and line is not None and pairs_fit(_taps(op, line))

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        """Return the constant "filters", int32: per channel weights, bias, multiplier, and its shift if it has one."""
        line = require_proven(any_single_rounding(op))
        parts = _taps(op, line).astype("<i4"), line.channels().view("<i4").reshape(len(line.bias), -1)
        return (Constant("filters", np.concatenate(parts, axis=1).reshape(-1), "int32_t"),)

    def scratch(self, op: Op, context: Context) -> int:
        g, words = geometry(op), paired_depthwise_words(op)
        padding = g.in_c if g.pads_rows or g.pads_columns else 0
        return 2 * POINTER_BYTES * (words + words % 2) + _INPUT_BYTES * (words + 2 - words % 2) + padding

    def path(self, op: Op, by_row: bool, context: Context) -> str:
        return "own_shifts" if form_of(op) == "own_shifts" else ""

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        row = site.input(0).pointer, site.output_row, piece_pointer(site.output.pointer, site, op.output.shape[3])
        arguments = ("&p", *row, site.constant("filters"), site.scratch, form_argument(op))
        return conv_params(op, site), Call(self.name, arguments)


def _taps(op: Op, line: SingleRounding) -> Array:
    """Return int8 weights [channels, taps], column by column, with a zero tap if their count is odd."""
    g = geometry(op)
    columns = line.weights.reshape(g.in_c, g.kernel_h, g.kernel_w).swapaxes(1, 2).reshape(g.in_c, -1)
    taps: Array = np.pad(columns, ((0, 0), (0, columns.shape[1] % 2)))
    return taps


def _scales(layer: Matmul) -> Array:
    """Return the layer's channels with a multiplier in every one, negative in the bounded form.

    A channel of scale 1 has none: its bias is doubled and its multiplier halves (runtime_c/tinyfuse_paired.h).
    """
    channels = layer.channels.copy()
    if layer.form == BYTES:
        plain = channels["multiplier"] == 0
        channels["bias"][plain] *= 2
        channels["multiplier"][plain] = -(2**31)
    return channels


def pairs_fit(weights: Array) -> bool:
    """Return whether the products of neighbouring weights sum to 16 bits for all int8 inputs.

    `weights` are [channels, taps] with an even count of taps.
    """
    absolute = np.abs(weights.astype(np.int64)).reshape(len(weights), -1, 2).sum(2)
    return bool((128 * absolute < 2**15).all())


def _pairs(channels: int) -> Array:
    """Return the channels that are computed together, [ceil(channels / 2), 2]; an odd last one with the one before."""
    first = np.minimum(np.arange(0, channels, 2), channels - 2)
    return np.stack([first, first + 1], axis=1)


def pair_weights(weights: Array) -> Array:
    """Return int32 words [pairs, depth] of weights [pairs, 2, depth]: the first channel's + 65536 * the second's."""
    wide = weights.astype(np.int64)
    words: Array = (wide[:, 0] + 65536 * wide[:, 1]).astype("<i4")
    return words
