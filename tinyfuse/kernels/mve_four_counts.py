"""Counts of convolutions with Helium by two channels at a time (mve_four.py, mve_held.py): part of
`tinyfuse.kernels.counts`, which says what counts are."""

from __future__ import annotations

from tinyfuse.ir import Op
from tinyfuse.kernels.convolution_counts import pixels_at_borders, pixels_of_calls
from tinyfuse.kernels.counts import Counts, calls_of, inside, kept, multiples, round_up
from tinyfuse.ops.convolution import geometry


@kept
def fours_counts(op: Op, by_row: bool, alone: int) -> Counts:
    """Of a 1x1 convolution by four pixels times two channels, sixteen inputs at once, four times as many in a turn; so
    many pixels that are left at most one by one, by eight channels."""
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
        "four_pair_turns": fours * pairs * round_up(depth // 16, 4),
        "four_pair_rests": fours * pairs * (depth % 16 > 0),
        "ones": ones,
        "one_eights": ones * eights,
        "one_eight_vectors": ones * eights * round_up(depth, 16),
    }


@kept
def four_columns_counts(op: Op, by_row: bool, taps: int) -> Counts:
    """Of a convolution by four pixels times two channels, whose turns are so many taps of a kernel row by sixteen
    channels. Of a list's places those that lie beside the image are padded."""
    g, calls = geometry(op), calls_of(op, by_row)
    row_turns, blocks = round_up(g.kernel_w, taps), round_up(g.in_c, 16)
    beside = [_columns_beside(op, x, row_turns * taps, taps) for x in range(0, g.out_w, 4)]
    padded, columns = sum(count > 0 for count in beside), sum(beside)
    whole, fours = _rows_inside(op), len(beside)
    # the list after a padded one isn't that one moved on, nor is any where a row of the window is in the padding
    once = 1 + sum(count > 0 for count in beside[:-1])
    window_rows = _window_rows(op)
    return _four_counts(op, calls, g.kernel_h * row_turns * blocks, (g.out_h - whole) * fours + whole * once) | {
        "call_rows": calls * g.kernel_h,
        "listed_inner_rows": (window_rows - whole * g.kernel_h) * fours + whole * g.kernel_h * once,
        "padded_turns": calls * padded * row_turns,
        "padded_columns": calls * columns,
        "padded_rows": calls * columns * g.kernel_h,
        "padded_blocks": calls * columns * g.kernel_h * blocks,
    }


def _window_rows(op: Op) -> int:
    """Of the windows of all rows of the output, the rows that are in the image."""
    g = geometry(op)
    return inside(g.out_h, g.in_h, g.kernel_h, g.stride_h, g.dilation_h, g.pad_top)


def _columns_beside(op: Op, x: int, taps: int, turn: int) -> int:
    """Of the columns that a list has for pixel x and the three after it, where as many taps are a turn: those that
    aren't in the image."""
    g = geometry(op)
    first = x - g.pad_left
    columns = [first + tap + i for tap in range(0, taps, turn) for i in range(turn + 3)]
    return sum(not 0 <= column < g.in_w for column in columns)


def _rows_inside(op: Op) -> int:
    """Rows of the output whose windows have no row in the padding."""
    g = geometry(op)
    return multiples(g.out_h, g.stride_h, g.pad_top, g.in_h + g.pad_top - (g.kernel_h - 1) * g.dilation_h)


@kept
def four_pieces_counts(op: Op, by_row: bool, pieces: int) -> Counts:
    """Of a convolution by four pixels times two channels, whose turns are so many pieces of kernel rows by sixteen
    terms; windows in the padding are copied."""
    g, calls = geometry(op), calls_of(op, by_row)
    turns, border = round_up(g.kernel_h * round_up(g.kernel_w * g.in_c, 16), pieces), pixels_at_borders(op)
    # of four pixels those that have no columns in the padding are the ones before them moved on
    whole = sum(_four_inside(op, x) for x in range(0, g.out_w, 4))
    listed = g.out_h * round_up(g.out_w, 4) - _rows_inside(op) * max(0, whole - 1)
    return _four_counts(op, calls, turns, listed) | {
        "call_rows": calls * g.kernel_h,
        "border_pixel_rows": border * g.kernel_h,
        "border_pixel_taps": border * g.kernel_h * g.kernel_w,
    }


@kept
def held_counts(op: Op, by_row: bool) -> Counts:
    """Of a convolution whose weights stay in registers: those of two channels, a kernel row and sixteen inputs in a
    pass over a row's pixels."""
    g, calls = geometry(op), calls_of(op, by_row)
    passes, pairs = g.kernel_h * round_up(g.in_c, 16), g.out_c // 2
    return {
        "calls": calls,
        "call_rows": calls * g.kernel_h,
        "held_blocks": calls * passes,
        "held_columns": calls * passes * (g.out_w + 2),
        "held_parts": calls * passes * (g.out_w + 2) * (g.in_c != 16),
        "held_pairs": calls * pairs,
        "held_passes": calls * pairs * passes,
        "held_pixels": calls * pairs * g.out_w,
        "held_steps": calls * pairs * passes * g.out_w,
        "held_fours": calls * pairs * round_up(g.out_w, 4),
    }


def _four_counts(op: Op, calls: int, turns: int, listed: int) -> dict[str, float]:
    """What both count of their lists: so many of four pixels aren't the ones before moved on."""
    g = geometry(op)
    fours = round_up(g.out_w, 4)
    return {
        "calls": calls,
        "fours": calls * fours,
        "listed": listed,
        "listed_rows": listed * g.kernel_h,
        "listed_turns": listed * turns,
        "moved_turns": (calls * fours - listed) * turns,
        "four_pairs": calls * fours * (g.out_c // 2),
        "four_pair_turns": calls * fours * (g.out_c // 2) * turns,
    }


def _four_inside(op: Op, x: int) -> bool:
    """Whether the windows of a row's pixel x and of the three after it have no columns in the padding."""
    g = geometry(op)
    first, last = x * g.stride_w - g.pad_left, (x + 3) * g.stride_w - g.pad_left
    return x + 3 < g.out_w and first >= 0 and last + g.kernel_w <= g.in_w
