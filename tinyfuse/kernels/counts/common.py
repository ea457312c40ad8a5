"""Counts how often the loops of kernels run; their instructions depend linearly on these counts.

A kernel consists of nested loops, so its instructions are a sum of (iterations of a loop) x (instructions of its body).
Each kernel declares its counts (`Kernel.counts`), most by a function of this folder that returns the counts of all
similar kernels. A target's cost table has a factor for the few counts that matter to a kernel (tinyfuse/cost/fit.py).

All counts are totals of one inference, rounded up the way the kernels round. `by_row` means that the operator is
computed by one call for each output row, otherwise by a single call. The results are cached, so callers must not change
them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

from tinyfuse.ir import ITEM_BYTES, Op, Tensor
from tinyfuse.ir.fixedpoint import RANGE
from tinyfuse.ops.core.convolution import clamp_range, quantized
from tinyfuse.ops.matmul.batch_matmul import BatchMatMul
from tinyfuse.ops.matmul.rows_matmul import matmul_shape
from tinyfuse.ops.pooling_reduce.pooling import Pool2D, pool_output_and_padding

Counts = Mapping[str, float]

#: prefix of the names of counts that apply if a kernel has a single call, whose row length and padding compilers know
KNOWN = "known_"

#: prefix of the names of counts that apply only if the input's rows lie in a ring: plain C then finds each row by a
#: division by the number of rows in the ring
RINGED = "ringed_"

# results are cached, because comparing plans asks for the counts of the same operators again and again
memoized = lru_cache(maxsize=8192)


def known_counts(counts: Counts, names: Iterable[str]) -> dict[str, float]:
    """Copies of the counts `names`, with the prefix KNOWN. Only the costs of single calls use them
    (`cost.table.Alone`). Kernels whose calls compute rows of different lengths set them to 0 (`ColumnBlocks`)."""
    return {KNOWN + name: counts[name] for name in names}


def count_calls(op: Op, by_row: bool, at_once: int = 1) -> int:
    """Number of calls that compute an operator, if each makes `at_once` rows (`by_row`) or everything."""
    return ceil_div(op.output.shape[1], at_once) if by_row else 1


def ceil_div(value: int, step: int) -> int:
    """Number of steps that cover a value: value / step, rounded up."""
    return -(-value // step)


@memoized
def count_inner_taps(count: int, dim: int, kernel: int, stride: int, dilation: int, before: int) -> int:
    """Number of taps, of all `count` windows along one axis, that fall on an input rather than on padding. `dim`: size
    of the input; `before`: padding before it."""
    starts = (before - k * dilation for k in range(kernel))
    return sum(count_multiples(count, stride, start, start + dim) for start in starts)


def count_multiples(count: int, step: int, low: int, high: int) -> int:
    """Number of the first `count` multiples of `step` that are in low <= multiple < high."""
    first, after = max(0, -(-low // step)), min(count, -(-high // step))
    return max(0, after - first)


def count_signed_outputs(op: Op) -> int:
    """Number of outputs if some output can be below the zero point, else 0. Such outputs take one more instruction to
    requantize."""
    return op.output.elements if quantized(op) and clamp_range(op)[0] < op.output.zero_point else 0


def count_clamped_outputs(op: Op) -> int:
    """Number of outputs, or 0 if the clamp is the whole range of their dtype. Some kernels clamp in another pass."""
    return op.output.elements if quantized(op) and clamp_range(op) != RANGE[op.output.dtype] else 0


def count_narrowed_outputs(op: Op) -> int:
    """Number of outputs, or 0 if the clamp is the whole range of their dtype or its non-negative half. Kernels that
    saturate to either clamp to other ranges in another pass."""
    least, most = RANGE[op.output.dtype] if quantized(op) else (0, 0)
    low, high = clamp_range(op) if quantized(op) else (0, 0)
    return op.output.elements if high < most or low not in (least, 0) else 0


#: most taps along an axis of a pool's window, and most groups of four channels, for which GCC unrolls the loop if it
#: knows only an upper bound; most vectors, if the window has that few taps
_UNROLLED_TAPS, _UNROLLED_QUADS, _UNROLLED_VECTORS = 2, 2, 2


@memoized
def pool_counts(op: Op, by_row: bool, at_once: int = 1) -> Counts:
    """Counts of a pooling operator, `at_once` rows a call.

    "inner" taps and rows of taps are inside the image. "words" are four channels, "rests" the single channels after
    the last word. "quads" are four channels, of which the last may overlap those before; "few" are the channels if
    there are fewer than four. "eights" and "vectors" are 8 and 16 channels, rounded up; "looped_" counts are of
    loops that are not unrolled. Counts of "columns" and "lines" are those of outputs of a single column or row, of
    "wholes" those of a single pixel, of "images" the others: compilers know a window's place and size along an axis
    of size 1.
    """
    channels = op.input.shape[3]
    _, out_h, out_w, _ = op.output.shape
    pool = op.attributes_as(Pool2D)
    window_h, window_w = pool.filter
    pixels, taps = out_h * out_w, window_h * window_w
    (_, top), (_, left) = pool_output_and_padding(op)
    rows = count_inner_taps(out_h, op.input.shape[1], window_h, pool.stride[0], 1, top)
    inner = rows * count_inner_taps(out_w, op.input.shape[2], window_w, pool.stride[1], 1, left)
    fours, eights, vectors = channels // 4, ceil_div(channels, 8), ceil_div(channels, 16)
    quads, few = (ceil_div(channels, 4), 0) if channels >= 4 else (0, channels)
    of_sort = {"pixels": pixels, "quads": pixels * quads, "quad_rows": rows * out_w * quads, "quad_taps": inner * quads}
    sort = {(True, True): "wholes", (True, False): "lines", (False, True): "columns"}.get(
        (out_h == 1, out_w == 1), "images"
    )
    return {
        "calls": count_calls(op, by_row, at_once),
        **{
            f"{each}_{name}": count * (each == sort)
            for each in ("images", "lines", "columns", "wholes")
            for name, count in of_sort.items()
        },
        "pixels": pixels,
        "taps": pixels * taps,
        "outputs": pixels * channels,
        "macs": pixels * taps * channels,
        "words": pixels * (channels // 4),
        "word_taps": pixels * taps * (channels // 4),
        "rests": pixels * (channels % 4),
        "rest_taps": pixels * taps * (channels % 4),
        "vectors": pixels * vectors,
        "looped_vectors": pixels * vectors * (vectors > (_UNROLLED_VECTORS if taps <= _UNROLLED_TAPS else 1)),
        "vector_taps": inner * vectors,
        "quads": pixels * quads,
        "several_quads": pixels * quads * (quads > 1),
        "looped_quads": pixels * quads * (quads > _UNROLLED_QUADS),
        "quad_rows": rows * out_w * quads,
        "quad_taps": inner * quads,
        "large_quad_taps": inner * quads * (taps > 256),
        "looped_quad_taps": inner * quads * (max(pool.filter) > _UNROLLED_TAPS and sort != "wholes"),
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


@memoized
def element_counts(op: Op, by_row: bool) -> Counts:
    """Counts of an operator without window or weights, in elements: "rows" are those of the innermost dimension."""
    return _count_elements(op, by_row, lambda tensor: 1)


@memoized
def byte_counts(op: Op, by_row: bool) -> Counts:
    """Counts of an operator that moves elements of any dtype: those of `element_counts`, in bytes."""
    return _count_elements(op, by_row, lambda tensor: ITEM_BYTES[tensor.dtype])


def _count_elements(op: Op, by_row: bool, size: Callable[[Tensor], int]) -> Counts:
    """Counts of an operator without window or weights. `size` returns what an element of a tensor counts."""
    calls = count_calls(op, by_row)
    inputs = sum(tensor.elements * size(tensor) for tensor in op.activations)
    result = (op.outputs or op.states)[0]  # an operator without output writes a state
    item = size(result)
    depth = result.shape[-1] if result.shape else 1
    rows = result.elements // max(1, depth)
    call, depth = result.elements // calls * item, depth * item
    return {
        "calls": calls,
        "rows": rows,
        "inputs": inputs,
        "outputs": result.elements * item,
        "call_words": calls * ceil_div(call, 4),
        "call_vectors": calls * ceil_div(call, 16),
        "row_words": rows * ceil_div(depth, 4),
        "row_vectors": rows * ceil_div(depth, 16),
    }


@memoized
def product_counts(op: Op, by_row: bool) -> Counts:
    """Loop counts of a BATCH_MATMUL."""
    left, outputs = op.operand(0), op.output.elements
    depth = left.shape[-2 if op.attributes_as(BatchMatMul).adj_x else -1]
    rows, columns = op.output.shape[-2:]
    return {
        "calls": 1,
        "matrices": outputs // (rows * columns),
        **_vector_product_counts(outputs // columns, columns, depth),
    }


@memoized
def row_product_counts(op: Op, by_row: bool) -> Counts:
    """Counts of a ROWS_MATMUL, which multiplies the heads of each row by matrices."""
    e = matmul_shape(op)
    vectors = e.rows * e.heads
    return {
        "calls": count_calls(op, by_row),
        "matrices": vectors,
        **_vector_product_counts(vectors, e.columns, e.depth),
    }


def _vector_product_counts(vectors: int, columns: int, depth: int) -> Counts:
    """Counts of products of vectors of `depth` elements and matrices. "quads" are groups of four columns, of which the
    last may be incomplete; "fours" are the complete ones."""
    quads, fours, singles = vectors * ceil_div(columns, 4), vectors * (columns // 4), vectors * (columns % 4)
    return {
        "rows": vectors,
        "row_words": vectors * ceil_div(depth, 4),
        "outputs": vectors * columns,
        "macs": vectors * columns * depth,
        "quads": quads,
        "quad_words": quads * (depth // 4),
        "quad_rests": quads * (depth % 4),
        "fours": fours,
        "four_pairs": fours * (depth // 2),
        "singles": singles,
        "single_macs": singles * depth,
    }


@memoized
def svdf_counts(op: Op, by_row: bool) -> Counts:
    """Counts of an SVDF, whose kernels compute four filters at a time. "words" are 4 inputs, "blocks" Helium's vectors
    of 16; "moved_" counts are those of the state's move by one step."""
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
        "blocks_of_four": fours * ceil_div(inputs, 16),
        "blocks": others * ceil_div(inputs, 16),
        "rests": every * (inputs % 4),
        "remembered": every * memory,
        "moved_words": every * (moved // a_word),
        "moved_rests": every * (moved % a_word),
        "moved_blocks": every * ceil_div(moved, 8),
    }


@memoized
def lstm_counts(op: Op, by_row: bool) -> Counts:
    """Counts of an LSTM. Each unit has four gates, each with a sum over inputs and one over the hidden state. "words"
    are 4 terms, "blocks" Helium's vectors of 16."""
    inputs, units = op.input.shape[2], op.output.shape[2]
    outputs = op.input.elements // inputs * units  # of all time steps, even if only the last one is an output
    return {
        "calls": 1,
        "steps": outputs // units,
        "outputs": outputs,
        "macs": outputs * 4 * (inputs + units),
        "words": outputs * 4 * (inputs // 4 + units // 4),
        "blocks": outputs * (ceil_div(inputs, 16) + ceil_div(units, 16)),
        "rests": outputs * 4 * (inputs % 4 + units % 4),
    }


def piece_counts(calls: int, lines: int, pieces: int, run: int) -> Counts:
    """Counts of a copy of `pieces` contiguous pieces of `run` bytes each. `lines`: iterations of the loops that find
    where the pieces are."""
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
