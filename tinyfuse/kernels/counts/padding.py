"""Counts what parts of a convolution's windows are in the image or in the padding.

Loop counts are explained in `tinyfuse.kernels.counts.common`.
"""

from __future__ import annotations

from tinyfuse.ir import Op
from tinyfuse.kernels.counts.common import count_inner_taps, count_multiples, memoized
from tinyfuse.ops.core.convolution import geometry


def count_window_rows(op: Op) -> int:
    """Number of window rows that are in the image, summed over the windows of all output rows."""
    g = geometry(op)
    return count_inner_taps(g.out_h, g.in_h, g.kernel_h, g.stride_h, g.dilation_h, g.pad_top)


def count_window_columns(op: Op) -> int:
    """Number of window columns that are in the image, summed over the windows of all pixels of an output row."""
    g = geometry(op)
    return count_inner_taps(g.out_w, g.in_w, g.kernel_w, g.stride_w, g.dilation_w, g.pad_left)


def count_whole_rows(op: Op) -> int:
    """Number of output rows whose windows have no rows in the padding."""
    g = geometry(op)
    return count_multiples(g.out_h, g.stride_h, g.pad_top, g.in_h + g.pad_top - (g.kernel_h - 1) * g.dilation_h)


def divides_by_ring(op: Op) -> bool:
    """Tells whether plain C divides to find a row in a ring of as many rows as the window: compilers need no division
    by a power of two."""
    g = geometry(op)
    span = (g.kernel_h - 1) * g.dilation_h + 1
    return span < g.in_h and span & (span - 1) > 0


@memoized
def inner_taps(op: Op) -> int:
    """Number of taps that are in the image, summed over all output pixels."""
    return count_window_rows(op) * count_window_columns(op)


def inner_columns(op: Op) -> list[int]:
    """Number of window columns that are in the image, for each pixel of an output row."""
    g = geometry(op)
    starts = (x * g.stride_w - g.pad_left for x in range(g.out_w))
    return [sum(0 <= start + k * g.dilation_w < g.in_w for k in range(g.kernel_w)) for start in starts]


@memoized
def count_border_pixels(op: Op) -> int:
    """Number of output pixels whose windows have columns in the padding."""
    g = geometry(op)
    span = (g.kernel_w - 1) * g.dilation_w
    return g.out_h * (g.out_w - count_multiples(g.out_w, g.stride_w, g.pad_left, g.in_w + g.pad_left - span))
