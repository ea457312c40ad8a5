"""Counts of transposed convolutions.

Loop counts are explained in `tinyfuse.kernels.counts.common`.
"""

from __future__ import annotations

from tinyfuse.ir import Op
from tinyfuse.kernels.counts.common import Counts, ceil_div, count_calls, count_narrowed_outputs, memoized
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


@memoized
def phase_counts(op: Op, by_row: bool) -> Counts:
    """Counts of a transposed convolution that is computed as one convolution per phase of the stride, with no tap
    outside its windows."""
    out_c, kernel_h, kernel_w, in_c = op.operand(1).shape
    (_, out_h, out_w, _), (top, left) = op.output.shape, paddings(op)
    strides, taps, words = op.attributes_as(TransposeConv).stride, 0, 0
    for rows, row_taps in _phases(out_h, kernel_h, strides[0], top):
        for columns, column_taps in _phases(out_w, kernel_w, strides[1], left):
            taps += rows * columns * row_taps * column_taps
            words += rows * columns * ceil_div(row_taps * column_taps * in_c, 4)
    pixels = out_h * out_w
    return {
        "calls": count_calls(op, by_row),
        "phases": count_calls(op, by_row) * strides[1],
        "pixels": pixels,
        "outputs": op.output.elements,
        "taps": taps,
        "terms": taps * in_c,
        "words": words,
        "byte_taps": taps * (in_c % 4 > 0),
        "byte_terms": taps * in_c * (in_c % 4 > 0),
        "pairs": pixels * ceil_div(out_c, 2),
        "pair_words": words * (out_c // 2),
        "odd_words": words * (out_c % 2),
        "narrowed_outputs": count_narrowed_outputs(op),
        "padded_taps": taps - transposed_counts(op, by_row)["taps"],
        "tap_rows": transposed_counts(op, by_row)["tap_rows"],
    }


def _phases(out: int, kernel: int, stride: int, before: int) -> list[tuple[int, int]]:
    """(outputs, taps) of each phase along one axis."""
    return [
        (sum((at + before) % stride == phase for at in range(out)), ceil_div(kernel - phase, stride))
        for phase in range(stride)
    ]


def _count_taps(out: int, dim: int, kernel: int, stride: int, before: int) -> int:
    """Number of taps, of all outputs along one axis, that fall on an input."""
    return sum(
        1 for at in range(out) for k in range(kernel)
        if at + before >= k and (at + before - k) % stride == 0 and (at + before - k) // stride < dim
    )  # fmt: skip
