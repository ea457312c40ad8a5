"""Counts of Helium convolutions that compute tiles of four pixels x two channels, or keep weights in registers.

Loop counts are explained in `tinyfuse.kernels.counts.common`.
"""

from __future__ import annotations

import itertools

from tinyfuse.ir import Op
from tinyfuse.kernels.counts.common import Counts, ceil_div, count_calls, known_counts, memoized
from tinyfuse.kernels.counts.layers import pixels_of_calls
from tinyfuse.kernels.counts.padding import count_whole_rows, count_window_rows, inner_columns
from tinyfuse.ops.core.convolution import geometry


@memoized
def pointwise_4x2_counts(op: Op, by_row: bool, alone: int) -> Counts:
    """Counts of a 1x1 convolution by tiles of four pixels x two channels. A step reads 16 inputs, an iteration 64. Up
    to `alone` pixels that are left over are computed one by one, by eight channels."""
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
        "four_pair_iterations": fours * pairs * ceil_div(depth // 16, 4),
        "four_pair_rests": fours * pairs * (depth % 16 > 0),
        "ones": ones,
        "one_eights": ones * eights,
        "one_eight_vectors": ones * eights * ceil_div(depth, 16),
    }


@memoized
def conv_4x2_columns_counts(op: Op, by_row: bool, taps: int) -> Counts:
    """Counts of a convolution by tiles of four pixels x two channels. An iteration has `taps` taps of a kernel row and
    16 channels. It reads through a list of columns; list entries outside the image point to padding."""
    g, calls = geometry(op), count_calls(op, by_row)
    row_iterations, blocks = ceil_div(g.kernel_w, taps), ceil_div(g.in_c, 16)
    beside = [_columns_beside(op, x, row_iterations * taps, taps) for x in range(0, g.out_w, 4)]
    columns = calls * sum(beside)
    found = _tile_list_counts(
        op, calls, g.kernel_h * row_iterations * blocks, [(True, count > 0) for count in beside]
    ) | {
        "padded_iterations": calls * sum(count > 0 for count in beside) * row_iterations,
        "padded_columns": columns,
        "padded_rows": columns * g.kernel_h,
        "padded_blocks": columns * g.kernel_h * blocks,
    }
    return found | known_counts(found, ("fours",))


def _columns_beside(op: Op, x: int, taps: int, iteration: int) -> int:
    """Number of columns outside the image in the list for pixel x and the three after it. The list has `taps` taps,
    `iteration` of them in an iteration."""
    g = geometry(op)
    columns = [x - g.pad_left + tap + i for tap in range(0, taps, iteration) for i in range(iteration + 3)]
    return sum(not 0 <= column < g.in_w for column in columns)


@memoized
def conv_4x2_chunks_counts(op: Op, by_row: bool, pieces: int) -> Counts:
    """Counts of a convolution by tiles of four pixels x two channels. An iteration has `pieces` pieces of kernel rows,
    of 16 terms each. Windows with columns in the padding are copied."""
    g, calls = geometry(op), count_calls(op, by_row)
    row_pieces = ceil_div(g.kernel_w * g.in_c, 16)
    columns = inner_columns(op)
    copied, rows = [count for count in columns if count < g.kernel_w], count_window_rows(op)
    fours = [columns[x : x + 4] for x in range(0, g.out_w, 4)]
    kinds = [(len(four) == 4, min(four[0], four[-1]) < g.kernel_w) for four in fours]
    found = _tile_list_counts(op, calls, ceil_div(g.kernel_h * row_pieces, pieces), kinds) | {
        "border_pixels": calls * len(copied),
        "border_pixel_rows": calls * len(copied) * g.kernel_h,
        "border_pixel_taps": calls * len(copied) * g.kernel_h * g.kernel_w,
        "border_pieces": calls * len(copied) * g.kernel_h * row_pieces,
        "border_rows": rows * len(copied),
        "border_taps": rows * sum(copied),
        "border_vectors": rows * sum(copied) * ceil_div(g.in_c, 16),
    }
    return found | known_counts(found, ("fours", "border_pixels"))


@memoized
def weight_stationary_counts(op: Op, by_row: bool) -> Counts:
    """Counts of a convolution whose weights stay in registers: each pass over a row's pixels uses the weights of two
    channels, one kernel row and 16 inputs."""
    g, calls = geometry(op), count_calls(op, by_row)
    passes, pairs = g.kernel_h * ceil_div(g.in_c, 16), g.out_c // 2
    found = {
        "calls": calls,
        "call_rows": calls * g.kernel_h,
        "stationary_blocks": calls * passes,
        "stationary_columns": calls * passes * (g.out_w + 2),
        "stationary_parts": calls * passes * (g.out_w + 2) * (g.in_c != 16),
        "stationary_pairs": calls * pairs,
        "stationary_passes": calls * pairs * passes,
        "stationary_pixels": calls * pairs * g.out_w,
        "stationary_steps": calls * pairs * passes * g.out_w,
        "stationary_fours": calls * pairs * ceil_div(g.out_w, 4),
    }
    return found | known_counts(found, ("stationary_blocks",))


def _tile_list_counts(op: Op, calls: int, iterations: int, tiles: list[tuple[bool, bool]]) -> dict[str, float]:
    """Counts of lists that the kernels by four pixels share. `tiles` has, for each tile of a row, whether all four
    pixels exist, and whether any of them reads padding. If all four exist, the list of the tile before is advanced,
    unless that tile, or a row of the window, is padded."""
    g, whole = geometry(op), count_whole_rows(op)
    once = 1 + sum(padded or not there for (_, padded), (there, _) in itertools.pairwise(tiles))
    listed = (g.out_h - whole) * len(tiles) + whole * once
    cut_rows = count_window_rows(op) - whole * g.kernel_h
    return {
        "calls": calls,
        "call_rows": calls * g.kernel_h,
        "fours": calls * len(tiles),
        "listed": listed,
        "listed_rows": listed * g.kernel_h,
        "listed_inner_rows": cut_rows * len(tiles) + whole * g.kernel_h * once,
        "listed_iterations": listed * iterations,
        "moved_iterations": (calls * len(tiles) - listed) * iterations,
        "four_pairs": calls * len(tiles) * (g.out_c // 2),
        "four_pair_iterations": calls * len(tiles) * (g.out_c // 2) * iterations,
    }
