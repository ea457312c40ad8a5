"""Counts of convolutions and fully connected layers: part of `tinyfuse.kernels.counts.common`, which says what counts
are.

"words" are four input terms, "pairs" and "quads" two and four output channels, a "block" is the pixels that one pass
over the weights serves (three in portable code, two with Helium).
"""

from __future__ import annotations

from tinyfuse.ir import Op
from tinyfuse.kernels.counts.common import Counts, calls_of, clamped, kept, narrowed, round_up, signed
from tinyfuse.kernels.counts.padding import inner_taps, pixels_at_borders, whole_rows, window_rows
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.core.convolution import geometry


def pixels_of_calls(op: Op, pixels: int, by_row: bool, at_once: int) -> list[tuple[int, int]]:
    """(calls, pixels of each): of one call, or of those for so many rows and the last one for what is left."""
    if not by_row:
        return [(1, pixels)]
    rows = op.output.shape[1]
    full, left = divmod(rows, at_once)
    calls = (full, at_once * pixels // rows), (int(left > 0), left * pixels // rows)
    return [(count, each) for count, each in calls if count]


@kept
def layer_counts(op: Op, by_row: bool, at_once: int = 1) -> Counts:
    """Of a layer whose output channels sum over channels: a convolution, or a fully connected layer; so many rows a
    call."""
    weights = op.operand(1)
    out_c, depth = weights.shape[0], weights.elements // weights.shape[0]
    calls = pixels_of_calls(op, op.output.elements // out_c, by_row, at_once)
    blocks, twos = (sum([count * round_up(each, of) for count, each in calls]) for of in (3, 2))
    fours, rests = (
        sum([count * (each // 4) for count, each in calls]),
        sum([count * (each % 4) for count, each in calls]),
    )
    pairs, quads, words, vectors = round_up(out_c, 2), round_up(out_c, 4), round_up(depth, 4), round_up(depth, 16)
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


@kept
def _layer_counts(op: Op) -> Counts:
    """Those of them that are the same however many calls there are."""
    convolution = FAMILIES[op.kind].convolution
    weights = op.operand(1)
    out_c, depth = weights.shape[0], weights.elements // weights.shape[0]
    pixels, in_c = op.output.elements // out_c, op.input.shape[-1]
    kernel_h, kernel_w = weights.shape[1:3] if convolution else (1, 1)
    taps, tap_rows = pixels * kernel_h * kernel_w, pixels * kernel_h
    inner = inner_taps(op) if convolution else pixels
    run = kernel_w * in_c  # terms that are neighbours in the input
    pairs, quads, words = round_up(out_c, 2), round_up(out_c, 4), round_up(depth, 4)
    terms = pixels * depth
    border_pixels = pixels_at_borders(op) if convolution else 0
    odd_c, inner_runs = in_c % 4 > 0, (pixels - border_pixels) * kernel_h
    sorts = ("short", odd_c and run <= 16), ("long", odd_c and run > 16)  # of rows, which have code of their own
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
        "gathered_windows": gathered,
        "gathered_rows": gathered * kernel_h,
        "gathered_spans": gathered * kernel_h * spans,
        "gathered_terms": gathered * kernel_h * run,
        "outputs": pixels * out_c,
        "signed_outputs": signed(op),
        "clamped_outputs": clamped(op),
        "narrowed_outputs": narrowed(op),
        "macs": terms * out_c,
        "inner_taps": inner * out_c,
        "inner_macs": inner * weights.shape[-1] * out_c,
        "pair_words": pixels * pairs * words,
        "odd_words": pixels * (out_c % 2) * words,
        "quads": pixels * quads,
        "quad_words": pixels * quads * words,
    }


@kept
def eighth_counts(op: Op, by_row: bool) -> Counts:
    """Of a layer of int16 for Helium: eight inputs at a time, four such blocks in an iteration, of four channels of two
    pixels; where a call has an odd count of pixels, of the last one alone."""
    weights, calls = op.operand(1), calls_of(op, by_row)
    quads, depth = round_up(weights.shape[0], 4), weights.elements // weights.shape[0]
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


#: of the counts of layers, what is done again for each strip of channels that are looked up together: all of pixels
_OF_STRIPS = frozenset(
    "pixels tap_rows taps border_taps terms border_terms border_pixel_rows border_pixel_taps byte_border_taps "
    "byte_terms byte_pixels byte_words byte_runs byte_run_words byte_run_rests long_byte_runs blocks twos ones "
    "by_3_threes by_3_twos by_3_ones by_2_twos by_2_ones word_windows word_rows row_words zero_rows zero_words "
    "border_windows border_rows inner_border_taps border_words zero_taps gathered_windows gathered_words "
    "inner_rows inner_vectors border_vectors zero_vectors".split()
)


#: what looking weights up adds to the counts of a kernel: of each call, and of strips
OF_LOOKING_UP = ("looked_up_groups", "looked_up_words", "looked_up_vectors", "strips")
LOOKED_UP = (*OF_LOOKING_UP, "strip_pixels")

#: what tables of outputs add to the counts of a kernel
OF_TABLES = ("table_outputs", "table_pairs", "signed_rounding_outputs")


def looked_up_counts(plain: Counts, op: Op, by_row: bool, strip: int, step: int = 4, rows: int = 1) -> Counts:
    """Of a layer whose weights each call, of so many rows, looks up, `step` at once, `strip` channels together;
    `plain`: those of the layer with packed weights."""
    weights, calls = op.operand(1), round_up(calls_of(op, by_row), rows)
    out_c = weights.shape[0]
    strips = round_up(out_c, strip)
    return {
        **{name: strips * count if name in _OF_STRIPS else count for name, count in plain.items()},
        **lookups(calls * out_c, weights.elements // out_c, step),
        "strips": calls * strips,
        "strip_pixels": op.output.elements // out_c * strips * (strips > 1),
    }


def lookups(groups: int, group_weights: int, step: int) -> Counts:
    """Of so many groups of weights that a layer looks up, `step` at once."""
    return {
        "looked_up_groups": groups,
        "looked_up_words": groups * round_up(group_weights, 4) * (step == 4),
        "looked_up_vectors": groups * round_up(group_weights, step) * (step > 4),
    }


@kept
def eight_counts(op: Op, by_row: bool) -> Counts:
    """Of a convolution by eight output channels: a kernel row inside the image is one run, else each tap is."""
    g = geometry(op)
    eights = g.groups * round_up(g.out_c // g.groups, 8)
    rows = window_rows(op)
    one_piece = g.groups == 1 and g.dilation_w == 1
    runs = rows * (g.out_w - pixels_at_borders(op) // g.out_h) if one_piece else 0
    return {
        "calls": calls_of(op, by_row),
        "pixels": g.out_h * g.out_w,
        "outputs": op.output.elements,
        "eights": g.out_h * g.out_w * eights,
        "eight_rows": g.out_h * g.out_w * g.kernel_h * eights,
        "eight_runs": runs * eights,
        "eight_taps": (inner_taps(op) - runs * g.kernel_w) * eights,
        "eight_asked": (rows * g.out_w - runs) * g.kernel_w * eights,
        "eight_terms": inner_taps(op) * (g.in_c // g.groups) * eights,
    }


@kept
def dense_counts(op: Op, by_row: bool) -> Counts:
    """Counts of a fully connected layer by four outputs (quads), then one by one what is left of them (singles)."""
    found, out_c = layer_counts(op, by_row), op.operand(1).shape[0]
    quads, singles = (found["pixels"] * each for each in divmod(out_c, 4))
    words = round_up(op.operand(1).elements // out_c, 4)
    names = ("calls", "pixels", "terms", "byte_pixels", "clamped_outputs", "macs")
    return {
        **{name: found[name] for name in names},
        "quads": quads,
        "quad_words": quads * words,
        "singles": singles,
        "single_words": singles * words,
    }


@kept
def dense_eight_counts(op: Op, by_row: bool) -> Counts:
    """Counts of a fully connected layer of float32 by eight outputs or what is left of them; of the latter, too; and of
    those in a loop, which compilers leave out where there is one eight."""
    found, (out_c, depth) = layer_counts(op, by_row), op.operand(1).shape
    eights = found["pixels"] * round_up(out_c, 8)
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


@kept
def winograd_counts(op: Op, by_row: bool) -> Counts:
    """Of a 3x3 convolution by tiles of two rows and columns, two of them a block."""
    out_h, out_w, out_c = op.output.shape[1:]
    words = op.input.shape[3] // 4
    calls = round_up(out_h, 2)
    blocks, pairs = calls * round_up(out_w, 4), out_c // 2
    return {
        **_block_counts(calls, blocks, pairs, words),
        "edge_words": 2 * calls * words,
        "clamped_outputs": clamped(op),
    }


def winograd_1d_counts(op: Op, calls: int, blocks: int) -> Counts:
    """Of a 3x1 or 1x3 convolution by tiles of two outputs, two of them a block."""
    found = _block_counts(calls, blocks, op.output.shape[3] // 2, op.input.shape[3] // 4)
    return {**found, "clamped_outputs": clamped(op)}


def _block_counts(calls: int, blocks: int, pairs: int, words: int) -> Counts:
    # positions are summed in iterations of so many steps, four steps alone without a loop
    iteration = 4 if words % 4 == 0 else 2 if words % 2 == 0 else 1
    return {
        "calls": calls,
        "blocks": blocks,
        "block_words": blocks * words,
        "block_pairs": blocks * pairs,
        "block_pair_words": blocks * pairs * words,
        "block_pair_iterations": blocks * pairs * (words // iteration) * (words != 4),
    }


@kept
def few_channels_counts(op: Op, by_row: bool, block: int) -> Counts:
    """Of a pointwise convolution whose channels go over blocks of pixels."""
    calls, (out_h, out_w, out_c) = calls_of(op, by_row), op.output.shape[1:]
    pixels = out_h * out_w
    blocks = calls * round_up(pixels // calls, block)
    words = pixels * op.input.shape[3] // 4
    return {
        "calls": calls,
        "words": words,
        "blocks": blocks,
        "block_channels": blocks * out_c,
        "outputs": pixels * out_c,
        "output_words": words * out_c,
        "clamped_outputs": clamped(op),
    }


@kept
def _gathered_windows(op: Op) -> int:
    """Output pixels whose window has rows or columns in the padding, or dilated columns."""
    g = geometry(op)
    if g.dilation_w > 1:
        return g.out_h * g.out_w
    return g.out_h * g.out_w - whole_rows(op) * (g.out_w - pixels_at_borders(op) // g.out_h)


def _spans(op: Op) -> int:
    """Pieces of a kernel row that are neighbours in the input."""
    g = geometry(op)
    return 1 if g.dilation_w == 1 else g.kernel_w
