"""How often the loops of kernels run: what their instructions depend on, linearly.

A kernel is loops in loops, so its instructions are a sum of (times a loop's body runs) x (instructions
of the body). Each kernel declares its counts (`Kernel.counts`), most of them by a function below, which has
those of all kernels of its sort; a target's cost table has a factor for the few that matter to the kernel and
nothing for the rest (tinyfuse/cost/fit.py).

All counts are of one inference, rounded up the way the kernels round: "words" are four input terms,
"pairs" and "quads" two and four output channels, a "block" is the pixels that one pass over the
weights serves (three in portable code, two with Helium).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

from tinyfuse.ir import ITEM_BYTES, Op, Tensor
from tinyfuse.ir.fixedpoint import RANGE
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.batch_matmul import BatchMatMul
from tinyfuse.ops.convolution import clamp_range, geometry, quantized
from tinyfuse.ops.pooling import Pool2D
from tinyfuse.ops.transpose_conv import TransposeConv, paddings

Counts = Mapping[str, float]

# What these functions give is kept, and not to be changed: plans are compared by what their kernels take, the same
# ones again and again. `by_row`: the operator is computed by one call an output row, else by one call.
_kept = lru_cache(maxsize=8192)


def _calls(op: Op, by_row: bool) -> int:
    return op.output.shape[1] if by_row else 1


def _up(value: int, step: int) -> int:
    return -(-value // step)


def _signed(op: Op) -> int:
    """Outputs that may be below the zero point: their requantization takes an instruction more."""
    return op.output.elements if quantized(op) and clamp_range(op)[0] < op.output.zero_point else 0


def _clamped(op: Op) -> int:
    """Outputs whose clamp is narrower than their dtype: some kernels pass over them once more."""
    return op.output.elements if quantized(op) and clamp_range(op) != RANGE[op.output.dtype] else 0


def _narrowed(op: Op) -> int:
    """Outputs whose clamp is narrower than their dtype and than what of it isn't negative: kernels that saturate to
    either pass over these alone once more."""
    least, most = RANGE[op.output.dtype] if quantized(op) else (0, 0)
    low, high = clamp_range(op) if quantized(op) else (0, 0)
    return op.output.elements if high < most or low not in (least, 0) else 0


@_kept
def layer_counts(op: Op, by_row: bool) -> Counts:
    """Of a layer whose output channels sum over channels: a convolution, or a fully connected layer."""
    calls, convolution = _calls(op, by_row), FAMILIES[op.kind].convolution
    weights = op.operand(1)
    out_c, depth = weights.shape[0], weights.elements // weights.shape[0]
    pixels, in_c = op.output.elements // out_c, op.input.shape[-1]
    kernel_h, kernel_w = weights.shape[1:3] if convolution else (1, 1)
    taps, tap_rows = pixels * kernel_h * kernel_w, pixels * kernel_h
    inner = _inner_taps(op) if convolution else pixels
    run = kernel_w * in_c  # terms that are neighbours in the input
    blocks, twos = calls * _up(pixels // calls, 3), calls * _up(pixels // calls, 2)
    pairs, quads, words = _up(out_c, 2), _up(out_c, 4), _up(depth, 4)
    terms = pixels * depth
    border_pixels = _border_pixels(op) if convolution else 0
    odd_c, inner_runs = in_c % 4 > 0, (pixels - border_pixels) * kernel_h
    return {
        "calls": calls,
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
        "outputs": pixels * out_c,
        "signed_outputs": _signed(op),
        "clamped_outputs": _clamped(op),
        "narrowed_outputs": _narrowed(op),
        "macs": terms * out_c,
        "inner_taps": inner * out_c,
        "inner_macs": inner * weights.shape[-1] * out_c,
        "pair_words": pixels * pairs * words,
        "odd_words": pixels * (out_c % 2) * words,
        "quads": pixels * quads,
        "quad_words": pixels * quads * words,
        "blocks": blocks,
        "block_pairs": blocks * pairs,
        "block_pair_words": blocks * pairs * words,
        "odd_pixel_words": calls * (pixels // calls % 2) * pairs * words,
        "four_pair_words": calls * (pixels // calls // 4) * pairs * words,
        "twos": twos,
        "two_quads": twos * quads,
        "two_quad_vectors": twos * quads * (depth // 16),
        "two_quad_rests": twos * quads * (depth % 16 > 0),
    }


#: of `layer_counts`, what is done again for each strip of channels that are looked up together
_OF_STRIPS = (
    "pixels tap_rows taps border_taps terms border_terms border_pixel_rows border_pixel_taps byte_border_taps "
    "byte_terms byte_pixels byte_words byte_runs byte_run_words byte_run_rests long_byte_runs blocks twos"
).split()


#: what looking weights up adds to the counts of a kernel: of each call, and of strips
OF_LOOKING_UP = ("looked_up_groups", "looked_up_words", "looked_up_vectors", "strips")
LOOKED_UP = (*OF_LOOKING_UP, "strip_pixels")


@_kept
def looked_up_counts(op: Op, by_row: bool, strip: int, step: int = 4, rows: int = 1) -> Counts:
    """Of a layer whose weights each call, of so many rows, looks up, `step` at once, `strip` channels together."""
    counts, weights, calls = layer_counts(op, by_row), op.operand(1), _up(_calls(op, by_row), rows)
    out_c = weights.shape[0]
    strips = _up(out_c, strip)
    return {
        **counts,
        **{name: strips * counts[name] for name in _OF_STRIPS},
        **_looked_up(calls * out_c, weights.elements // out_c, step),
        "strips": calls * strips,
        "strip_pixels": counts["pixels"] * strips * (strips > 1),
    }


def _looked_up(groups: int, group_weights: int, step: int) -> Counts:
    return {
        "looked_up_groups": groups,
        "looked_up_words": groups * _up(group_weights, 4) * (step == 4),
        "looked_up_vectors": groups * _up(group_weights, step) * (step > 4),
    }


@_kept
def eight_counts(op: Op, by_row: bool) -> Counts:
    """Of a convolution by eight output channels: a kernel row inside the image is one run, else each tap is."""
    g = geometry(op)
    eights = g.groups * _up(g.out_c // g.groups, 8)
    rows = _inside(g.out_h, g.in_h, g.kernel_h, g.stride_h, g.dilation_h, g.pad_top)
    one_piece = g.groups == 1 and g.dilation_w == 1
    runs = rows * (g.out_w - _border_pixels(op) // g.out_h) if one_piece else 0
    return {
        "calls": _calls(op, by_row),
        "pixels": g.out_h * g.out_w,
        "outputs": op.output.elements,
        "eights": g.out_h * g.out_w * eights,
        "eight_rows": g.out_h * g.out_w * g.kernel_h * eights,
        "eight_runs": runs * eights,
        "eight_taps": (_inner_taps(op) - runs * g.kernel_w) * eights,
        "eight_asked": (rows * g.out_w - runs) * g.kernel_w * eights,
        "eight_terms": _inner_taps(op) * (g.in_c // g.groups) * eights,
    }


@_kept
def winograd_counts(op: Op, by_row: bool) -> Counts:
    """Of a 3x3 convolution by tiles of two rows and columns, two of them a block."""
    out_h, out_w, out_c = op.output.shape[1:]
    words = op.input.shape[3] // 4
    calls = _up(out_h, 2)
    blocks, pairs = calls * _up(out_w, 4), out_c // 2
    # positions are summed in turns of so many steps, four steps alone without a loop
    turn = 4 if words % 4 == 0 else 2 if words % 2 == 0 else 1
    return {
        "calls": calls,
        "blocks": blocks,
        "block_words": blocks * words,
        "edge_words": 2 * calls * words,
        "block_pairs": blocks * pairs,
        "block_pair_words": blocks * pairs * words,
        "block_pair_turns": blocks * pairs * (words // turn) * (words != 4),
        "clamped_outputs": _clamped(op),
    }


@_kept
def narrow_counts(op: Op, by_row: bool, block: int) -> Counts:
    """Of a pointwise convolution whose channels go over blocks of pixels."""
    calls, (out_h, out_w, out_c) = _calls(op, by_row), op.output.shape[1:]
    pixels = out_h * out_w
    blocks = calls * _up(pixels // calls, block)
    words = pixels * op.input.shape[3] // 4
    return {
        "calls": calls,
        "words": words,
        "blocks": blocks,
        "block_channels": blocks * out_c,
        "outputs": pixels * out_c,
        "output_words": words * out_c,
        "clamped_outputs": _clamped(op),
    }


@_kept
def depthwise_counts(op: Op, by_row: bool) -> Counts:
    """Of a depthwise convolution."""
    calls, g = _calls(op, by_row), geometry(op)
    taps, pixels, inner = g.kernel_h * g.kernel_w, g.out_h * g.out_w, _inner_taps(op)
    fours, eights, sixteens = _up(g.out_c, 4), _up(g.out_c, 8), _up(g.out_c, 16)
    pairs = _up(taps, 2)
    return {
        "calls": calls,
        "fours": calls * fours,
        "four_columns": calls * fours * (g.out_w - 1) * g.stride_w + 3 * calls * fours,
        "pixels": pixels,
        "tap_rows": pixels * g.kernel_h,
        "taps": pixels * taps,
        "pairs": pixels * pairs,
        "border_taps": pixels * taps - inner,
        "outputs": pixels * g.out_c,
        "signed_outputs": _signed(op),
        "clamped_outputs": _clamped(op),
        "narrowed_outputs": _narrowed(op),
        "inner_macs": inner * g.out_c,
        "macs": pixels * taps * g.out_c,
        "quads": pixels * fours,
        "quad_pairs": pixels * fours * pairs,
        "rest_quads": pixels * (g.out_c % 4 > 0),
        "eights": pixels * eights,
        "eight_pairs": pixels * eights * pairs,
        "rests": pixels * (g.out_c % 8 > 0),
        "rest_pairs": pixels * (g.out_c % 8 > 0) * pairs,
        "sixteens": pixels * sixteens,
        "sixteen_taps": pixels * sixteens * taps,
    }


@_kept
def looked_up_depthwise_counts(op: Op, by_row: bool, groups: int, group_bytes: int, step: int) -> Counts:
    """Of a depthwise convolution whose weights each call looks up, in so many groups, `step` at once."""
    calls = _calls(op, by_row)
    return {**depthwise_counts(op, by_row), **_looked_up(calls * groups, group_bytes, step), "strips": calls}


@_kept
def runs_counts(op: Op, by_row: bool) -> Counts:
    """Of a convolution that reads windows kernel row by kernel row, four blocks of sixteen inputs in a turn."""
    kernel_h, kernel_w, in_c = op.operand(1).shape[1:]
    calls, (out_w, out_c), blocks = _calls(op, by_row), op.output.shape[2:], kernel_w * in_c // 16
    twos, quads = op.output.shape[1] * _up(out_w, 2), _up(out_c, 4)
    border = _border_pixels(op) * kernel_h
    return {
        "calls": calls,
        "call_rows": calls * kernel_h,
        "twos": twos,
        "two_rows": twos * kernel_h,
        "border_pixel_rows": border,
        "border_pixel_taps": border * kernel_w,
        "two_quads": twos * quads,
        "two_quad_runs": twos * quads * kernel_h,
        "two_quad_turns": twos * quads * kernel_h * _up(blocks, 4),
        "two_quad_vectors": twos * quads * kernel_h * blocks,
    }


@_kept
def columns_counts(op: Op, by_row: bool, outputs: int, channels: int) -> Counts:
    """Of a depthwise convolution that goes through a row by chunks of so many outputs, and so many channels of them at
    a time, whose columns it regroups plane by plane: columns that lie `stride_w` apart."""
    calls, g = _calls(op, by_row), geometry(op)
    chunks, groups = calls * _up(g.out_w, outputs), _up(g.in_c, channels)
    planes = min(g.stride_w, g.kernel_w)
    reads = calls * (
        g.out_w * planes + _up(g.out_w, outputs) * sum((g.kernel_w - 1 - k) // g.stride_w for k in range(planes))
    )
    return {
        "calls": calls,
        "chunks": chunks,
        "chunk_planes": chunks * planes,
        "chunk_groups": chunks * groups,
        "group_planes": chunks * groups * planes,
        "group_columns": reads * groups,
        "chunk_channels": chunks * g.in_c,
        "outputs": op.output.elements,
    }


def _inner_taps(op: Op) -> int:
    """Of all output pixels together: taps that are not in the padding."""
    g = geometry(op)
    rows = _inside(g.out_h, g.in_h, g.kernel_h, g.stride_h, g.dilation_h, g.pad_top)
    return rows * _inside(g.out_w, g.in_w, g.kernel_w, g.stride_w, g.dilation_w, g.pad_left)


def _border_pixels(op: Op) -> int:
    """Output pixels whose window has columns in the padding."""
    g = geometry(op)
    span = (g.kernel_w - 1) * g.dilation_w
    return g.out_h * (g.out_w - _multiples(g.out_w, g.stride_w, g.pad_left, g.in_w + g.pad_left - span))


def _inside(count: int, dim: int, kernel: int, stride: int, dilation: int, before: int) -> int:
    """The same along one axis, of `count` windows."""
    starts = (before - k * dilation for k in range(kernel))
    return sum(_multiples(count, stride, start, start + dim) for start in starts)


def _multiples(count: int, step: int, low: int, high: int) -> int:
    """How many of the first `count` multiples of `step` are from `low` to below `high`."""
    first, after = max(0, -(-low // step)), min(count, -(-high // step))
    return max(0, after - first)


@_kept
def pool_counts(op: Op, by_row: bool) -> Counts:
    """Of a pooling."""
    channels = op.input.shape[3]
    _, out_h, out_w, _ = op.output.shape
    pool = op.attributes_as(Pool2D)
    window_h, window_w = pool.filter
    pixels, taps = out_h * out_w, window_h * window_w
    return {
        "calls": _calls(op, by_row),
        "pixels": pixels,
        "taps": pixels * taps,
        "outputs": pixels * channels,
        "macs": pixels * taps * channels,
        "words": pixels * (channels // 4),
        "word_taps": pixels * taps * (channels // 4),
        "rests": pixels * (channels % 4),
        "rest_taps": pixels * taps * (channels % 4),
        "vectors": pixels * _up(channels, 16),
        "vector_taps": pixels * taps * _up(channels, 16),
    }


@_kept
def element_counts(op: Op, by_row: bool) -> Counts:
    """Of an operator without window or weights: rows of the innermost dimension, and elements."""
    return _counted(op, by_row, lambda tensor: 1)


@_kept
def byte_counts(op: Op, by_row: bool) -> Counts:
    """The same of a kernel that moves elements of any dtype: what it counts are bytes."""
    return _counted(op, by_row, lambda tensor: ITEM_BYTES[tensor.dtype])


def _counted(op: Op, by_row: bool, size: Callable[[Tensor], int]) -> Counts:
    """`size`: what an element of a tensor counts as."""
    calls = _calls(op, by_row)
    inputs = sum(tensor.elements * size(tensor) for tensor in op.activations)
    result = (op.outputs or op.states)[0]  # what has no output writes a state
    item = size(result)
    depth = result.shape[-1] if result.shape else 1
    rows = result.elements // max(1, depth)
    call, depth = result.elements // calls * item, depth * item
    return {
        "calls": calls,
        "rows": rows,
        "inputs": inputs,
        "outputs": result.elements * item,
        "call_words": calls * _up(call, 4),
        "call_vectors": calls * _up(call, 16),
        "row_words": rows * _up(depth, 4),
        "row_vectors": rows * _up(depth, 16),
    }


@_kept
def transposed_counts(op: Op, by_row: bool) -> Counts:
    """Of a transposed convolution."""
    out_c, kernel_h, kernel_w, in_c = op.operand(1).shape
    (_, out_h, out_w, _), (_, in_h, in_w, _) = op.output.shape, op.operand(2).shape
    (stride_h, stride_w), (top, left) = op.attributes_as(TransposeConv).stride, paddings(op)
    rows = _reaching(out_h, in_h, kernel_h, stride_h, top)
    taps = rows * _reaching(out_w, in_w, kernel_w, stride_w, left)
    asked = out_h * out_w * _up(kernel_h, stride_h) * _up(kernel_w, stride_w)
    return {
        "calls": _calls(op, by_row),
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
        "eights": out_h * out_w * _up(out_c, 8),
        "eight_taps": taps * _up(out_c, 8),
        "eight_terms": taps * in_c * _up(out_c, 8),
    }


@_kept
def phase_counts(op: Op, by_row: bool) -> Counts:
    """Of a transposed convolution as the convolutions of its phases, whose windows have all of their taps."""
    out_c, kernel_h, kernel_w, in_c = op.operand(1).shape
    (_, out_h, out_w, _), (top, left) = op.output.shape, paddings(op)
    strides, taps, words = op.attributes_as(TransposeConv).stride, 0, 0
    for rows, row_taps in _phases(out_h, kernel_h, strides[0], top):
        for columns, column_taps in _phases(out_w, kernel_w, strides[1], left):
            taps += rows * columns * row_taps * column_taps
            words += rows * columns * _up(row_taps * column_taps * in_c, 4)
    pixels = out_h * out_w
    return {
        "calls": _calls(op, by_row),
        "phases": _calls(op, by_row) * strides[1],
        "pixels": pixels,
        "outputs": op.output.elements,
        "taps": taps,
        "terms": taps * in_c,
        "words": words,
        "byte_taps": taps * (in_c % 4 > 0),
        "byte_terms": taps * in_c * (in_c % 4 > 0),
        "pairs": pixels * _up(out_c, 2),
        "pair_words": words * (out_c // 2),
        "odd_words": words * (out_c % 2),
        "narrowed_outputs": _narrowed(op),
        "padded_taps": taps - transposed_counts(op, by_row)["taps"],
        "tap_rows": transposed_counts(op, by_row)["tap_rows"],
    }


def _phases(out: int, kernel: int, stride: int, before: int) -> list[tuple[int, int]]:
    """Along one axis: (outputs, taps) of each phase."""
    return [
        (sum((at + before) % stride == phase for at in range(out)), _up(kernel - phase, stride))
        for phase in range(stride)
    ]


def _reaching(out: int, dim: int, kernel: int, stride: int, before: int) -> int:
    """Along one axis: how many taps of all outputs together fall on an input."""
    return sum(
        1 for at in range(out) for k in range(kernel)
        if at + before >= k and (at + before - k) % stride == 0 and (at + before - k) // stride < dim
    )  # fmt: skip


@_kept
def product_counts(op: Op, by_row: bool) -> Counts:
    """Of products of matrices."""
    left, outputs = op.operand(0), op.output.elements
    depth = left.shape[-2 if op.attributes_as(BatchMatMul).adj_x else -1]
    rows, columns = op.output.shape[-2:]
    return {
        "calls": 1,
        "matrices": outputs // (rows * columns),
        "rows": outputs // columns,
        "outputs": outputs,
        "macs": outputs * depth,
    }


@_kept
def svdf_counts(op: Op, by_row: bool) -> Counts:
    """Of an SVDF."""
    (batches, inputs), (filters, memory) = op.input.shape, op.operand(2).shape
    return {
        "calls": 1,
        "outputs": op.output.elements,
        "filters": batches * filters,
        "macs": batches * filters * inputs,
        "words": batches * filters * (inputs // 4),
        "rests": batches * filters * (inputs % 4),
        "remembered": batches * filters * memory,
    }


@_kept
def lstm_counts(op: Op, by_row: bool) -> Counts:
    """Of an LSTM: a unit has four gates, each a sum over inputs and one over the hidden state."""
    inputs, units = op.input.shape[2], op.output.shape[2]
    outputs = op.output.elements
    return {
        "calls": 1,
        "steps": outputs // units,
        "outputs": outputs,
        "macs": outputs * 4 * (inputs + units),
        "words": outputs * 4 * (inputs // 4 + units // 4),
        "rests": outputs * 4 * (inputs % 4 + units % 4),
    }


def piece_counts(calls: int, lines: int, pieces: int, run: int) -> Counts:
    """Of a copy of pieces of `run` bytes, which lie in lines."""
    words, rest = divmod(run, 4)
    return {
        "calls": calls,
        "lines": lines,
        "bytes": pieces * (run == 1),
        "words": pieces * (run == 4),
        "pieces": pieces * (run not in (1, 4)),
        "piece_words": pieces * (words if run != 4 else 0),
        "piece_rests": pieces * (rest if run != 1 else 0),
    }
