"""Our kernels of convolutions for Helium that compute four pixels times two channels (runtime_c/tinyfuse_four_mve.h,
runtime_c/tinyfuse_conv_four_mve.h); exact for every bias and right shift."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tinyfuse.ir import Array, Op
from tinyfuse.ir.fixedpoint import RANGE
from tinyfuse.kernels.core.c_constants import c_constant
from tinyfuse.kernels.core.kernel import AccessOrder, CallSite, Constant, Context, Division, Kernel
from tinyfuse.kernels.core.rows import piece_pointer
from tinyfuse.kernels.core.statements import Call, Let, Statement
from tinyfuse.kernels.counts.common import Counts, ceil_div
from tinyfuse.kernels.counts.helium_4x2 import conv_4x2_chunks_counts, conv_4x2_columns_counts, pointwise_4x2_counts
from tinyfuse.kernels.layers.common.params import (
    POINTER_BYTES,
    conv_row_call,
    orders_by_pixels,
    output_fields,
    rectified,
    vector_scales,
)
from tinyfuse.kernels.layers.common.pixels import input_pixels, of_pixels
from tinyfuse.kernels.layers.int8_helium.conv_2x4 import MveConvRow
from tinyfuse.kernels.requantize.half_even import half_even
from tinyfuse.kernels.requantize.two_roundings import folded_bias, shifts_right
from tinyfuse.ops.core.convolution import (
    FLOAT_HALF_EVEN,
    ConvGeometry,
    channel_multipliers,
    clamp_range,
    geometry,
    is_plain_pointwise,
    rounds_by,
)
from tinyfuse.ops.weight_sums import channel_weights

_FOUR, _CONV = "tinyfuse_four_mve.h", "tinyfuse_conv_four_mve.h"
_PIXELS, _CHANNELS, _ALONE, BLOCK = (
    c_constant(_FOUR, f"TINYFUSE_FOUR_{x}") for x in ("PIXELS", "CHANNELS", "ALONE", "BLOCK")
)
_NAMES = ("TAPS", "COLUMN_POINTERS", "PIECE_POINTERS", "END_BYTES")
_TAPS, _COLUMN_POINTERS, _PIECE_POINTERS, _END_BYTES = (c_constant(_CONV, f"TINYFUSE_CONV_FOUR_{x}") for x in _NAMES)

#: what 16 bits hold of the distance between the first and the last channel of four pixels
_MOST_CHANNELS = 2**16 // _PIXELS


def requantized(op: Op) -> str:
    """How a layer's sums become outputs: one of the forms of runtime_c/tinyfuse_four_mve.h."""
    if rounds_by(op, FLOAT_HALF_EVEN):
        return "half_even_saturated" if clamp_range(op) == RANGE["int8"] else "half_even"
    if rectified(op):
        return "rectified"
    return "saturated" if clamp_range(op) == RANGE["int8"] else "each"


def cost_path(op: Op) -> str:
    """Name of the form whose costs a layer has: those that round half to even take as many instructions as the ones
    that round halves away from zero."""
    found = requantized(op)
    return {"half_even": "each", "half_even_saturated": "saturated"}.get(found, found)


class FourKernel(Kernel):
    """What computes four pixels times two channels.

    takes_half_even  whether its C has the forms of layers that round half to even
    """

    takes_half_even = True

    def accepts(self, op: Op, context: Context) -> bool:
        g = geometry(op)
        if not context.target.mve or g.groups != 1 or g.out_c % _CHANNELS or g.out_c > _MOST_CHANNELS:
            return False
        if rounds_by(op, FLOAT_HALF_EVEN):
            return self.takes_half_even and context.target.fpu and half_even(op, 1) is not None
        return shifts_right(op) and (rectified(op) or bool((channel_multipliers(op)[1] < 0).all()))

    def weights_of(self, op: Op) -> Array:
        """The weights in the order of the C, int8 [pairs of channels, ...]."""
        raise NotImplementedError

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        channels = np.stack([folded_bias(op), *vector_scales(op)], axis=1).astype(np.int32)
        weights = np.ascontiguousarray(self.weights_of(op)).reshape(-1)
        return Constant("weights", weights, "int8_t"), Constant("channels", channels.reshape(-1), "int32_t")

    def form(self, op: Op) -> str:
        """The C's argument `form`."""
        return f"TINYFUSE_FOUR_{requantized(op).upper()}"

    def path(self, op: Op, by_row: bool, context: Context) -> str:
        return cost_path(op)


class FourPointwise(FourKernel):
    """1x1 convolution with stride 1, of all pixels. Outputs that lie over inputs must be four pixels behind them, which
    takes more room than the two of other kernels."""

    name = "tinyfuse_pointwise_four_mve_s8"
    headers = (_FOUR,)

    def accepts(self, op: Op, context: Context) -> bool:
        return is_plain_pointwise(op) and context.optimize != "ram" and super().accepts(op, context)

    def access_orders(self, op: Op) -> Mapping[int, AccessOrder]:
        g = geometry(op)
        return {0: AccessOrder(_PIXELS * g.in_c, _PIXELS * g.out_c, buffered=False)}

    def weights_of(self, op: Op) -> Array:
        return _vectors(channel_weights(op)).swapaxes(1, 2)

    def path(self, op: Op, by_row: bool, context: Context) -> str:
        return f"{super().path(op, by_row, context)}, {sort_of_depth(op)}"

    def counts(self, op: Op, by_row: bool) -> Counts:
        return pointwise_4x2_counts(op, by_row, _ALONE)

    def division(self, op: Op, by_row: bool, context: Context) -> Division | None:
        return of_pixels(op, by_row, _PIXELS)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        g = geometry(op)
        pointer, pixels = input_pixels(op, site)
        fields = {"depth": g.in_c, "out_c": g.out_c, "pitch": g.in_c} | output_fields(op)
        return Let("tinyfuse_four_mve", "p", fields), Call(
            self.name,
            ("&p", pointer, pixels, piece_pointer(site.output.pointer, site, g.out_c), site.constant("weights"),
             site.constant("channels"), self.form(op)),
        )  # fmt: skip


def sort_of_depth(op: Op) -> str:
    """What the C tells layers apart by."""
    depth = geometry(op).in_c
    return "narrow" if depth <= BLOCK else "once" if depth <= 4 * BLOCK and depth % BLOCK == 0 else "deep"


def four_pixels_counts(op: Op, by_row: bool) -> Counts:
    """Where no pixel is computed alone."""
    return pointwise_4x2_counts(op, by_row, 0)


class FourPointwiseRow(FourPointwise):
    """The same of the pixels of a row, of which there are four or more.

    A call for row y reads only input row y, and writes only its output row.
    """

    by_row, whole, rings = True, False, True

    def accepts(self, op: Op, context: Context) -> bool:
        return is_plain_pointwise(op) and geometry(op).out_w >= _PIXELS and FourKernel.accepts(self, op, context)


class FourStridedPointwiseRow(FourPointwise):
    """1x1 convolution with any strides, without padding.

    A call for row y reads only the input row of y's window, and writes only its output row, which must not overlap it.
    """

    name = "tinyfuse_pointwise_strided_mve_row_s8"
    costs_as = FourPointwise.name
    by_row, whole, rings = True, False, True
    columns = _PIXELS

    def accepts(self, op: Op, context: Context) -> bool:
        g = geometry(op)
        unpadded = (g.kernel_h, g.kernel_w, g.pad_top, g.pad_left) == (1, 1, 0, 0)
        inside = (g.out_h - 1) * g.stride_h < g.in_h and (g.out_w - 1) * g.stride_w < g.in_w
        return unpadded and inside and not is_plain_pointwise(op) and FourKernel.accepts(self, op, context)

    def access_orders(self, op: Op) -> Mapping[int, AccessOrder]:
        return {}

    def row_access_orders(self, op: Op) -> Mapping[int, AccessOrder]:
        return orders_by_pixels(op, _PIXELS)

    def division(self, op: Op, by_row: bool, context: Context) -> Division | None:
        return Kernel.division(self, op, by_row, context)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        return conv_row_call(self, op, site, self.form(op))


class FourColumnsConvRow(FourKernel):
    """Convolution with stride 1 along a row whose input channels are a multiple of sixteen: columns are read where they
    lie, once for all pixels that have them in their windows.

    A call for row y reads only the input rows of y's own window (from RowWindow.first(y) on), and
    writes only its output row, which must not overlap them.
    """

    name = "tinyfuse_conv_columns_mve_row_s8"
    headers = (_CONV,)
    by_row, whole, rings = True, False, True
    columns = _PIXELS

    def accepts(self, op: Op, context: Context) -> bool:
        g = geometry(op)
        shared = g.kernel_w > 1 and (g.stride_w, g.dilation_w) == (1, 1) and g.in_c % BLOCK == 0
        return shared and super().accepts(op, context)

    def row_access_orders(self, op: Op) -> Mapping[int, AccessOrder]:
        return orders_by_pixels(op, _PIXELS)

    def weights_of(self, op: Op) -> Array:
        g = geometry(op)
        taps = ceil_div(g.kernel_w, _TAPS)
        filters = channel_weights(op).reshape(g.out_c, g.kernel_h, g.kernel_w, g.in_c)
        padded = np.pad(filters, ((0, 0), (0, 0), (0, taps * _TAPS - g.kernel_w), (0, 0)))
        split = padded.reshape(-1, _CHANNELS, g.kernel_h, taps, _TAPS, g.in_c // BLOCK, BLOCK)
        return split.transpose(0, 2, 3, 5, 1, 4, 6)

    def scratch(self, op: Op, context: Context) -> int:
        g = geometry(op)
        iterations = g.kernel_h * ceil_div(g.kernel_w, _TAPS) * (g.in_c // BLOCK)
        return iterations * _COLUMN_POINTERS * POINTER_BYTES + _END_BYTES + BLOCK

    def counts(self, op: Op, by_row: bool) -> Counts:
        return conv_4x2_columns_counts(op, by_row, _TAPS)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        return conv_row_call(self, op, site, site.scratch, self.form(op))


class FourPiecesConvRow(FourKernel):
    """Convolution of any window: kernel rows are read where they lie, in pieces of sixteen bytes or less; windows that
    reach into the padding are copied.

    A call for row y reads only the input rows of y's own window (from RowWindow.first(y) on), and
    writes only its output row, which must not overlap them.
    """

    name = "tinyfuse_conv_pieces_mve_row_s8"
    headers = (_CONV,)
    by_row, whole, rings = True, False, True
    columns = _PIXELS

    def accepts(self, op: Op, context: Context) -> bool:
        if context.optimize != "speed" and self.scratch(op, context) > MveConvRow().scratch(op, context):
            return False
        return geometry(op).dilation_w == 1 and super().accepts(op, context)

    def row_access_orders(self, op: Op) -> Mapping[int, AccessOrder]:
        return orders_by_pixels(op, _PIXELS)

    def weights_of(self, op: Op) -> Array:
        g = geometry(op)
        run = g.kernel_w * g.in_c
        rows = channel_weights(op).reshape(g.out_c, g.kernel_h, run)
        pieces = np.zeros((g.out_c, g.kernel_h, ceil_div(run, BLOCK), BLOCK), np.int8)
        for piece, first in enumerate(range(0, run, BLOCK)):
            count = min(BLOCK, run - first)
            at = BLOCK - count if run >= BLOCK else 0  # the last piece has the last sixteen
            pieces[:, :, piece, at : at + count] = rows[:, :, first : first + count]
        flat = pieces.reshape(g.out_c, -1, BLOCK)
        flat = np.pad(flat, ((0, 0), (0, -flat.shape[1] % _TAPS), (0, 0)))
        return flat.reshape(-1, _CHANNELS, *flat.shape[1:]).swapaxes(1, 2)

    def scratch(self, op: Op, context: Context) -> int:
        g = geometry(op)
        run = g.kernel_w * g.in_c
        iterations = ceil_div(g.kernel_h * ceil_div(run, BLOCK), _TAPS)
        windows = g.kernel_h * copied_windows(g, _PIXELS) + g.pads_rows
        return iterations * _PIECE_POINTERS * POINTER_BYTES + _END_BYTES + windows * run

    def counts(self, op: Op, by_row: bool) -> Counts:
        return conv_4x2_chunks_counts(op, by_row, _TAPS)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        return conv_row_call(self, op, site, site.scratch, self.form(op))


def copied_windows(g: ConvGeometry, pixels: int) -> int:
    """Of so many pixels of a row side by side: those at most whose windows have columns in the padding."""
    starts = [x * g.stride_w - g.pad_left for x in range(g.out_w)]
    outside = [start < 0 or start + g.kernel_w > g.in_w for start in starts]
    return max(sum(outside[x : x + pixels]) for x in range(0, g.out_w, pixels))


def _vectors(weights: Array) -> Array:
    """int8 [pairs, 2, vectors, 16] of int8 [out_c, terms], zeros after the terms."""
    padded = np.pad(weights, ((0, 0), (0, -weights.shape[1] % BLOCK)))
    return padded.reshape(-1, _CHANNELS, padded.shape[1] // BLOCK, BLOCK)
