"""Winograd's F(2x2, 3x3) for 3x3 convolutions with stride 1 (runtime_c/tinyfuse_winograd.h)."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from tinyfuse.ir import Array, Op
from tinyfuse.kernels.base import CallSite, Constant, Context, Kernel, Statement, proven
from tinyfuse.kernels.convolution_counts import winograd_counts
from tinyfuse.kernels.counts import Counts
from tinyfuse.kernels.matmul import STEP_LINE, WIDE, Matmul
from tinyfuse.kernels.packing import bounded, conv_row_call
from tinyfuse.kernels.step_line import step_line
from tinyfuse.ops.convolution import geometry

#: 2G: rows are positions, columns taps; the filter's transform by it is four times Winograd's
_FILTER = np.array([[2, 0, 0], [1, 1, 1], [1, -1, 1], [0, 0, 2]])

#: columns of positions as they are summed; the last one's weights are less than 0
_COLUMNS = [1, 2, 0, 3]

#: bytes of scratch an input channel: 16 positions of two tiles, int16, and one of padding
_SCRATCH_OF_CHANNEL = 16 * 2 * 2 + 1


class WinogradRows(Kernel):
    """3x3 convolution of one group with stride 1, two rows a call.

    A call for row y reads only the input rows of the windows of y and y + 1, and writes only these two rows, which
    must not overlap them.
    """

    name = "tinyfuse_winograd_rows_s8"
    headers = ("tinyfuse_winograd.h",)
    by_row, whole, rings = True, False, True
    rows_a_call = 2
    weights = "winograd"
    stack_bytes = 768  # resnet of MLPerf Tiny took 524 at -O3

    def accepts(self, op: Op, context: Context) -> bool:
        g = geometry(op)
        plain = (g.groups, g.kernel_h, g.kernel_w, g.stride_h, g.stride_w, g.dilation_h, g.dilation_w)
        blocks = g.in_c % 4 == 0 and g.out_c % 2 == 0 and g.out_w >= 4 and g.out_h >= 2
        pairs = context.target.dsp and not context.target.mve  # Helium multiplies int16 half as fast as int8
        allowed = context.weights in ("auto", "winograd") and pairs and not context.divided and not op.reads_ring
        return allowed and plain == (1, 3, 3, 1, 1, 1, 1) and blocks and winograd_layer(op) is not None

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        layer = proven(winograd_layer(op))
        return Constant("weights", layer.weights.reshape(-1).view(np.int8), "int8_t"), layer.constant

    def scratch(self, op: Op, context: Context) -> int:
        return _SCRATCH_OF_CHANNEL * op.input.shape[3]

    def counts(self, op: Op, by_row: bool) -> Counts:
        bounded_pairs = {"bounded_block_pairs": 0.0}
        counts = winograd_counts(op, by_row)
        if proven(winograd_layer(op)).form != STEP_LINE:
            bounded_pairs = {"bounded_block_pairs": counts["block_pairs"]}
        return {**counts, **bounded_pairs}

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        form = proven(winograd_layer(op)).form
        return conv_row_call(self, op, site, site.scratch, form, rows=(site.output.pointer, site.output.next_row))


@lru_cache(maxsize=512)
def winograd_layer(op: Op) -> Matmul | None:
    """The layer on a step line, else in the bounded form, its weights transformed: int16
    [out_c / 2, 16, in_c / 4, 8] in the order of the header. None where neither is proven, or four times a sum may leave
    int32."""
    line = step_line(op)
    layer = line or bounded(op)
    if layer is None:
        return None
    # any four times a sum; of a step line 256 times the sum is proven to stay within int32, its bias included
    if (4 * 128 * np.abs(layer.weights.astype(np.int64)).sum(1) >= 2**31).any():
        return None
    weights = _packed(transformed(layer.weights.reshape(-1, 3, 3, op.input.shape[3])))
    if line is not None:
        return Matmul(STEP_LINE, weights, line.channels())
    return Matmul(WIDE, weights, proven(bounded(op)).channels)


def transformed(filters: Array) -> Array:
    """2G g 2G' of each filter g: int16 [out_c, 4, 4, in_c] of int8 [out_c, 3, 3, in_c]; at most 9 * 128."""
    found: Array = np.einsum("ia,oabc,jb->oijc", _FILTER, filters.astype(np.int64), _FILTER).astype("<i2")
    return found


def _packed(weights: Array) -> Array:
    """int16 [out_c, 4, 4, in_c] in the order of runtime_c/tinyfuse_winograd.h."""
    weights = np.where(np.arange(4)[:, None] == 3, -weights, weights)[:, :, _COLUMNS]
    out_c, in_c = weights.shape[0], weights.shape[3]
    # four inputs are 0 1, 2 3 (axes 4, 5): halves of 0 2, then of 1 3
    fours = weights.reshape(out_c // 2, 2, 16, in_c // 4, 2, 2)
    return np.ascontiguousarray(fours.transpose(0, 2, 3, 5, 1, 4)).astype("<i2")
