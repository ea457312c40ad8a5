"""Counts of convolutions with Helium by two channels at a time (mve_four.py, mve_held.py): part of
`tinyfuse.kernels.counts.common`, which says what counts are."""

from __future__ import annotations

import itertools

from tinyfuse.ir import Op
from tinyfuse.kernels.counts.common import Counts, calls_of, kept, round_up
from tinyfuse.kernels.counts.layers import pixels_of_calls
from tinyfuse.kernels.counts.padding import columns_inside, whole_rows, window_rows
from tinyfuse.ops.core.convolution import geometry


@kept
def pointwise_4x2_counts(op: Op, by_row: bool, alone: int) -> Counts:
    """Of a 1x1 convolution by four pixels times two channels, sixteen inputs at once, four times as many in an
    iteration; so many pixels that are left at most one by one, by eight channels."""
    out_c, depth = op.operand(1).shape[::3]
    calls = pixels_of_calls(op, op.output.elements // out_c, by_row, 1)
    pairs, eights = out_c // 2, out_c // 8 * (out_c % 8 == 0)
    ones = sum(count * (each % 4) for count, each in calls if each % 4 <= alone and eights)
    fours = sum(count * (each // 4 + (each % 4 > (alone if eights else 0))) for count, each in calls)
    return {
        "calls": sum(count for count, _ in calls),
        "rest_calls": sum(count * (each % 4 > (alone if eights else 0)) for count, each in calls),
        "fours": fours,
        "four_pairs": fours * pairs,
        "four_pair_vectors": fours * pairs * (depth // 16),
        "four_pair_iterations": fours * pairs * round_up(depth // 16, 4),
        "four_pair_rests": fours * pairs * (depth % 16 > 0),
        "ones": ones,
        "one_eights": ones * eights,
        "one_eight_vectors": ones * eights * round_up(depth, 16),
    }


@kept
def conv_4x2_columns_counts(op: Op, by_row: bool, taps: int) -> Counts:
    """Of a convolution by four pixels times two channels, whose iterations are so many taps of a kernel row by sixteen
    channels. Of a list's places those that lie beside the image are padded."""
    g, calls = geometry(op), calls_of(op, by_row)
    row_iterations, blocks = round_up(g.kernel_w, taps), round_up(g.in_c, 16)
    beside = [_columns_beside(op, x, row_iterations * taps, taps) for x in range(0, g.out_w, 4)]
    columns = calls * sum(beside)
    return _four_counts(op, calls, g.kernel_h * row_iterations * blocks, [(True, count > 0) for count in beside]) | {
        "padded_iterations": calls * sum(count > 0 for count in beside) * row_iterations,
        "padded_columns": columns,
        "padded_rows": columns * g.kernel_h,
        "padded_blocks": columns * g.kernel_h * blocks,
    }


def _columns_beside(op: Op, x: int, taps: int, iteration: int) -> int:
    """Of the columns that a list has for pixel x and the three after it, where as many taps are an iteration: those
    that aren't in the image."""
    g = geometry(op)
    columns = [x - g.pad_left + tap + i for tap in range(0, taps, iteration) for i in range(iteration + 3)]
    return sum(not 0 <= column < g.in_w for column in columns)


@kept
def conv_4x2_chunks_counts(op: Op, by_row: bool, pieces: int) -> Counts:
    """Of a convolution by four pixels times two channels, whose iterations are so many pieces of kernel rows by sixteen
    terms; windows with columns in the padding are copied."""
    g, calls = geometry(op), calls_of(op, by_row)
    row_pieces = round_up(g.kernel_w * g.in_c, 16)
    columns = columns_inside(op)
    copied, rows = [count for count in columns if count < g.kernel_w], window_rows(op)
    fours = [columns[x : x + 4] for x in range(0, g.out_w, 4)]
    kinds = [(len(four) == 4, min(four[0], four[-1]) < g.kernel_w) for four in fours]
    return _four_counts(op, calls, round_up(g.kernel_h * row_pieces, pieces), kinds) | {
        "border_pixels": calls * len(copied),
        "border_pixel_rows": calls * len(copied) * g.kernel_h,
        "border_pixel_taps": calls * len(copied) * g.kernel_h * g.kernel_w,
        "border_pieces": calls * len(copied) * g.kernel_h * row_pieces,
        "border_rows": rows * len(copied),
        "border_taps": rows * sum(copied),
        "border_vectors": rows * sum(copied) * round_up(g.in_c, 16),
    }


@kept
def stationary_counts(op: Op, by_row: bool) -> Counts:
    """Of a convolution whose weights stay in registers: those of two channels, a kernel row and sixteen inputs in a
    pass over a row's pixels."""
    g, calls = geometry(op), calls_of(op, by_row)
    passes, pairs = g.kernel_h * round_up(g.in_c, 16), g.out_c // 2
    return {
        "calls": calls,
        "call_rows": calls * g.kernel_h,
        "stationary_blocks": calls * passes,
        "stationary_columns": calls * passes * (g.out_w + 2),
        "stationary_parts": calls * passes * (g.out_w + 2) * (g.in_c != 16),
        "stationary_pairs": calls * pairs,
        "stationary_passes": calls * pairs * passes,
        "stationary_pixels": calls * pairs * g.out_w,
        "stationary_steps": calls * pairs * passes * g.out_w,
        "stationary_fours": calls * pairs * round_up(g.out_w, 4),
    }


def _four_counts(op: Op, calls: int, iterations: int, fours: list[tuple[bool, bool]]) -> dict[str, float]:
    """What both count of their lists: of each four pixels of a row, whether all are there, and whether something of
    them is padded. Four that are there have the list of those before moved on, unless that is padded, or has a row in
    the padding."""
    g, whole = geometry(op), whole_rows(op)
    once = 1 + sum(padded or not there for (_, padded), (there, _) in itertools.pairwise(fours))
    listed = (g.out_h - whole) * len(fours) + whole * once
    cut_rows = window_rows(op) - whole * g.kernel_h
    return {
        "calls": calls,
        "call_rows": calls * g.kernel_h,
        "fours": calls * len(fours),
        "listed": listed,
        "listed_rows": listed * g.kernel_h,
        "listed_inner_rows": cut_rows * len(fours) + whole * g.kernel_h * once,
        "listed_iterations": listed * iterations,
        "moved_iterations": (calls * len(fours) - listed) * iterations,
        "four_pairs": calls * len(fours) * (g.out_c // 2),
        "four_pair_iterations": calls * len(fours) * (g.out_c // 2) * iterations,
    }
