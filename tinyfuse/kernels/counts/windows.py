"""Counts of convolutions in plain C, which go through windows tap by tap.

Loop counts are explained in `tinyfuse.kernels.counts.common`.
"""

from __future__ import annotations

from tinyfuse.ir import Op
from tinyfuse.kernels.counts.common import (
    RINGED,
    Counts,
    count_calls,
    count_narrowed_outputs,
    count_signed_outputs,
    memoized,
)
from tinyfuse.kernels.counts.depthwise import depthwise_counts
from tinyfuse.kernels.counts.layers import layer_counts
from tinyfuse.kernels.counts.padding import count_window_rows, divides_by_ring, inner_taps
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.core.convolution import clamp_range, geometry, quantized


@memoized
def window_counts(op: Op, by_row: bool) -> Counts:
    """Counts of a convolution, depthwise or not, in plain C. For each output, a loop goes over the rows of its window.
    For each row inside the image, a loop goes over columns; for each column inside the image, one goes over channels.
    If the clamp leaves a single value, the compiler removes all loops."""
    family = FAMILIES[op.kind]
    if _has_one_value(op):
        return {"calls": count_calls(op, by_row)}
    return {
        **(depthwise_counts(op, by_row) if family.depthwise else layer_counts(op, by_row)),
        **_loops_of_windows(op),
    }


@memoized
def byte_window_counts(op: Op, by_row: bool) -> Counts:
    """Counts of an int8 convolution in plain C, whose cost depends only on its loops: those of `_loops_of_windows`;
    outputs; outputs of layers with several channels, which divide by the number of channels; and terms that need no
    loop. If the clamp leaves a single value, only the stores of it count."""
    if _has_one_value(op):
        return _stores(op, by_row)
    found = {"calls": count_calls(op, by_row), **_byte_outputs(op), **_loops_of_windows(op)}
    channels, *_, terms = op.operand(1).shape
    return {
        **found,
        "several_outputs": op.output.elements * (channels > 1),
        "short_macs": found["inner_macs"] * (terms <= _UNROLLED_TERMS),
    }


@memoized
def inner_window_counts(op: Op, by_row: bool) -> Counts:
    """Counts of a depthwise convolution of integers in plain C. Each output has a loop over the rows of its window and
    one over the columns in the image. Their range is computed for each pixel; without padding on the left and right,
    compilers know it and unroll few taps."""
    if _has_one_value(op):
        return _stores(op, by_row)
    g = geometry(op)
    rows = count_window_rows(op) * g.out_w * g.out_c
    taps, beside = inner_taps(op) * g.out_c, g.pad_left > 0 or g.pads_right
    nested = g.kernel_h > 1 and g.kernel_w > 1 and (beside or g.kernel_w > _UNROLLED_TAPS)
    return {
        "calls": count_calls(op, by_row),
        **_byte_outputs(op),
        "border_outputs": op.output.elements * (beside and nested),
        "inner_rows": rows,
        RINGED + "rows": rows * divides_by_ring(op),
        "inner_taps": taps,
        "loop_taps": taps * nested,
    }


def _stores(op: Op, by_row: bool) -> Counts:
    """Counts of a layer whose clamp leaves a single value."""
    return {"calls": count_calls(op, by_row), "stored_outputs": op.output.elements}


def _byte_outputs(op: Op) -> Counts:
    """Counts of an int8 layer's outputs."""
    return {
        "outputs": op.output.elements,
        "signed_outputs": count_signed_outputs(op),
        "narrowed_outputs": count_narrowed_outputs(op),
        "stored_outputs": 0,
    }


def _has_one_value(op: Op) -> bool:
    """Tells whether the clamp leaves a single output value."""
    return quantized(op) and clamp_range(op)[0] == clamp_range(op)[1]


#: maximum number of taps of a row, and of terms of a tap, for which gcc unrolls the loop completely
_UNROLLED_TAPS, _UNROLLED_TERMS = 3, 4


def _loops_of_windows(op: Op) -> Counts:
    """Iterations of the loops over the rows, columns and channels of all windows, and tests for padding."""
    g = geometry(op)
    rows = count_window_rows(op) * g.out_w * g.out_c
    taps = inner_taps(op) * g.out_c
    # compilers drop a test that is never true: half of the tests if only one side has padding
    beside = ((g.pad_left > 0) + g.pads_right) / 2
    above = ((g.pad_top > 0) + g.pads_bottom) / 2
    asked = g.out_h * g.out_w * g.out_c * g.kernel_h
    return {
        "asked_rows": asked,
        "padded_rows": asked * above,
        "inner_rows": rows,
        "divided_rows": rows * (g.in_h & (g.in_h - 1) > 0),  # division by a height that is not a power of two
        "short_padded_rows": rows * beside * (g.kernel_w <= _UNROLLED_TAPS),
        "asked_taps": rows * g.kernel_w,
        "padded_taps": rows * g.kernel_w * beside,
        "inner_taps": taps,
        "inner_macs": taps * op.operand(1).elements // (g.kernel_h * g.kernel_w * g.out_c),
    }
