"""Helium kernels of layers with int4 weights (runtime_c/tinyfuse_matmul_2x4_mve.h).

Weights stay two to a byte in flash. Layers that these kernels don't accept are computed by int8 kernels, with a byte
per weight.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from tinyfuse.ir import INT4, Array, Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Constant, Kernel, require_proven
from tinyfuse.kernels.core.rows import vectors
from tinyfuse.kernels.core.statements import Call, Let, Statement
from tinyfuse.kernels.layers.common.params import channels4, conv_row_call, output_fields, pointwise_input
from tinyfuse.kernels.layers.int8_helium.conv_2x4 import MveConvRow, MveDense, MvePointwise
from tinyfuse.kernels.requantize.layer_facts import layer_facts
from tinyfuse.ops.core.convolution import geometry
from tinyfuse.ops.weight_sums import channel_weights


@lru_cache(maxsize=512)
def pair_int4_weights(op: Op) -> Array | None:
    """Return int8 [pairs, terms]: 16 * w + v of the weights v, w of two output channels.

    A channel beyond an odd last one has weights 0. None where weights are not int4, a pair doesn't fit a byte, or sums
    may leave 32 bits.
    """
    if op.operand(1).dtype != INT4:
        return None
    weights = channel_weights(op).astype(np.int64)
    if len(weights) % 2:
        weights = np.concatenate([weights, np.zeros((1, weights.shape[1]), np.int64)])
    pairs = 16 * weights[1::2] + weights[::2]
    fits = pairs.min() >= -128 and pairs.max() <= 127 and 17 * layer_facts(op).reach.max() < 2**31
    return pairs.astype(np.int8) if fits else None


class _Paired(Kernel):
    """Mixin that gives an int8 kernel the int4 weights of two output channels in a byte."""

    int4_weights = True

    def accepts(self, op: Op, context: Context) -> bool:
        return layer_facts(op).shifts_right and super().accepts(op, context) and pair_int4_weights(op) is not None

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return _constants(op)

    def path(self, op: Op, by_row: bool, context: Context) -> str:
        return ""


def _constants(op: Op) -> tuple[Constant, ...]:
    pairs = require_proven(pair_int4_weights(op))
    out_c, depth = len(layer_facts(op).bias), pairs.shape[1]
    groups, whole = -(-out_c // 4), depth // 16 * 16
    padded = np.zeros((groups, 2, depth), np.int8)
    padded.reshape(-1, depth)[: len(pairs)] = pairs
    parts = []
    for group in padded:
        parts.append(group[:, :whole].reshape(2, -1, 16).transpose(1, 0, 2).reshape(-1))
        parts.append(group[:, whole:].reshape(-1))
    channels = channels4(op, np.arange(4 * groups).reshape(groups, 4))
    fields = channels.data.reshape(groups, 3, 4).copy()
    own = fields[:, 0].copy()
    fields[:, 0] = 16 * own
    fields[:, 0, 1::2] += own[:, ::2]
    weights = np.concatenate([*parts, np.zeros(16, np.int8)])
    return Constant("weights", weights, "int8_t"), Constant("channels", fields.reshape(-1), "int32_t")


class Int4MveConvRow(_Paired, MveConvRow):
    """Convolution without groups, with int4 weights, for Helium, by im2col of two pixels.

    A call for row y reads only the input rows of y's own window (from RowWindow.first(y) on), and
    writes only its output row, which must not overlap them.
    """

    name = "tinyfuse_conv_mve_row_s4"

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        return conv_row_call(self, op, site, site.scratch)


class Int4MvePointwise(_Paired, MvePointwise):
    """1x1 convolution with int4 weights and stride 1, for Helium, two pixels at a time.

    A call for row y reads only input row y, and writes only its output row.
    """

    indivisible = True
    name = "tinyfuse_pointwise_mve_s4"

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        g = geometry(op)
        return _pointwise_call(self.name, op, site, g.in_c, g.out_c, *pointwise_input(op, site))


class Int4MveDense(_Paired, MveDense):
    """Fully connected layer with int4 weights, for Helium, computed as a pointwise convolution of batches."""

    indivisible = True
    name = "tinyfuse_pointwise_mve_s4"

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        out_c, depth = op.operand(1).shape
        return _pointwise_call(self.name, op, site, depth, out_c, *vectors(op, site))


def _pointwise_call(
    name: str, op: Op, site: CallSite, depth: int, out_c: int, pointer: str, pixels: int
) -> tuple[Statement, ...]:
    """Return the call on `pixels` pixels from `pointer` on."""
    arguments = ("&p", pointer, pixels, site.output.pointer, site.constant("weights"), site.constant("channels"))
    fields = {"depth": depth, "out_c": out_c} | output_fields(op)
    return Let("tinyfuse_matmul_2x4_mve", "p", fields), Call(name, arguments)
