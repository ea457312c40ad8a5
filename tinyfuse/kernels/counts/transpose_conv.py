"""Counts of transposed convolutions.

Loop counts are explained in `tinyfuse.kernels.counts.common`.
"""

from __future__ import annotations

from tinyfuse.ir import Op
from tinyfuse.kernels.counts.common import Counts, ceil_div, count_calls, memoized
from tinyfuse.ops.layers.transpose_conv import TransposeConv, paddings


@memoized
def transposed_counts(op: Op, by_row: bool) -> Counts:
    """Counts of a transposed convolution. "asked" are taps that are tested for an input; "taps" those that have one."""
    out_c, kernel_h, kernel_w, in_c = op.operand(1).shape
    (_, out_h, out_w, _), (_, in_h, in_w, _) = op.output.shape, op.operand(2).shape
    (stride_h, stride_w), (top, left) = op.attributes_as(TransposeConv).stride, paddings(op)
    rows = _count_taps(out_h, in_h, kernel_h, stride_h, top)
    taps = rows * _count_taps(out_w, in_w, kernel_w, stride_w, left)
    asked = out_h * out_w * ceil_div(kernel_h, stride_h) * ceil_div(kernel_w, stride_w)
    return {
        "calls": count_calls(op, by_row),
        "pixels": out_h * out_w,
        "tap_rows": rows * out_w,
        "taps": taps,
        "asked": asked,
        "terms": taps * in_c,
        "outputs": op.output.elements,
        "output_tap_rows": rows * out_w * out_c,
        "output_taps": taps * out_c,
        "output_asked": asked * out_c,
        "macs": taps * in_c * out_c,
        "vector_taps": taps * out_c * ceil_div(in_c, 16),
        "eights": out_h * out_w * ceil_div(out_c, 8),
        "eight_taps": taps * ceil_div(out_c, 8),
        "eight_terms": taps * in_c * ceil_div(out_c, 8),
    }


def _count_taps(out: int, dim: int, kernel: int, stride: int, before: int) -> int:
    """Number of taps, of all outputs along one axis, that fall on an input."""
    return sum(
        1 for at in range(out) for k in range(kernel)
        if at + before >= k and (at + before - k) % stride == 0 and (at + before - k) // stride < dim
    )  # fmt: skip
