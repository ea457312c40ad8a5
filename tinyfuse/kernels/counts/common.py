"""How often the loops of kernels run: what their instructions depend on, linearly.

A kernel is loops in loops, so its instructions are a sum of (times a loop's body runs) x (instructions
of the body). Each kernel declares its counts (`Kernel.counts`), most of them by a function below, which has
those of all kernels of its sort; a target's cost table has a factor for the few that matter to the kernel and
nothing for the rest (tinyfuse/cost/fit.py).

All counts are of one inference, rounded up the way the kernels round. Those of convolutions stand in
`convolution_counts.py`, `depthwise_counts.py` and `transposed_counts.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

from tinyfuse.ir import ITEM_BYTES, Op, Tensor
from tinyfuse.ir.fixedpoint import RANGE
from tinyfuse.ops.core.convolution import clamp_range, quantized
from tinyfuse.ops.matmul.batch_matmul import BatchMatMul
from tinyfuse.ops.matmul.rows_matmul import matmul_shape
from tinyfuse.ops.pooling_reduce.pooling import Pool2D, pool_output_and_padding

Counts = Mapping[str, float]

# What these functions give is kept, and not to be changed: plans are compared by what their kernels take, the same
# ones again and again. `by_row`: the operator is computed by one call an output row, else by one call.
kept = lru_cache(maxsize=8192)


def calls_of(op: Op, by_row: bool, at_once: int = 1) -> int:
    """How many calls, each by rows of so many, compute an operator."""
    return round_up(op.output.shape[1], at_once) if by_row else 1


def round_up(value: int, step: int) -> int:
    """In how many steps a value is."""
    return -(-value // step)


@kept
def inside(count: int, dim: int, kernel: int, stride: int, dilation: int, before: int) -> int:
    """Along one axis: how many taps of all `count` windows together fall on an input."""
    starts = (before - k * dilation for k in range(kernel))
    return sum(multiples(count, stride, start, start + dim) for start in starts)


def multiples(count: int, step: int, low: int, high: int) -> int:
    """How many of the first `count` multiples of `step` are from `low` to below `high`."""
    first, after = max(0, -(-low // step)), min(count, -(-high // step))
    return max(0, after - first)


def signed(op: Op) -> int:
    """Outputs that may be below the zero point: their requantization takes an instruction more."""
    return op.output.elements if quantized(op) and clamp_range(op)[0] < op.output.zero_point else 0


def clamped(op: Op) -> int:
    """Outputs whose clamp is narrower than their dtype: some kernels pass over them once more."""
    return op.output.elements if quantized(op) and clamp_range(op) != RANGE[op.output.dtype] else 0


def narrowed(op: Op) -> int:
    """Outputs whose clamp is narrower than their dtype and than what of it isn't negative: kernels that saturate to
    either pass over these alone once more."""
    least, most = RANGE[op.output.dtype] if quantized(op) else (0, 0)
    low, high = clamp_range(op) if quantized(op) else (0, 0)
    return op.output.elements if high < most or low not in (least, 0) else 0


@kept
def pool_counts(op: Op, by_row: bool, at_once: int = 1) -> Counts:
    """Of a pooling, so many rows a call. "inner" taps and rows of taps lie in the image."""
    channels = op.input.shape[3]
    _, out_h, out_w, _ = op.output.shape
    pool = op.attributes_as(Pool2D)
    window_h, window_w = pool.filter
    pixels, taps = out_h * out_w, window_h * window_w
    (_, top), (_, left) = pool_output_and_padding(op)
    rows = inside(out_h, op.input.shape[1], window_h, pool.stride[0], 1, top)
    inner = rows * inside(out_w, op.input.shape[2], window_w, pool.stride[1], 1, left)
    fours, eights = channels // 4, round_up(channels, 8)
    # four channels at a time, the last four overlap those before; or fewer than four one by one
    quads, few = (round_up(channels, 4), 0) if channels >= 4 else (0, channels)
    return {
        "calls": calls_of(op, by_row, at_once),
        "pixels": pixels,
        "taps": pixels * taps,
        "outputs": pixels * channels,
        "macs": pixels * taps * channels,
        "words": pixels * (channels // 4),
        "word_taps": pixels * taps * (channels // 4),
        "rests": pixels * (channels % 4),
        "rest_taps": pixels * taps * (channels % 4),
        "vectors": pixels * round_up(channels, 16),
        "vector_taps": pixels * taps * round_up(channels, 16),
        "quads": pixels * quads,
        "quad_rows": rows * out_w * quads,
        "quad_taps": inner * quads,
        "large_quad_taps": inner * quads * (taps > 256),
        "few": pixels * few,
        "few_rows": rows * out_w * few,
        "few_taps": inner * few,
        "eights": pixels * eights,
        "eight_rows": rows * out_w * eights,
        "eight_taps": inner * eights,
        "inner_tap_rows": rows * out_w,
        "inner_word_rows": rows * out_w * fours,
        "inner_word_taps": inner * fours,
        "inner_rest_rows": rows * out_w * (channels % 4),
        "inner_rest_taps": inner * (channels % 4),
    }


@kept
def element_counts(op: Op, by_row: bool) -> Counts:
    """Of an operator without window or weights: rows of the innermost dimension, and elements."""
    return _counted(op, by_row, lambda tensor: 1)


@kept
def byte_counts(op: Op, by_row: bool) -> Counts:
    """The same of a kernel that moves elements of any dtype: what it counts are bytes."""
    return _counted(op, by_row, lambda tensor: ITEM_BYTES[tensor.dtype])


def _counted(op: Op, by_row: bool, size: Callable[[Tensor], int]) -> Counts:
    """`size`: what an element of a tensor counts as."""
    calls = calls_of(op, by_row)
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
        "call_words": calls * round_up(call, 4),
        "call_vectors": calls * round_up(call, 16),
        "row_words": rows * round_up(depth, 4),
        "row_vectors": rows * round_up(depth, 16),
    }


@kept
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


@kept
def row_product_counts(op: Op, by_row: bool) -> Counts:
    """Of products of each row's heads with matrices."""
    e = matmul_shape(op)
    vectors, outputs = e.rows * e.heads, op.output.elements
    return {
        "calls": calls_of(op, by_row),
        "matrices": vectors,
        "rows": vectors,
        "outputs": outputs,
        "macs": outputs * e.depth,
    }


@kept
def svdf_counts(op: Op, by_row: bool) -> Counts:
    """Of an SVDF, whose filters' products with the input come by fours; blocks are Helium's vectors."""
    (batches, inputs), (filters, memory) = op.input.shape, op.operand(2).shape
    every, moved, a_word = batches * filters, memory - 1, 4 // ITEM_BYTES[op.operand(4).dtype]
    fours, others = batches * (filters // 4), batches * (filters % 4)
    return {
        "calls": 1,
        "outputs": op.output.elements,
        "filters": every,
        "macs": every * inputs,
        "words_of_four": fours * (inputs // 4),
        "words": others * (inputs // 4),
        "blocks_of_four": fours * round_up(inputs, 16),
        "blocks": others * round_up(inputs, 16),
        "rests": every * (inputs % 4),
        "remembered": every * memory,
        "moved_words": every * (moved // a_word),
        "moved_rests": every * (moved % a_word),
        "moved_blocks": every * round_up(moved, 8),
    }


@kept
def lstm_counts(op: Op, by_row: bool) -> Counts:
    """Of an LSTM: a unit has four gates, each a sum over inputs and one over the hidden state; blocks are Helium's
    vectors."""
    inputs, units = op.input.shape[2], op.output.shape[2]
    outputs = op.input.elements // inputs * units  # of all steps, kept or not
    return {
        "calls": 1,
        "steps": outputs // units,
        "outputs": outputs,
        "macs": outputs * 4 * (inputs + units),
        "words": outputs * 4 * (inputs // 4 + units // 4),
        "blocks": outputs * (round_up(inputs, 16) + round_up(units, 16)),
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
