"""Loop counts of convolutions and fully connected layers.

Counts are explained in `tinyfuse.kernels.counts.common`. Here, "words" are groups of four input terms, "pairs" and
"quads" of two and four output channels. A "block" is the group of pixels that one pass over the weights serves (three
in portable code, two with Helium).
"""

from __future__ import annotations

from tinyfuse.ir import Op
from tinyfuse.kernels.counts.common import (
    Counts,
    ceil_div,
    count_calls,
    count_clamped_outputs,
    count_narrowed_outputs,
    count_signed_outputs,
    memoized,
)
from tinyfuse.kernels.counts.padding import count_border_pixels, count_whole_rows, count_window_rows, inner_taps
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.core.convolution import geometry


def pixels_of_calls(op: Op, pixels: int, by_row: bool, at_once: int) -> list[tuple[int, int]]:
    """List of (number of calls, pixels of each): a single call, or (`by_row`) calls for `at_once` rows each and one for
    the rest."""
    if not by_row:
        return [(1, pixels)]
    rows = op.output.shape[1]
    full, left = divmod(rows, at_once)
    calls = (full, at_once * pixels // rows), (int(left > 0), left * pixels // rows)
    return [(count, each) for count, each in calls if count]


@memoized
def layer_counts(op: Op, by_row: bool, at_once: int = 1) -> Counts:
    """Counts of a convolution or fully connected layer, whose outputs are sums over input channels; `at_once` rows a
    call."""
    weights = op.operand(1)
    out_c, depth = weights.shape[0], weights.elements // weights.shape[0]
    calls = pixels_of_calls(op, op.output.elements // out_c, by_row, at_once)
    blocks, twos = (sum([count * ceil_div(each, of) for count, each in calls]) for of in (3, 2))
    fours, rests = (
        sum([count * (each // 4) for count, each in calls]),
        sum([count * (each % 4) for count, each in calls]),
    )
    pairs, quads, words, vectors = ceil_div(out_c, 2), ceil_div(out_c, 4), ceil_div(depth, 4), ceil_div(depth, 16)
    return {
        **_layer_counts(op),
        "calls": sum([count for count, _ in calls]),
        "blocks": blocks,
        "block_pairs": blocks * pairs,
        "block_pair_words": blocks * pairs * words,
        "odd_pixel_words": sum([count * (each % 2) for count, each in calls]) * pairs * words,
        "rest_pixels": rests,
        "rest_outputs": rests * out_c,
        "rest_vectors": rests * out_c * vectors,
        "four_outputs": fours * out_c,
        "four_vectors": fours * out_c * vectors,
        "four_pair_words": fours * pairs * words,
        "twos": twos,
        "two_pairs": twos * pairs,
        "two_pair_words": twos * pairs * words,
        "two_quads": twos * quads,
        "two_quad_vectors": twos * quads * (depth // 16),
        "two_quad_rests": twos * quads * (depth % 16 > 0),
    }


@memoized
def _layer_counts(op: Op) -> Counts:
    """Counts that do not depend on the number of calls."""
    convolution = FAMILIES[op.kind].convolution
    weights = op.operand(1)
    out_c, depth = weights.shape[0], weights.elements // weights.shape[0]
    pixels, in_c = op.output.elements // out_c, op.input.shape[-1]
    kernel_h, kernel_w = weights.shape[1:3] if convolution else (1, 1)
    taps, tap_rows = pixels * kernel_h * kernel_w, pixels * kernel_h
    inner = inner_taps(op) if convolution else pixels
    run = kernel_w * in_c  # terms that are contiguous in the input
    pairs, quads, words = ceil_div(out_c, 2), ceil_div(out_c, 4), ceil_div(depth, 4)
    terms = pixels * depth
    border_pixels = count_border_pixels(op) if convolution else 0
    odd_c, inner_runs = in_c % 4 > 0, (pixels - border_pixels) * kernel_h
    sorts = ("short", odd_c and run <= 16), ("long", odd_c and run > 16)  # kernel rows, each sort with its own C loop
    few = run < 4  # a row is shorter than a word, so its inputs are collected first
    gathered, spans = (_gathered_windows(op), _spans(op)) if convolution and odd_c else (0, 0)
    return {
        "pixels": pixels,
        "tap_rows": tap_rows,
        "taps": taps,
        "border_taps": taps - inner,
        "terms": terms,
        "border_terms": (taps - inner) * in_c,
        "border_pixel_rows": border_pixels * kernel_h,
        "border_pixel_taps": border_pixels * kernel_h * kernel_w,
        "byte_border_taps": border_pixels * kernel_h * kernel_w * odd_c,
        "byte_terms": terms * odd_c,
        "byte_pixels": pixels * odd_c,
        "byte_words": pixels * words * odd_c,
        "byte_runs": inner_runs * odd_c,
        "byte_run_words": inner_runs * (run // 4) * odd_c,
        "byte_run_rests": inner_runs * (run % 4) * odd_c,
        "long_byte_runs": inner_runs * odd_c * (run > 16),
        **{f"{sort}_windows": pixels * has for sort, has in sorts},
        **{f"{sort}_rows": pixels * kernel_h * has for sort, has in sorts},
        **{f"{sort}_words": pixels * kernel_h * (run // 4) * has for sort, has in sorts},
        **{f"{sort}_rests": pixels * kernel_h * (run % 4) * has for sort, has in sorts},
        "few_windows": pixels * few,
        "few_rows": pixels * kernel_h * few,
        "few_rests": pixels * kernel_h * run * few,
        "gathered_windows": gathered,
        "gathered_rows": gathered * kernel_h,
        "gathered_spans": gathered * kernel_h * spans,
        "gathered_terms": gathered * kernel_h * run,
        "outputs": pixels * out_c,
        "signed_outputs": count_signed_outputs(op),
        "clamped_outputs": count_clamped_outputs(op),
        "narrowed_outputs": count_narrowed_outputs(op),
        "macs": terms * out_c,
        "inner_taps": inner * out_c,
        "inner_macs": inner * weights.shape[-1] * out_c,
        "pair_words": pixels * pairs * words,
        "odd_words": pixels * (out_c % 2) * words,
        "quads": pixels * quads,
        "quad_words": pixels * quads * words,
    }


@memoized
def int16_2x4_counts(op: Op, by_row: bool) -> Counts:
    """Counts of an int16 layer with Helium. A block has eight inputs, an iteration four blocks, for four channels of
    two pixels. If a call has an odd number of pixels, the last is computed alone."""
    weights, calls = op.operand(1), count_calls(op, by_row)
    quads, depth = ceil_div(weights.shape[0], 4), weights.elements // weights.shape[0]
    a_call = op.output.elements // weights.shape[0] // calls
    twos, odd = calls * (a_call // 2), calls * (a_call % 2)
    blocks, iterations = divmod(depth // 8, 4)[::-1]
    return {
        "calls": calls,
        "twos": twos,
        "two_quads": twos * quads,
        "two_quad_iterations": twos * quads * iterations,
        "two_quad_blocks": twos * quads * blocks,
        "two_quad_rests": twos * quads * (depth % 8 > 0),
        "odd_pixels": odd,
        "odd_quads": odd * quads,
        "odd_quad_blocks": odd * quads * (depth // 8),
        "odd_quad_rests": odd * quads * (depth % 8 > 0),
    }


#: counts of work on pixels, which is repeated for each strip of channels whose weights are decoded together
_STRIP_COUNTS = frozenset(
    "pixels tap_rows taps border_taps terms border_terms border_pixel_rows border_pixel_taps byte_border_taps "
    "byte_terms byte_pixels byte_words byte_runs byte_run_words byte_run_rests long_byte_runs blocks twos ones "
    "by_3_threes by_3_twos by_3_ones by_2_twos by_2_ones word_windows word_rows row_words zero_rows zero_words "
    "border_windows border_rows inner_border_taps border_words zero_taps gathered_windows gathered_words "
    "inner_rows inner_vectors border_vectors zero_vectors".split()
)


#: counts that palettized weights add to a kernel, for each call and for strips of channels
PALETTE_COUNTS = ("looked_up_groups", "looked_up_words", "strips")
PALETTIZED_COUNTS = (*PALETTE_COUNTS, "strip_pixels")

#: counts that a fused activation LUT adds to a kernel
LUT_COUNTS = ("table_outputs", "table_pairs", "signed_rounding_outputs")


def palettized_counts(plain: Counts, op: Op, by_row: bool, strip: int, rows: int = 1) -> Counts:
    """Counts of a layer with palettized weights, which each call (of `rows` rows) decodes for strips of `strip`
    channels. `plain`: counts with packed weights."""
    weights, calls = op.operand(1), ceil_div(count_calls(op, by_row), rows)
    out_c = weights.shape[0]
    strips = ceil_div(out_c, strip)
    return {
        **{name: strips * count if name in _STRIP_COUNTS else count for name, count in plain.items()},
        "looked_up_groups": calls * out_c,
        "looked_up_words": calls * out_c * ceil_div(weights.elements // out_c, 4),
        "strips": calls * strips,
        "strip_pixels": op.output.elements // out_c * strips * (strips > 1),
    }


@memoized
def conv_1x8_counts(op: Op, by_row: bool) -> Counts:
    """Counts of a convolution by eight output channels. The inner loop runs once for each kernel row inside the image;
    for a row that is partly outside, once for each tap."""
    g = geometry(op)
    eights = g.groups * ceil_div(g.out_c // g.groups, 8)
    rows = count_window_rows(op)
    one_piece = g.groups == 1 and g.dilation_w == 1
    runs = rows * (g.out_w - count_border_pixels(op) // g.out_h) if one_piece else 0
    return {
        "calls": count_calls(op, by_row),
        "pixels": g.out_h * g.out_w,
        "outputs": op.output.elements,
        "eights": g.out_h * g.out_w * eights,
        "eight_rows": g.out_h * g.out_w * g.kernel_h * eights,
        "eight_runs": runs * eights,
        "eight_taps": (inner_taps(op) - runs * g.kernel_w) * eights,
        "eight_asked": (rows * g.out_w - runs) * g.kernel_w * eights,
        "eight_terms": inner_taps(op) * (g.in_c // g.groups) * eights,
    }


@memoized
def dense_counts(op: Op, by_row: bool) -> Counts:
    """Counts of a fully connected layer that computes four outputs at a time ("quads"), and the remaining ones alone
    ("singles")."""
    found, out_c = layer_counts(op, by_row), op.operand(1).shape[0]
    quads, singles = (found["pixels"] * each for each in divmod(out_c, 4))
    words = ceil_div(op.operand(1).elements // out_c, 4)
    names = ("calls", "pixels", "terms", "byte_pixels", "clamped_outputs", "macs")
    return {
        **{name: found[name] for name in names},
        "quads": quads,
        "quad_words": quads * words,
        "singles": singles,
        "single_words": singles * words,
    }


@memoized
def dense_eight_counts(op: Op, by_row: bool) -> Counts:
    """Counts of a float32 fully connected layer that computes eight outputs at a time; the remaining ones together
    ("rests", "rest_outputs", "rest_terms"). "looped_eights": groups of eight that a loop computes; compilers leave the
    loop out if there is only one."""
    found, (out_c, depth) = layer_counts(op, by_row), op.operand(1).shape
    eights = found["pixels"] * ceil_div(out_c, 8)
    rests = found["pixels"] * (out_c % 8 > 0)
    return {
        **{name: found[name] for name in ("calls", "outputs", "macs", "pixels")},
        "eights": eights,
        "eight_terms": eights * depth,
        "rests": rests,
        "rest_outputs": found["pixels"] * (out_c % 8),
        "rest_terms": rests * depth,
        "looped_eights": eights if out_c > 8 else 0,
    }


@memoized
def winograd_counts(op: Op, by_row: bool) -> Counts:
    """Counts of a 3x3 convolution by tiles of 4x4 outputs; a block is two tiles."""
    out_h, out_w, out_c = op.output.shape[1:]
    words = op.input.shape[3] // 4
    calls = ceil_div(out_h, 4)
    blocks, pairs = calls * ceil_div(out_w, 8), out_c // 2
    # tiles end with the row, so those of a block may share columns of inputs
    last = out_w - 4
    columns = sum(min(x + 4, last) - min(x, last) + 6 for x in range(0, out_w, 8))
    return {
        **_block_counts(calls, blocks, pairs, words),
        "block_columns": calls * columns,
        "block_column_words": calls * columns * words,
        "clamped_outputs": count_clamped_outputs(op),
    }


def winograd_1d_counts(op: Op, block: int) -> Counts:
    """Counts of a 1x3 convolution by blocks of `block` outputs of a row."""
    out_h, out_w, out_c = op.output.shape[1:]
    found = _block_counts(out_h, out_h * ceil_div(out_w, block), out_c // 2, op.input.shape[3] // 4)
    return {**found, "clamped_outputs": count_clamped_outputs(op)}


def _block_counts(calls: int, blocks: int, pairs: int, words: int) -> Counts:
    """Counts of Winograd blocks. `pairs`: pairs of output channels; `words`: input channels / 4."""
    # words per iteration of the loop that sums over input channels; four words in all need no loop
    iteration = 4 if words % 4 == 0 else 2 if words % 2 == 0 else 1
    return {
        "calls": calls,
        "blocks": blocks,
        "block_words": blocks * words,
        "block_pairs": blocks * pairs,
        "block_pair_words": blocks * pairs * words,
        "block_pair_iterations": blocks * pairs * (words // iteration) * (words != 4),
    }


@memoized
def few_channels_counts(op: Op, by_row: bool, block: int) -> Counts:
    """Counts of a 1x1 convolution with few input channels, which takes one output channel after the other through
    blocks of `block` pixels."""
    calls, (out_h, out_w, out_c) = count_calls(op, by_row), op.output.shape[1:]
    pixels = out_h * out_w
    blocks = calls * ceil_div(pixels // calls, block)
    words = pixels * op.input.shape[3] // 4
    return {
        "calls": calls,
        "words": words,
        "blocks": blocks,
        "block_channels": blocks * out_c,
        "outputs": pixels * out_c,
        "output_words": words * out_c,
        "clamped_outputs": count_clamped_outputs(op),
    }


@memoized
def _gathered_windows(op: Op) -> int:
    """Number of output pixels whose windows have rows or columns in the padding, or dilated columns."""
    g = geometry(op)
    if g.dilation_w > 1:
        return g.out_h * g.out_w
    return g.out_h * g.out_w - count_whole_rows(op) * (g.out_w - count_border_pixels(op) // g.out_h)


def _spans(op: Op) -> int:
    """Number of contiguous pieces of a kernel row in the input."""
    g = geometry(op)
    return 1 if g.dilation_w == 1 else g.kernel_w
