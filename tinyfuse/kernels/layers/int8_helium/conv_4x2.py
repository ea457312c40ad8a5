"""Convolution kernels for Helium that compute tiles of four pixels by two output channels, or keep weights in
registers.

Their C is runtime_c/tinyfuse_matmul_4x2_mve.h, tinyfuse_conv_4x2_mve.h and tinyfuse_conv_weight_stationary_mve.h. They
are exact for every bias and every shift to the right.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tinyfuse.ir import Array, Op
from tinyfuse.kernels.core.c_constants import c_constant
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import AccessOrder, CallSite, Constant, Kernel
from tinyfuse.kernels.core.methods import of_calls, of_operator
from tinyfuse.kernels.core.statements import Statement
from tinyfuse.kernels.counts.common import Counts, ceil_div
from tinyfuse.kernels.counts.helium_4x2 import (
    conv_4x2_chunks_counts,
    conv_4x2_columns_counts,
    pointwise_4x2_counts,
    weight_stationary_counts,
)
from tinyfuse.kernels.layers.common import params
from tinyfuse.kernels.layers.int8_helium import vector_requantization
from tinyfuse.kernels.layers.int8_helium.conv_2x4 import MveConvRow
from tinyfuse.kernels.layers.int8_helium.vector_requantization import VectorChannels, by_shifts
from tinyfuse.kernels.requantize.half_even import half_even
from tinyfuse.kernels.requantize.layer_facts import layer_facts
from tinyfuse.ops.core.convolution import FLOAT_HALF_EVEN, ConvGeometry, geometry, is_plain_pointwise, rounds_by
from tinyfuse.ops.weight_sums import channel_weights

_MATMUL, _CONV = "tinyfuse_matmul_4x2_mve.h", "tinyfuse_conv_4x2_mve.h"
_PIXELS, _CHANNELS, _ALONE, BLOCK = (
    c_constant(_MATMUL, f"TINYFUSE_4X2_MVE_{x}") for x in ("PIXELS", "CHANNELS", "ALONE", "BLOCK")
)
_NAMES = ("TAPS", "COLUMN_POINTERS", "CHUNK_POINTERS", "END_BYTES")
_TAPS, _COLUMN_POINTERS, _CHUNK_POINTERS, _END_BYTES = (c_constant(_CONV, f"TINYFUSE_CONV_4X2_MVE_{x}") for x in _NAMES)

#: the most output channels for which 16 bits hold the offset of four pixels' last channel from their first
_MOST_CHANNELS = 2**16 // _PIXELS


class MveTile4x2(Kernel):
    """Base of Helium kernels of int8 that compute four pixels times two output channels at a time.

    takes_half_even  whether its C has the forms of layers that round half to even
    """

    takes_half_even = True
    path = of_operator(vector_requantization.cost_path)

    def accepts(self, op: Op, context: Context) -> bool:
        g = geometry(op)
        if not context.target.mve or g.groups != 1 or g.out_c % _CHANNELS or g.out_c > _MOST_CHANNELS:
            return False
        if rounds_by(op, FLOAT_HALF_EVEN):
            return self.takes_half_even and context.target.fpu and half_even(op, 1) is not None
        facts = layer_facts(op)
        # conv_2x4.py has kernels for channels with left shifts, or shifts of 0
        return facts.has_two_roundings and facts.biases_fit and self.requantized(op) != "shifted"

    def arranged_weights(self, op: Op, weights: Array) -> Array:
        """Return int8 weights [out_c, terms] in the C's order, [pairs of output channels, ...]."""
        raise NotImplementedError

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        layer = self.requantization(op)
        weights = np.ascontiguousarray(self.arranged_weights(op, layer.weights)).reshape(-1)
        return Constant("weights", weights, "int8_t"), Constant("channels", layer.channels.reshape(-1), "int32_t")

    def requantization(self, op: Op) -> vector_requantization.VectorChannels:
        """Return the layer's constants for the requantization form that its C uses."""
        return vector_requantization.vector_channels(op, _CHANNELS)

    def requantized(self, op: Op) -> str:
        """Return the layer's form of requantization (vector_requantization.py)."""
        return vector_requantization.requantized(op)

    def form(self, op: Op) -> str:
        """Return the C's argument `form`."""
        return f"TINYFUSE_4X2_MVE_{self.requantized(op).upper()}"


class MvePointwise4x2(MveTile4x2):
    """1x1 convolution of a whole int8 image with stride 1, for Helium, four pixels times two channels at a time.

    Outputs may overwrite inputs that were read four pixels before. Kernels by two pixels overwrite them after two, so
    their output lies closer to the input in memory.
    """

    name = "tinyfuse_pointwise_4x2_mve_s8"
    headers = (_MATMUL,)
    division = of_calls(params.divide_by_pixels, _PIXELS)

    def accepts(self, op: Op, context: Context) -> bool:
        return is_plain_pointwise(op) and context.optimize != "ram" and super().accepts(op, context)

    def access_orders(self, op: Op) -> Mapping[int, AccessOrder]:
        g = geometry(op)
        return {0: AccessOrder(_PIXELS * g.in_c, _PIXELS * g.out_c, buffered=False)}

    def arranged_weights(self, op: Op, weights: Array) -> Array:
        padded = np.pad(weights, ((0, 0), (0, -weights.shape[1] % BLOCK)))
        return padded.reshape(-1, _CHANNELS, padded.shape[1] // BLOCK, BLOCK).swapaxes(1, 2)

    def path(self, op: Op, by_row: bool, context: Context) -> str:
        return f"{super().path(op, by_row, context)}, {depth_class(op)}"

    def code_path(self, op: Op, by_row: bool, context: Context) -> str:
        g = geometry(op)
        rest = (g.out_w if by_row else g.out_h * g.out_w) % _PIXELS
        return f"{vector_requantization.requantized(op)}, {depth_class(op)}" + (", rest" if rest else "")

    def counts(self, op: Op, by_row: bool) -> Counts:
        return _with_rounding(op, pointwise_4x2_counts(op, by_row, _ALONE))

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        g = geometry(op)
        fields = {"depth": g.in_c, "out_c": g.out_c, "pitch": g.in_c} | params.output_fields(op)
        return params.pointwise_call(self, op, site, "tinyfuse_matmul_4x2_mve", fields, self.form(op))


def depth_class(op: Op) -> str:
    """Return "narrow", "once" or "deep", the loop that the C chooses by the input channels.

    narrow  one vector
    once    up to four whole vectors, without a loop
    deep    any other count
    """
    depth = geometry(op).in_c
    return "narrow" if depth <= BLOCK else "once" if depth <= 4 * BLOCK and depth % BLOCK == 0 else "deep"


class MvePointwise4x2Row(MvePointwise4x2):
    """1x1 convolution of int8 with stride 1, for Helium, one output row of at least four pixels a call."""

    by_row, whole, rings = True, False, True

    def accepts(self, op: Op, context: Context) -> bool:
        return is_plain_pointwise(op) and geometry(op).out_w >= _PIXELS and MveTile4x2.accepts(self, op, context)


class MveStridedPointwise4x2Row(MvePointwise4x2):
    """1x1 convolution of int8 with any strides, without padding, for Helium, one output row a call."""

    name = "tinyfuse_pointwise_4x2_strided_mve_row_s8"
    costs_as = MvePointwise4x2.name
    by_row, whole, rings = True, False, True
    columns = _PIXELS
    row_access_orders = of_operator(params.orders_by_pixels, _PIXELS)
    division = Kernel.division
    access_orders = Kernel.access_orders

    def accepts(self, op: Op, context: Context) -> bool:
        g = geometry(op)
        unpadded = (g.kernel_h, g.kernel_w, g.pad_top, g.pad_left) == (1, 1, 0, 0)
        inside = (g.out_h - 1) * g.stride_h < g.in_h and (g.out_w - 1) * g.stride_w < g.in_w
        return unpadded and inside and not is_plain_pointwise(op) and MveTile4x2.accepts(self, op, context)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        return params.conv_row_call(self, op, site, self.form(op))


class _ConvRow4x2(MveTile4x2):
    """Base of kernels that compute a row of a convolution from pointers to its inputs, four pixels at a time."""

    headers: tuple[str, ...] = (_CONV,)
    by_row, whole, rings = True, False, True
    columns = _PIXELS
    row_access_orders = of_operator(params.orders_by_pixels, _PIXELS)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        return params.conv_row_call(self, op, site, site.scratch, self.form(op))


class MveColumnsConv4x2Row(_ConvRow4x2):
    """Convolution of int8, for Helium, with stride 1 along a row, whose input channels are a multiple of sixteen.

    Columns are read in place, once for all pixels whose windows contain them.
    """

    name = "tinyfuse_conv_4x2_columns_mve_row_s8"

    def accepts(self, op: Op, context: Context) -> bool:
        g = geometry(op)
        shared = g.kernel_w > 1 and (g.stride_w, g.dilation_w) == (1, 1) and g.in_c % BLOCK == 0
        return shared and super().accepts(op, context)

    def arranged_weights(self, op: Op, weights: Array) -> Array:
        g = geometry(op)
        taps = ceil_div(g.kernel_w, _TAPS)
        filters = weights.reshape(g.out_c, g.kernel_h, g.kernel_w, g.in_c)
        padded = np.pad(filters, ((0, 0), (0, 0), (0, taps * _TAPS - g.kernel_w), (0, 0)))
        split = padded.reshape(-1, _CHANNELS, g.kernel_h, taps, _TAPS, g.in_c // BLOCK, BLOCK)
        return split.transpose(0, 2, 3, 5, 1, 4, 6)

    def scratch(self, op: Op, context: Context) -> int:
        g = geometry(op)
        iterations = g.kernel_h * ceil_div(g.kernel_w, _TAPS) * (g.in_c // BLOCK)
        return iterations * _COLUMN_POINTERS * params.POINTER_BYTES + _END_BYTES + BLOCK

    def counts(self, op: Op, by_row: bool) -> Counts:
        return _with_rounding(op, conv_4x2_columns_counts(op, by_row, _TAPS))


class MveChunksConv4x2Row(_ConvRow4x2):
    """Convolution of int8, for Helium, with windows of any size that are not dilated along a row.

    Kernel rows are read in place, in chunks of at most sixteen bytes; windows that reach into the padding are copied.
    """

    name = "tinyfuse_conv_4x2_chunks_mve_row_s8"

    def accepts(self, op: Op, context: Context) -> bool:
        if context.optimize != "speed" and self.scratch(op, context) > MveConvRow().scratch(op, context):
            return False
        return geometry(op).dilation_w == 1 and super().accepts(op, context)

    def arranged_weights(self, op: Op, weights: Array) -> Array:
        g = geometry(op)
        run = g.kernel_w * g.in_c
        rows = weights.reshape(g.out_c, g.kernel_h, run)
        chunks = np.zeros((g.out_c, g.kernel_h, ceil_div(run, BLOCK), BLOCK), np.int8)
        for chunk, first in enumerate(range(0, run, BLOCK)):
            count = min(BLOCK, run - first)
            at = BLOCK - count if run >= BLOCK else 0  # the last chunk holds the last sixteen terms
            chunks[:, :, chunk, at : at + count] = rows[:, :, first : first + count]
        flat = chunks.reshape(g.out_c, -1, BLOCK)
        flat = np.pad(flat, ((0, 0), (0, -flat.shape[1] % _TAPS), (0, 0)))
        return flat.reshape(-1, _CHANNELS, *flat.shape[1:]).swapaxes(1, 2)

    def scratch(self, op: Op, context: Context) -> int:
        g = geometry(op)
        run = g.kernel_w * g.in_c
        iterations = ceil_div(g.kernel_h * ceil_div(run, BLOCK), _TAPS)
        windows = g.kernel_h * copied_windows(g, _PIXELS) + g.pads_rows
        return iterations * _CHUNK_POINTERS * params.POINTER_BYTES + _END_BYTES + windows * run

    def copy_of_code(self, op: Op, context: Context) -> str:
        return f"{self.name} {self.form(op)}"

    def counts(self, op: Op, by_row: bool) -> Counts:
        return _with_rounding(op, conv_4x2_chunks_counts(op, by_row, _TAPS))


def _with_rounding(op: Op, counts: Counts) -> Counts:
    """Return `counts` with those of requantization added; a group is a pair of channels of four pixels."""
    return {**counts, **vector_requantization.requantizing_counts(op, counts["four_pairs"], _CHANNELS)}


def copied_windows(g: ConvGeometry, pixels: int) -> int:
    """Return the most pixels, of `pixels` neighbours in a row, whose windows have columns in the padding."""
    starts = [x * g.stride_w - g.pad_left for x in range(g.out_w)]
    outside = [start < 0 or start + g.kernel_w > g.in_w for start in starts]
    return max(sum(outside[x : x + pixels]) for x in range(0, g.out_w, pixels))


_STATIONARY = "tinyfuse_conv_weight_stationary_mve.h"
_KEPT_TAPS, _KEPT_BLOCK, _LEAST_PIXELS, _SUMS_BYTES = (
    c_constant(_STATIONARY, f"TINYFUSE_WEIGHT_STATIONARY_{x}") for x in ("TAPS", "BLOCK", "PIXELS", "SUMS_BYTES")
)


class WeightStationaryConvRow(MveTile4x2):
    """Convolution of int8, for Helium, with stride 1 along a row, windows of two or three columns, and rows of at least
    four pixels.

    Weights of three taps, sixteen input channels and two output channels stay in registers for a row of pixels.
    """

    takes_half_even = False
    name = "tinyfuse_conv_weight_stationary_mve_row_s8"
    headers = (_STATIONARY,)
    by_row, whole, rings, indivisible = True, False, True, True
    path = of_operator(by_shifts)
    counts = of_calls(weight_stationary_counts)

    def accepts(self, op: Op, context: Context) -> bool:
        g = geometry(op)
        side_by_side = 1 < g.kernel_w <= _KEPT_TAPS and (g.stride_w, g.dilation_w) == (1, 1)
        if not context.target.mve or not side_by_side or g.out_w < _LEAST_PIXELS:
            return False
        small = context.speed_alone or self.scratch(op, context) <= MveConvRow().scratch(op, context)
        return small and super().accepts(op, context)

    def arranged_weights(self, op: Op, weights: Array) -> Array:
        g = geometry(op)
        blocks = ceil_div(g.in_c, _KEPT_BLOCK)
        filters = weights.reshape(g.out_c, g.kernel_h, g.kernel_w, g.in_c)
        padded = np.pad(filters, ((0, 0), (0, 0), (0, _KEPT_TAPS - g.kernel_w), (0, blocks * _KEPT_BLOCK - g.in_c)))
        split = padded.reshape(g.out_c // 2, 2, g.kernel_h, _KEPT_TAPS, blocks, _KEPT_BLOCK)
        return split.transpose(0, 2, 4, 1, 3, 5)

    def scratch(self, op: Op, context: Context) -> int:
        g = geometry(op)
        passes = g.kernel_h * ceil_div(g.in_c, _KEPT_BLOCK)
        return (1 + g.out_w) * _SUMS_BYTES + passes * (g.out_w + _KEPT_TAPS - 1) * _KEPT_BLOCK

    def requantization(self, op: Op) -> VectorChannels:
        return VectorChannels(channel_weights(op), layer_facts(op).channels)

    def requantized(self, op: Op) -> str:
        return by_shifts(op)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        return params.conv_row_call(self, op, site, site.scratch, self.form(op))
