"""Convolutions whose weights are int16 in flash (runtime_c/tinyfuse_unpacked.h)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tinyfuse.ir import Array, Op
from tinyfuse.kernels.base import (
    AccessOrder,
    Call,
    CallSite,
    Constant,
    Context,
    Division,
    Kernel,
    Let,
    Statement,
    proven,
)
from tinyfuse.kernels.conv import input_pixels, of_pixels
from tinyfuse.kernels.convolution_counts import layer_counts
from tinyfuse.kernels.counts import Counts
from tinyfuse.kernels.matmul import halves, in_columns, matmul_depth, padded
from tinyfuse.kernels.packing import POINTER_BYTES, conv_params, output_fields
from tinyfuse.kernels.rows import from_piece
from tinyfuse.kernels.step_line import StepLine, step_line
from tinyfuse.ops.convolution import geometry, is_plain_pointwise

#: pixels of a block
_BLOCK = 2


class _Unpacked(Kernel):
    """A layer that has a step line, its weights int16 in flash."""

    weights = "unpacked"

    def accepts(self, op: Op, context: Context) -> bool:
        asked = context.weights in ("auto", self.weights)
        return asked and context.target.dsp and not context.target.mve and step_line(op) is not None

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return (Constant("pairs", _pairs(op, proven(step_line(op))), "int32_t"),)

    def counts(self, op: Op, by_row: bool) -> Counts:
        return layer_counts(op, by_row)


class UnpackedConvRow(_Unpacked):
    """Convolution of one group by im2col.

    A call for row y reads only the input rows of y's own window (from RowWindow.first(y) on), and
    writes only its output row, which must not overlap them.
    """

    name = "tinyfuse_conv_unpacked_row_s8"
    headers = ("tinyfuse_conv_unpacked.h",)
    form_of = "tinyfuse_conv_packed_row_s8"
    by_row, whole, rings = True, False, True

    def accepts(self, op: Op, context: Context) -> bool:
        return geometry(op).groups == 1 and super().accepts(op, context)

    def scratch(self, op: Op, context: Context) -> int:
        by_bytes = op.input.shape[3] % 4 != 0
        return matmul_depth(op) * (2 * _BLOCK + by_bytes) + op.operand(1).shape[1] * POINTER_BYTES

    def division(self, op: Op, by_row: bool, context: Context) -> Division | None:
        return Division(op.output.shape[2], together=_BLOCK)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        output = from_piece(site.output.pointer, site, op.output.shape[3])
        arguments = (site.input(0).pointer, site.output_row, output, site.constant("pairs"), site.scratch)
        return conv_params(op, site), Call(self.name, ("&p", *arguments))


class UnpackedPointwise(_Unpacked):
    """1x1 convolution with stride 1. A block of pixels is widened into scratch before its outputs are written."""

    name = "tinyfuse_pointwise_unpacked_s8"
    headers = ("tinyfuse_pointwise_unpacked.h",)
    form_of = "tinyfuse_pointwise_s8"

    def accepts(self, op: Op, context: Context) -> bool:
        return is_plain_pointwise(op) and op.input.shape[3] % 4 == 0 and super().accepts(op, context)

    def access_orders(self, op: Op) -> Mapping[int, AccessOrder]:
        g = geometry(op)
        return {0: AccessOrder(g.in_c, g.out_c)}  # of a pixel; a block has read even more

    def scratch(self, op: Op, context: Context) -> int:
        return 2 * _BLOCK * op.input.shape[3]

    def division(self, op: Op, by_row: bool, context: Context) -> Division | None:
        return replace(of_pixels(op, by_row, 1), together=_BLOCK)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        g = geometry(op)
        pointer, pixels = input_pixels(op, site)
        fields = {"in_c": g.in_c, "out_c": g.out_c} | output_fields(op) | {"block": _BLOCK}
        output = from_piece(site.output.pointer, site, g.out_c)
        arguments = ("&p", pointer, pixels, output, site.constant("pairs"), site.scratch)
        return Let("tinyfuse_pointwise", "p", fields), Call(self.name, arguments)


class UnpackedPointwiseRow(UnpackedPointwise):
    """The same for the pixels of a row.

    A call for row y reads only input row y, and writes only its output row.
    """

    by_row, whole, rings = True, False, True


def _pairs(op: Op, line: StepLine) -> Array:
    """int32: for each pair of channels both biases, twice, the weights, 256 times, two a word, both multipliers; then
    the same of an odd last channel alone, its bias once."""
    channels = line.channels()
    weights = halves(256 * padded(op, in_columns(op, line.weights)).astype("<i2"))
    words = np.ascontiguousarray(weights).view("<i4")[..., 0]  # [out_c, steps, 2]
    even = len(words) // 2 * 2
    biases, multipliers = (channels[field][:even].reshape(-1, 2) for field in ("bias", "multiplier"))
    of_pairs = (
        words[:even].reshape(-1, 2, *words.shape[1:]).transpose(0, 2, 3, 1).reshape(even // 2, 4 * words.shape[1])
    )
    last = [part.reshape(-1) for part in (channels["bias"][even:], words[even:], channels["multiplier"][even:])]
    pairs = np.concatenate([biases, biases, of_pairs, multipliers], axis=1)
    return np.concatenate([pairs.reshape(-1), *last]).astype("<i4")
