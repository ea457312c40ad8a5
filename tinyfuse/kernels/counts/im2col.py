"""Counts of kernels that gather windows before they multiply: convolutions by im2col, depthwise ones by lists of taps.

Loop counts are explained in `tinyfuse.kernels.counts.common`.
"""

from __future__ import annotations

from tinyfuse.ir import Op
from tinyfuse.kernels.counts.common import (
    RINGED,
    Counts,
    ceil_div,
    count_calls,
    count_multiples,
    known_counts,
    memoized,
)
from tinyfuse.kernels.counts.depthwise import depthwise_counts
from tinyfuse.kernels.counts.layers import layer_counts, pixels_of_calls
from tinyfuse.kernels.counts.padding import (
    count_border_pixels,
    count_whole_rows,
    count_window_columns,
    count_window_rows,
    divides_by_ring,
    inner_taps,
)
from tinyfuse.ops.core.convolution import geometry


@memoized
def packed_counts(op: Op, by_row: bool) -> Counts:
    """Counts of a convolution by im2col of two or three pixels."""
    found = layer_counts(op, by_row)
    of_words = op.input.shape[3] % 4 == 0
    windows = (
        {**dict.fromkeys(_GATHERED_COUNTS, 0.0), **_word_window_counts(op)} if of_words else _gathered_counts(op, found)
    )
    call_rows = found["calls"] * op.operand(1).shape[1]
    return {
        **{name: found[name] for name in _PACKED_COUNTS},
        "call_rows": call_rows,
        RINGED + "call_rows": call_rows * divides_by_ring(op),
        "clamped_calls": found["calls"] * (found["clamped_outputs"] > 0),
        **_block_counts(op, by_row),
        **windows,
        **known_counts(found, _SPECIALIZED),
    }


#: counts of what compilers specialize if they know a row's length and padding
_SPECIALIZED = (
    "pixels", "tap_rows", "border_pixel_rows", "border_pixel_taps", "border_taps", "gathered_rows", "byte_run_rests",
)  # fmt: skip


@memoized
def pointwise_counts(op: Op, by_row: bool) -> Counts:
    """Counts of a 1x1 convolution by two or three pixels."""
    return {**layer_counts(op, by_row), **_block_counts(op, by_row)}


def _block_counts(op: Op, by_row: bool) -> Counts:
    """Counts of blocks of at most three pixels, of at most two, and of one. See `_block_counts_up_to`."""
    return _block_counts_up_to(op, by_row, 3) | _block_counts_up_to(op, by_row, 2) | _block_counts_up_to(op, by_row, 1)


def _block_counts_up_to(op: Op, by_row: bool, most: int) -> dict[str, float]:
    """Counts of blocks of at most `most` pixels, as tinyfuse_block_pixels divides them: blocks of each size, blocks x
    pairs of output channels, and blocks x pairs x words of four terms. The last of an odd number of channels is
    computed pixel by pixel ("odd_outputs")."""
    out_c = op.output.shape[-1]
    pixels, words = op.output.elements // out_c, ceil_div(op.operand(1).elements // out_c, 4)
    found: dict[str, float] = {"odd_outputs": pixels * (out_c % 2)}
    calls = pixels_of_calls(op, pixels, by_row, 1)
    sizes = [(count, _count_blocks(each, most)) for count, each in calls]
    for size, name in enumerate(("ones", "twos", "threes", "fours")[:most]):
        blocks = sum([count * of_sizes[size] for count, of_sizes in sizes])
        found[f"by_{most}_{name}"] = blocks
        found[f"by_{most}_{name}_pairs"] = blocks * (out_c // 2)
        found[f"by_{most}_{name}_pair_words"] = blocks * (out_c // 2) * words
    return found


@memoized
def _count_blocks(pixels: int, most: int) -> tuple[int, ...]:
    """Number of blocks of one pixel, two, three and four that make up `pixels`. If blocks may have more than two
    pixels, there is no block of one unless `pixels` is 1."""
    if most == 1:
        return (pixels,)
    if most == 2 or pixels == 1:
        return pixels % 2, pixels // 2, 0, 0
    if most == 4:
        rest = pixels % 4 if pixels % 4 != 1 else 5
        return 0, int(rest in (2, 5)), int(rest in (3, 5)), (pixels - rest) // 4
    twos = -pixels % 3
    return 0, twos, (pixels - 2 * twos) // 3


@memoized
def packed_4_pixel_counts(op: Op, by_row: bool) -> Counts:
    """Counts of a convolution by blocks of up to four pixels."""
    found = packed_counts(op, by_row)
    others = ("by_3_", "by_2_", "by_1_", "block", "two", "pair_words", "odd_pixel_words")
    rest = {name: count for name, count in found.items() if not name.startswith(others)}
    return rest | _block_counts_up_to(op, by_row, 4)


def _word_window_counts(op: Op) -> Counts:
    """Counts of windows whose pixels are whole words. Windows that are inside the input's columns are copied by rows,
    some of them padding; windows at its left and right borders are copied tap by tap."""
    g = geometry(op)
    rows = count_window_rows(op)
    columns = count_window_columns(op)
    border, tap = count_border_pixels(op) // g.out_h, g.in_c // 4
    plain = g.out_w - border
    zero_rows, border_taps = (g.out_h * g.kernel_h - rows) * plain, rows * (columns - plain * g.kernel_w)
    zero_taps = g.out_h * border * g.kernel_h * g.kernel_w - border_taps
    return {
        "word_windows": g.out_h * g.out_w,
        "word_rows": rows * plain,
        "row_words": rows * plain * g.kernel_w * tap,
        "zero_rows": zero_rows,
        "zero_words": (zero_rows * g.kernel_w + zero_taps) * tap,
        "border_windows": g.out_h * border,
        "border_rows": g.out_h * border * g.kernel_h,
        "inner_border_taps": border_taps,
        "border_words": border_taps * tap,
        "zero_taps": zero_taps,
    }


_GATHERED_COUNTS = ("gathered_words", "copied_rows", "copied_terms", "asked_windows")


def _gathered_counts(op: Op, found: Counts) -> Counts:
    """Counts of windows that are gathered because some of their taps are padding: words of the windows, rows and terms
    copied from the input, and windows that are tested for padding (all windows of a layer with padding)."""
    g, gathered = geometry(op), found["gathered_windows"]
    plain_rows = (found["pixels"] - gathered) * g.kernel_h
    rows = count_window_rows(op) * g.out_w
    words = gathered * ceil_div(op.operand(1).elements // g.out_c, 4)
    copied = gathered * g.kernel_h * g.kernel_w * g.in_c - found["border_terms"]
    asked = found["pixels"] * (g.pads_rows or g.pads_columns)
    return dict(zip(_GATHERED_COUNTS, (words, rows - plain_rows, copied, asked), strict=True))


#: counts of `layer_counts` that describe im2col and blocks of pixels. If a cost fit also saw the other counts, it could
#: mistake one for another, because it is made from few operators
_PACKED_COUNTS = (
    "calls", "pixels", "tap_rows", "border_taps", "terms", "border_terms", "border_pixel_rows", "border_pixel_taps",
    "byte_border_taps", "byte_terms", "byte_pixels", "byte_words", "byte_runs", "byte_run_words", "byte_run_rests",
    "long_byte_runs", "short_windows", "short_rows", "short_words", "short_rests", "long_windows", "long_rows",
    "long_words", "long_rests", "few_windows", "few_rows", "few_rests", "gathered_windows", "gathered_rows",
    "gathered_spans", "gathered_terms", "outputs",
    "signed_outputs", "clamped_outputs", "pair_words", "odd_words", "odd_pixel_words", "blocks", "block_pairs",
    "block_pair_words", "twos", "two_pairs", "two_pair_words",
)  # fmt: skip


@memoized
def packed_depthwise_counts(op: Op, by_row: bool) -> Counts:
    """Counts of a depthwise convolution by four channels and pairs of taps, which are moved from the left neighbour's
    window if both windows are inside the image."""
    g, found = geometry(op), depthwise_counts(op, by_row)
    moved = _count_moved_windows(op)
    gathered, taps = found["pixels"] - moved, g.kernel_h * g.kernel_w
    rows = count_window_rows(op) * g.out_w - moved * g.kernel_h
    return {
        **found,
        "moved_pairs": moved * ceil_div(taps, 2),
        "gathered_windows": gathered,
        "gathered_rows": gathered * g.kernel_h,
        "gathered_taps": gathered * taps,
        "gathered_inner_rows": rows,
        "gathered_inner_taps": rows * g.kernel_w,
        "gathered_image_taps": inner_taps(op) - moved * taps,
        "padded_calls": count_calls(op, by_row) * (g.pads_rows or g.pads_columns),
        "padded_bytes": count_calls(op, by_row) * g.in_c * (g.pads_rows or g.pads_columns),
    }


def _count_moved_windows(op: Op) -> int:
    """Number of windows inside the input whose left neighbours are inside, too, so that their columns are moved instead
    of gathered."""
    g = geometry(op)
    last = g.in_w + g.pad_left - (g.kernel_w - 1) * g.dilation_w
    return count_whole_rows(op) * count_multiples(g.out_w, g.stride_w, g.pad_left + g.stride_w, last)
