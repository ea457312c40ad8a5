"""Winograd's F(4x4, 3x3) and F(4, 3) for convolutions with stride 1 (runtime_c/tinyfuse_winograd.h)."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from tinyfuse.ir import Array, Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Constant, Kernel, require_proven
from tinyfuse.kernels.core.rows import output_rows
from tinyfuse.kernels.core.statements import Statement
from tinyfuse.kernels.counts.common import Counts
from tinyfuse.kernels.counts.layers import winograd_1d_counts, winograd_counts
from tinyfuse.kernels.layers.common.params import conv_row_call
from tinyfuse.kernels.layers.int8_dsp.lanes import HALF_EVEN, HALF_EVEN_CHANNEL, SINGLE_ROUNDING, WIDE, Matmul
from tinyfuse.kernels.requantize.half_even import each_alone, half_even, share_of_single_rounding, single_or_half_even
from tinyfuse.kernels.requantize.single_rounding import single_rounding
from tinyfuse.kernels.requantize.two_roundings import bounded
from tinyfuse.ops.core.convolution import FLOAT_HALF_EVEN, ConvGeometry, geometry, rounds_by

#: 24G, [positions, taps], for the points 1, -1, 2, -2, 0 and infinity: Winograd's matrix in integers
_FILTER = np.array([[-4, -4, -4], [-4, 4, -4], [1, 2, 4], [1, -2, 4], [6, 0, 0], [0, 0, 24]])
#: divisors of the rows of _FILTER where it is applied to the columns of two-dimensional filters; the C multiplies by
#: them again
_DIVISORS = np.array([2, 2, 1, 1, 1, 4])

#: scratch bytes per input channel: 36 positions of two tiles, int16, and one byte of padding
_SCRATCH_OF_CHANNEL = 36 * 2 * 2 + 1
#: scratch bytes per input channel of F(4, 3): 6 positions of two tiles, int16, and one byte of padding
_SCRATCH_OF_CHANNEL_1D = 6 * 2 * 2 + 1


_CODE_PATHS = {SINGLE_ROUNDING: "", WIDE: "bounded", HALF_EVEN: "half_even"}


class _Winograd(Kernel):
    """Base of Winograd convolutions of int8 without groups, with stride 1, in_c a multiple of 4 and out_c of 2."""

    by_row, whole, rings = True, False, True
    headers = ("tinyfuse_winograd.h",)
    weights = "winograd"
    stack_bytes = 1280

    def accepts(self, op: Op, context: Context) -> bool:
        g = geometry(op)
        plain = (g.groups, g.stride_h, g.stride_w, g.dilation_h, g.dilation_w) == (1, 1, 1, 1, 1)
        pairs = context.target.dsp and not context.target.mve  # Helium multiplies int16 half as fast as int8
        allowed = context.weights in ("auto", "winograd") and pairs and not context.divided and not op.reads_ring
        fits = plain and g.in_c % 4 == 0 and g.out_c % 2 == 0 and self.serves(g)
        rounds = context.target.fpu or not rounds_by(op, FLOAT_HALF_EVEN)
        return allowed and fits and rounds and winograd_layer(op) is not None

    def serves(self, g: ConvGeometry) -> bool:
        """Return whether the kernel computes windows and rows of that size."""
        raise NotImplementedError

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        layer = require_proven(winograd_layer(op))
        return Constant("weights", layer.weights.reshape(-1).view(np.int8), "int8_t"), layer.constant

    def code_path(self, op: Op, by_row: bool, context: Context) -> str:
        return _CODE_PATHS[require_proven(winograd_layer(op)).form]

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        form = require_proven(winograd_layer(op)).form
        return conv_row_call(self, op, site, site.scratch, form, rows=output_rows(self, op, site))


class WinogradRows(_Winograd):
    """3x3 convolution of int8 by Winograd's method, four output rows a call.

    A call for row y reads only the input rows of the windows of y to y + 3, and writes only these rows, which must not
    overlap them.
    """

    name = "tinyfuse_winograd_rows_s8"
    rows_a_call = 4

    def serves(self, g: ConvGeometry) -> bool:
        return (g.kernel_h, g.kernel_w) == (3, 3) and g.out_w >= 4 and g.out_h >= 2

    def scratch(self, op: Op, context: Context) -> int:
        return _SCRATCH_OF_CHANNEL * op.input.shape[3]

    def counts(self, op: Op, by_row: bool) -> Counts:
        return _with_form(op, winograd_counts(op, by_row))


class WinogradAlongRow(_Winograd):
    """1x3 convolution of int8 by Winograd's method, one output row a call.

    A call for row y reads only the input row of its windows, and writes only its output row, which must not overlap it.
    """

    name = "tinyfuse_winograd_along_row_s8"
    pixel_block = 8

    def serves(self, g: ConvGeometry) -> bool:
        return (g.kernel_h, g.kernel_w) == (1, 3)

    def scratch(self, op: Op, context: Context) -> int:
        return _SCRATCH_OF_CHANNEL_1D * op.input.shape[3]

    def counts(self, op: Op, by_row: bool) -> Counts:
        return _with_form(op, winograd_1d_counts(op, self.pixel_block))


def _with_form(op: Op, counts: Counts) -> Counts:
    form = require_proven(winograd_layer(op)).form
    # a channel multiplied in float32 costs about as much as one in the bounded form
    share = 1 - share_of_single_rounding(op, 1) if form == HALF_EVEN else float(form == WIDE)
    return {**counts, "bounded_block_pairs": share * counts["block_pairs"]}


@lru_cache(maxsize=512)
def winograd_layer(op: Op) -> Matmul | None:
    """Return the layer with transformed weights, int16 [out_c / 2, positions, in_c / 4, 8] in the C's order.

    It is requantized with a single rounding if that is exact, else in the bounded form, or half to even. None where
    neither is proven, or where scaled sums, 64 times the convolution's in two dimensions and 8 times in one, may leave
    int32.
    """
    line, flat = single_rounding(op), 1 in op.operand(1).shape[1:3]
    if line is None and rounds_by(op, FLOAT_HALF_EVEN):
        even = half_even(op, 256)
        if even is None:
            return None
        return Matmul(HALF_EVEN, lambda: (_filters(op, even.weights, flat), _single_or_half_even(op)))
    layer = line or bounded(op)
    if layer is None:
        return None
    # single rounding needs no such bound: it computes 256 times each sum, bias included, which is within int32
    times = 8 if flat else 64
    if line is None and (times * 128 * np.abs(layer.weights.astype(np.int64)).sum(1) >= 2**31).any():
        return None

    def pack() -> tuple[Array, Array]:
        channels = line.channels() if line is not None else require_proven(bounded(op)).channels
        return _filters(op, layer.weights, flat), channels

    return Matmul(WIDE if line is None else SINGLE_ROUNDING, pack)


def _single_or_half_even(op: Op) -> Array:
    """Return tinyfuse_half_even [out_c]: the C decides for each channel."""
    return single_or_half_even(op, each_alone(op.output.shape[3])).reshape(-1).view(HALF_EVEN_CHANNEL)


def _filters(op: Op, weights: Array, flat: bool) -> Array:
    """Return weights int8 [out_c, terms] transformed, in the C's order."""
    filters = weights.reshape(-1, *(() if flat else (3,)), 3, op.input.shape[3])
    return _packed(transformed_1d(filters) if flat else transformed(filters))


def transformed(filters: Array) -> Array:
    """Return 24G g 24G', rows divided by _DIVISORS, of each filter g: int16 [out_c, 6, 6, in_c], at most 168 * 128,
    from int8 [out_c, 3, 3, in_c]."""
    down = _FILTER // _DIVISORS[:, None]
    found: Array = np.einsum("ia,oabc,jb->oijc", down, filters.astype(np.int64), _FILTER).astype("<i2")
    return found


def transformed_1d(filters: Array) -> Array:
    """Return 24G g of each filter g: int16 [out_c, 1, 6, in_c], at most 24 * 128, from int8 [out_c, 3, in_c]."""
    found: Array = np.einsum("ia,oac->oic", _FILTER, filters.astype(np.int64)).astype("<i2")[:, None]
    return found


def _packed(weights: Array) -> Array:
    """Return transformed weights int16 [out_c, rows, 6, in_c] in the order of runtime_c/tinyfuse_winograd.h."""
    out_c, in_c = weights.shape[0], weights.shape[3]
    # axes 4 and 5 hold four inputs in the order 0 1, 2 3; the C reads 0 2, then 1 3
    quads = weights.reshape(out_c // 2, 2, -1, in_c // 4, 2, 2)
    return np.ascontiguousarray(quads.transpose(0, 2, 3, 5, 1, 4)).astype("<i2")
