"""Convolutions with int4 weights for cores with the DSP extension (runtime_c/tinyfuse_conv_s4.h).

Weights stay two to a byte in flash. Layers that these kernels don't accept are computed by int8 kernels, with a byte
per weight.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from tinyfuse.ir import INT4, Array, Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Constant, require_proven
from tinyfuse.kernels.core.statements import Call, Let, Statement
from tinyfuse.kernels.counts.common import Counts
from tinyfuse.kernels.counts.layers import layer_counts
from tinyfuse.kernels.layers.common.params import conv_row_call, output_fields, pointwise_input
from tinyfuse.kernels.layers.int8_dsp.conv import PackedConvRow, Pointwise
from tinyfuse.kernels.layers.int8_dsp.lanes import SINGLE_ROUNDING, WIDE, Matmul, form_name, matmul_depth
from tinyfuse.kernels.requantize.single_rounding import single_rounding
from tinyfuse.kernels.requantize.two_roundings import bounded
from tinyfuse.ops.core.convolution import geometry, is_plain_pointwise

#: upper bound of sums of products, which are kept in 4096ths (runtime_c/tinyfuse_matmul_s4.h)
_SUMS = 2**19


@lru_cache(maxsize=512)
def int4_layer(op: Op) -> Matmul | None:
    """Return a layer with int4 weights in the fastest form that is proven exact; None if there is none.

    Its weights are int8 [out_c, terms], -8 to 7.
    """
    if op.operand(1).dtype != INT4:
        return None
    line = single_rounding(op)
    layer = bounded(op)
    if line is not None:
        found = Matmul(SINGLE_ROUNDING, lambda: (line.weights, line.channels()))
    elif layer is not None:
        found = Matmul(WIDE, lambda: (layer.weights, layer.channels))
    else:
        return None
    most = 128 * np.abs(found.weights.astype(np.int64)).sum(axis=1).max()
    return found if most < _SUMS else None


def int4_weights(values: Array) -> Array:
    """Return int8 [n] that packs values [n, 2] of -8 to 7, the first in the low nibble."""
    pairs = values.astype(np.uint8) & 15
    packed: Array = (pairs[:, 0] | pairs[:, 1] << 4).astype(np.uint8).view(np.int8)
    return packed


def _constants(op: Op) -> tuple[Constant, ...]:
    """Return the constants "weights" and "channels".

    Weights are bytes [pairs of channels][depth / 4][4 inputs] with the weights of both channels in a byte.
    """
    layer = require_proven(int4_layer(op))
    out_c, terms = layer.weights.shape
    padded = np.zeros((out_c + out_c % 2, matmul_depth(op)), np.int8)
    padded[:out_c, :terms] = layer.weights
    pairs = padded.reshape(-1, 2, padded.shape[1]).transpose(0, 2, 1).reshape(-1, 2)
    return Constant("weights", int4_weights(pairs), "int8_t"), layer.constant


class Int4ConvRow(PackedConvRow):
    """Convolution without groups, with int4 weights, by im2col and tinyfuse_matmul_s4.h.

    A call for row y reads only the input rows of y's own window (from RowWindow.first(y) on), and
    writes only its output row, which must not overlap them.
    """

    name = "tinyfuse_conv_row_s4"
    no_inline = True
    headers = ("tinyfuse_conv_s4.h",)
    int4_weights = True
    least_pixels = 2
    own = False

    def counts(self, op: Op, by_row: bool) -> Counts:
        return layer_counts(op, by_row)

    def accepts(self, op: Op, context: Context) -> bool:
        return _on_dsp(context) and geometry(op).groups == 1 and int4_layer(op) is not None

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return _constants(op)

    def path(self, op: Op, by_row: bool, context: Context) -> str:
        return f"{form_name(require_proven(int4_layer(op)).form)}, blocks of {self.block(op, context)}"

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        return conv_row_call(self, op, site, site.scratch, self.block(op, context), require_proven(int4_layer(op)).form)


class Int4Pointwise(Pointwise):
    """1x1 convolution with int4 weights and stride 1, by runtime_c/tinyfuse_matmul_s4.h.

    A block of pixels is converted to int16 in scratch before its outputs are written.
    """

    indivisible = True
    name = "tinyfuse_pointwise_s4"
    headers = ("tinyfuse_conv_s4.h",)
    int4_weights = True
    least_pixels = 2

    def accepts(self, op: Op, context: Context) -> bool:
        whole_words = is_plain_pointwise(op) and op.input.shape[3] % 4 == 0
        return _on_dsp(context) and whole_words and int4_layer(op) is not None

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return _constants(op)

    def path(self, op: Op, by_row: bool, context: Context) -> str:
        return f"{form_name(require_proven(int4_layer(op)).form)}, blocks of {self.block(op, context)}"

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        g = geometry(op)
        pointer, pixels = pointwise_input(op, site)
        fields = {"in_c": g.in_c, "out_c": g.out_c} | output_fields(op) | {"block": self.block(op, context)}
        return Let("tinyfuse_pointwise", "p", fields), Call(
            self.name,
            ("&p", pointer, pixels, site.output.pointer, site.constant("weights"),
             site.constant("channels"), site.scratch, require_proven(int4_layer(op)).form),
        )  # fmt: skip


class Int4PointwiseRow(Int4Pointwise):
    """1x1 convolution with int4 weights and stride 1, one output row a call.

    A call for row y reads only input row y, and writes only its output row.
    """

    by_row, whole, rings = True, False, True


def _on_dsp(context: Context) -> bool:
    return context.target.dsp and not context.target.mve
