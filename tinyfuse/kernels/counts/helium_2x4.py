"""Counts of Helium layers that compute tiles of two pixels x four channels, and of depthwise ones by 16 channels.

Loop counts are explained in `tinyfuse.kernels.counts.common`.
"""

from __future__ import annotations

from tinyfuse.ir import Op
from tinyfuse.kernels.counts.common import KNOWN, Counts, ceil_div, count_calls, known_counts, memoized
from tinyfuse.kernels.counts.im2col import packed_depthwise_counts
from tinyfuse.kernels.counts.layers import pixels_of_calls
from tinyfuse.kernels.counts.padding import count_border_pixels, count_window_rows
from tinyfuse.ops.core.convolution import geometry


@memoized
def dense_one_batch_counts(op: Op, by_row: bool) -> Counts:
    """Counts of a fully connected layer with one batch. It reads 16 inputs at a time, for eight outputs as long as four
    are left, then for each of the last outputs ("singles")."""
    out_c, depth = op.operand(1).shape
    eights, singles, blocks, rest = ceil_div(out_c // 4, 2), out_c % 4, depth // 16, depth % 16 > 0
    return {
        "calls": count_calls(op, by_row),
        "one_eights": eights,
        "one_eight_blocks": eights * blocks,
        "one_eight_rests": eights * rest,
        "singles": singles,
        "single_vectors": singles * ceil_div(depth, 16),
    }


@memoized
def tile_2x4_counts(op: Op, by_row: bool) -> Counts:
    """Counts of a layer whose calls compute two pixels at a time, and the last pixel alone if their number is odd. A
    step reads 16 inputs, an iteration 64, for four channels of two pixels or eight channels of one."""
    weights = op.operand(1)
    out_c, depth = weights.shape[0], weights.elements // weights.shape[0]
    calls = pixels_of_calls(op, op.output.elements // out_c, by_row, 1)
    twos, ones = (sum(count * (each // 2) for count, each in calls), sum(count * (each % 2) for count, each in calls))
    quads, eights, blocks, rest = ceil_div(out_c, 4), ceil_div(out_c, 8), depth // 16, depth % 16 > 0
    return {
        "calls": sum(count for count, _ in calls),
        "twos": twos,
        "two_quads": twos * quads,
        "two_quad_blocks": twos * quads * blocks,
        "two_quad_iterations": twos * quads * ceil_div(blocks, 4),
        "two_quad_rests": twos * quads * rest,
        "ones": ones,
        "one_eights": ones * eights,
        "one_eight_blocks": ones * eights * blocks,
        "one_eight_iterations": ones * eights * ceil_div(blocks, 4),
        "one_eight_rests": ones * eights * rest,
    }


@memoized
def conv_2x4_counts(op: Op, by_row: bool) -> Counts:
    """Counts of a convolution that first copies the windows of two pixels, 16 bytes of a kernel row at a time. Windows
    with columns in the padding, and dilated ones, are copied in several pieces."""
    g, calls = geometry(op), count_calls(op, by_row)
    rows = count_window_rows(op)
    border = count_border_pixels(op) // g.out_h if g.dilation_w == 1 else g.out_w
    vectors, missing = ceil_div(g.kernel_w * g.in_c, 16), g.out_h * g.kernel_h - rows
    found = {
        **tile_2x4_counts(op, by_row),
        "call_rows": calls * g.kernel_h,
        "inner_rows": rows * (g.out_w - border),
        "inner_vectors": rows * (g.out_w - border) * vectors,
        "border_windows": g.out_h * border,
        "border_rows": rows * border,
        "border_taps": rows * border * g.kernel_w * (g.dilation_w > 1),
        "border_vectors": rows * border * vectors,
        "zero_rows": missing * g.out_w,
        "zero_vectors": missing * g.out_w * vectors,
    }
    return found | known_counts(found, ("twos", "inner_rows", "border_rows"))


@memoized
def depthwise_by_16_counts(op: Op, by_row: bool) -> Counts:
    """Counts of a depthwise convolution by 16 channels, the last eight alone if no more are left, and by pairs of taps,
    which are moved from the left neighbour's window if both windows are inside the image; an even number of pairs, if
    known, by vectors."""
    found, g = packed_depthwise_counts(op, by_row), geometry(op)
    pixels, pairs, channels = found["pixels"], found["pairs"], op.output.shape[3]
    sixteens, eight = (channels + 7) // 16, 0 < channels % 16 <= 8
    of_taps = ("calls", "pixels", "moved_pairs")
    return {
        **{
            name: count for name, count in found.items() if name in of_taps or name.startswith(("gathered_", "padded_"))
        },
        "sixteens": pixels * sixteens,
        "sixteen_pairs": pairs * sixteens,
        "last_eights": pixels * eight,
        "last_eight_pairs": pairs * eight,
        KNOWN + "moved_vectors": found["moved_pairs"] / 2 * ((g.kernel_h * g.kernel_w + 1) // 2 % 2 == 0),
    }
