"""Convolutions with int4 weights for cores with the DSP extension (runtime_c/tinyfuse_matmul.h).

Weights stay two to a byte in flash. Layers that these kernels don't accept are computed by int8 kernels, with a byte
per weight.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from tinyfuse.ir import INT4, Array, Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import Constant, require_proven
from tinyfuse.kernels.core.methods import of_calls
from tinyfuse.kernels.counts.layers import layer_counts
from tinyfuse.kernels.layers.int8_dsp.conv import MatmulKernel, PackedConvRow, Pointwise
from tinyfuse.kernels.layers.int8_dsp.lanes import INT4_SINGLE_ROUNDING, INT4_WIDE, Matmul, in_columns, padded
from tinyfuse.kernels.requantize.single_rounding import single_rounding
from tinyfuse.kernels.requantize.two_roundings import bounded

#: upper bound of sums of products, which are kept in 4096ths (runtime_c/tinyfuse_matmul.h)
_SUMS = 2**19


@lru_cache(maxsize=512)
def int4_layer(op: Op) -> Matmul | None:
    """Return a layer with int4 weights in the fastest form that is proven exact; None if there is none.

    Its weights are int8 [out_c, depth], -8 to 7. Its biases are those of sums in 4096ths.
    """
    line, layer = single_rounding(op), bounded(op)
    if op.operand(1).dtype != INT4:
        return None
    if line is not None:
        form, weights, channels, scale = INT4_SINGLE_ROUNDING, line.weights, line.channels(), 16
    elif layer is not None:
        form, weights, channels, scale = INT4_WIDE, layer.weights, layer.channels.copy(), 4096
    else:
        return None
    bias = channels["bias"].astype(np.int64) * scale
    if (np.abs(bias) + 4096 * 128 * np.abs(weights.astype(np.int64)).sum(axis=1)).max() >= 4096 * _SUMS:
        return None
    channels["bias"] = bias
    return Matmul(form, lambda: (padded(op, in_columns(op, weights)), channels))


def int4_weights(values: Array) -> Array:
    """Return int8 [n] that packs values [n, 2] of -8 to 7, the first in the low nibble."""
    pairs = values.astype(np.uint8) & 15
    packed: Array = (pairs[:, 0] | pairs[:, 1] << 4).astype(np.uint8).view(np.int8)
    return packed


class _Int4(MatmulKernel):
    """Mixin that gives a convolution int4 weights, bytes [pairs of channels][depth / 4][4 inputs] of both channels."""

    int4_weights = True
    least_pixels = 2
    counts = of_calls(layer_counts)

    def layer(self, op: Op, context: Context) -> Matmul | None:
        return int4_layer(op) if context.target.dsp and not context.target.mve else None

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        layer = require_proven(self.layer(op, context))
        out_c, depth = layer.weights.shape
        pairs = np.pad(layer.weights, ((0, out_c % 2), (0, 0))).reshape(-1, 2, depth).transpose(0, 2, 1).reshape(-1, 2)
        return Constant("weights", int4_weights(pairs), "int8_t"), layer.constant

    def path(self, op: Op, by_row: bool, context: Context) -> str:
        return MatmulKernel.path(self, op, by_row, context)


class Int4ConvRow(_Int4, PackedConvRow):
    """Convolution without groups, with int4 weights, by im2col."""

    name = "tinyfuse_conv_row_s4"
    no_inline = True
    own = False


class Int4Pointwise(_Int4, Pointwise):
    """1x1 convolution with int4 weights and stride 1."""

    indivisible = True
    name = "tinyfuse_pointwise_s4"
