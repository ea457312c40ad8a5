"""Pointwise convolutions of four or eight input channels, a channel's weights in registers
(runtime_c/tinyfuse_pointwise_narrow.h)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tinyfuse.ir import Op
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
from tinyfuse.kernels.convolution_counts import narrow_counts
from tinyfuse.kernels.counts import Counts
from tinyfuse.kernels.packing import output_fields
from tinyfuse.kernels.rows import from_piece
from tinyfuse.kernels.step_line import step_line
from tinyfuse.ops.convolution import geometry, is_plain_pointwise

#: pixels that a channel's weights are loaded for: more take scratch, and save less and less
_BLOCK = 64


class NarrowPointwise(Kernel):
    """A block of pixels is widened into scratch before its outputs are written. Weights are int16 in flash."""

    name = "tinyfuse_pointwise_narrow_s8"
    headers = ("tinyfuse_pointwise_narrow.h",)
    weights = "unpacked"

    def accepts(self, op: Op, context: Context) -> bool:
        allowed = context.weights in ("auto", self.weights) and context.target.dsp and not context.target.mve
        narrow = is_plain_pointwise(op) and op.input.shape[3] in (4, 8)
        return allowed and narrow and context.optimize != "ram" and step_line(op) is not None

    def access_orders(self, op: Op) -> Mapping[int, AccessOrder]:
        g = geometry(op)
        return {0: AccessOrder(g.in_c, g.out_c)}  # of a pixel; a block has read even more

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        """Per channel its weights, 256 times, inputs 0 2 and 1 3 of each four, then bias and multiplier."""
        found = proven(step_line(op))
        out_c, in_c = found.weights.shape
        fours = 256 * found.weights.astype("<i2").reshape(out_c, in_c // 4, 2, 2).transpose(0, 1, 3, 2)
        line = found.channels()
        words = [np.ascontiguousarray(fours).reshape(out_c, in_c).view("<i4"), line["bias"][:, None]]
        channels = np.concatenate([*words, line["multiplier"][:, None]], axis=1).astype("<i4")
        return (Constant("channels", channels.reshape(-1), "int32_t"),)

    def scratch(self, op: Op, context: Context) -> int:
        return 2 * _block(op) * op.input.shape[3]

    def counts(self, op: Op, by_row: bool) -> Counts:
        return narrow_counts(op, by_row, _BLOCK)

    def division(self, op: Op, by_row: bool, context: Context) -> Division | None:
        return of_pixels(op, by_row, 1)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        g = geometry(op)
        pointer, pixels = input_pixels(op, site)
        fields = {"in_c": g.in_c, "out_c": g.out_c} | output_fields(op) | {"block": _block(op)}
        output = from_piece(site.output.pointer, site, g.out_c)
        arguments = ("&p", pointer, pixels, output, site.constant("channels"), site.scratch)
        return Let("tinyfuse_pointwise", "p", fields), Call(self.name, arguments)


class NarrowPointwiseRow(NarrowPointwise):
    """The same for the pixels of a row.

    A call for row y reads only input row y, and writes only its output row.
    """

    by_row, whole, rings = True, False, True


def _block(op: Op) -> int:
    """Pixels of a block: no more than a row, or the whole image, has."""
    return min(_BLOCK, op.output.shape[1] * op.output.shape[2])
