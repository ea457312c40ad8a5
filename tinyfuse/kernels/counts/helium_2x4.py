"""Counts of layers with Helium by two pixels and four channels, and of depthwise ones by sixteen channels (mve.py):
part of `tinyfuse.kernels.counts.common`, which says what counts are."""

from __future__ import annotations

from tinyfuse.ir import Op
from tinyfuse.kernels.counts.common import Counts, calls_of, kept, round_up
from tinyfuse.kernels.counts.im2col import packed_depthwise_counts
from tinyfuse.kernels.counts.layers import pixels_of_calls
from tinyfuse.kernels.counts.padding import pixels_at_borders, window_rows
from tinyfuse.ops.core.convolution import geometry


@kept
def one_vector_counts(op: Op, by_row: bool) -> Counts:
    """Counts of a fully connected layer of one batch: sixteen inputs at once for eight outputs, as far as there are
    fours of outputs, then for each of the last ones (singles)."""
    out_c, depth = op.operand(1).shape
    eights, singles, blocks, rest = round_up(out_c // 4, 2), out_c % 4, depth // 16, depth % 16 > 0
    return {
        "calls": calls_of(op, by_row),
        "one_eights": eights,
        "one_eight_blocks": eights * blocks,
        "one_eight_rests": eights * rest,
        "singles": singles,
        "single_vectors": singles * round_up(depth, 16),
    }


@kept
def two_pixels_counts(op: Op, by_row: bool) -> Counts:
    """Of a layer whose calls take two pixels at a time and the last of an odd number alone: sixteen inputs at once,
    four times as many in an iteration, for four channels of two pixels or eight of one."""
    weights = op.operand(1)
    out_c, depth = weights.shape[0], weights.elements // weights.shape[0]
    calls = pixels_of_calls(op, op.output.elements // out_c, by_row, 1)
    twos, ones = (sum(count * (each // 2) for count, each in calls), sum(count * (each % 2) for count, each in calls))
    quads, eights, blocks, rest = round_up(out_c, 4), round_up(out_c, 8), depth // 16, depth % 16 > 0
    return {
        "calls": sum(count for count, _ in calls),
        "twos": twos,
        "two_quads": twos * quads,
        "two_quad_blocks": twos * quads * blocks,
        "two_quad_iterations": twos * quads * round_up(blocks, 4),
        "two_quad_rests": twos * quads * rest,
        "ones": ones,
        "one_eights": ones * eights,
        "one_eight_blocks": ones * eights * blocks,
        "one_eight_iterations": ones * eights * round_up(blocks, 4),
        "one_eight_rests": ones * eights * rest,
    }


@kept
def two_windows_counts(op: Op, by_row: bool) -> Counts:
    """The same of a convolution that copies the windows of two pixels first, sixteen bytes of a kernel row at once; of
    those with columns in the padding, and of dilated ones, in several pieces."""
    g, calls = geometry(op), calls_of(op, by_row)
    rows = window_rows(op)
    border = pixels_at_borders(op) // g.out_h if g.dilation_w == 1 else g.out_w
    vectors, missing = round_up(g.kernel_w * g.in_c, 16), g.out_h * g.kernel_h - rows
    return {
        **two_pixels_counts(op, by_row),
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


@kept
@kept
def sixteen_channels_counts(op: Op, by_row: bool) -> Counts:
    """Of a depthwise convolution by sixteen channels, of the last by eight where no more are left, and pairs of taps,
    which move where both windows are inside."""
    found = packed_depthwise_counts(op, by_row)
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
    }
