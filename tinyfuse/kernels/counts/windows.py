"""Counts of convolutions in plain C, which go through windows tap by tap: part of `tinyfuse.kernels.counts.common`,
which says what counts are."""

from __future__ import annotations

from tinyfuse.ir import Op
from tinyfuse.kernels.counts.common import Counts, calls_of, kept, narrowed, signed
from tinyfuse.kernels.counts.depthwise import depthwise_counts
from tinyfuse.kernels.counts.layers import layer_counts
from tinyfuse.kernels.counts.padding import inner_taps, window_rows
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.core.convolution import clamp_range, geometry, quantized


@kept
def window_counts(op: Op, by_row: bool) -> Counts:
    """Of a convolution, depthwise or not, in plain C: for each output a loop over the rows of its window, in which
    those that exist have one over columns, in which those that exist have one over channels. Where the clamp leaves a
    single value, the compiler leaves all of them out."""
    family = FAMILIES[op.kind]
    if _has_one_value(op):
        return {"calls": calls_of(op, by_row)}
    return {
        **(depthwise_counts(op, by_row) if family.depthwise else layer_counts(op, by_row)),
        **_loops_of_windows(op),
    }


@kept
def byte_window_counts(op: Op, by_row: bool) -> Counts:
    """The same of an int8 convolution, whose loops tell all: of these and of outputs alone, those of several channels,
    which divide by their count, and terms that have no loop; or of stores of the single value."""
    if _has_one_value(op):
        return _stores(op, by_row)
    found = {"calls": calls_of(op, by_row), **_byte_outputs(op), **_loops_of_windows(op)}
    channels, *_, terms = op.operand(1).shape
    return {
        **found,
        "several_outputs": op.output.elements * (channels > 1),
        "short_macs": found["inner_macs"] * (terms <= _UNROLLED_TERMS),
    }


@kept
def inner_window_counts(op: Op, by_row: bool) -> Counts:
    """Of an int8 depthwise convolution in plain C, whose outputs have a loop over the rows of a window and one over
    those of its columns that exist. Which these are is found for each pixel, and compilers know it where there is no
    padding beside the image: then few taps have no loop."""
    if _has_one_value(op):
        return _stores(op, by_row)
    g = geometry(op)
    rows = window_rows(op) * g.out_w * g.out_c
    taps, beside = inner_taps(op) * g.out_c, g.pad_left > 0 or g.pads_right
    return {
        "calls": calls_of(op, by_row),
        **_byte_outputs(op),
        "border_outputs": op.output.elements * beside,
        "inner_rows": rows,
        "divided_rows": rows * (g.in_h & (g.in_h - 1) > 0),  # by a height that is no power of two
        "inner_taps": taps,
        "loop_taps": taps * (beside or g.kernel_w > _UNROLLED_TAPS),
    }


def _stores(op: Op, by_row: bool) -> Counts:
    """Of a layer whose clamp leaves a single value."""
    return {"calls": calls_of(op, by_row), "stored_outputs": op.output.elements}


def _byte_outputs(op: Op) -> Counts:
    return {
        "outputs": op.output.elements,
        "signed_outputs": signed(op),
        "narrowed_outputs": narrowed(op),
        "stored_outputs": 0,
    }


def _has_one_value(op: Op) -> bool:
    return quantized(op) and clamp_range(op)[0] == clamp_range(op)[1]


#: taps of a row, and terms of a tap, that gcc computes one after the other, without a loop
_UNROLLED_TAPS, _UNROLLED_TERMS = 3, 4


def _loops_of_windows(op: Op) -> Counts:
    g = geometry(op)
    rows = window_rows(op) * g.out_w * g.out_c
    taps = inner_taps(op) * g.out_c
    # what compilers know to lie inside isn't asked: half of it where one side alone has padding
    beside = ((g.pad_left > 0) + g.pads_right) / 2
    above = ((g.pad_top > 0) + g.pads_bottom) / 2
    asked = g.out_h * g.out_w * g.out_c * g.kernel_h
    return {
        "asked_rows": asked,
        "padded_rows": asked * above,
        "inner_rows": rows,
        "divided_rows": rows * (g.in_h & (g.in_h - 1) > 0),  # by a height that is no power of two
        "short_padded_rows": rows * beside * (g.kernel_w <= _UNROLLED_TAPS),
        "asked_taps": rows * g.kernel_w,
        "padded_taps": rows * g.kernel_w * beside,
        "inner_taps": taps,
        "inner_macs": taps * op.operand(1).elements // (g.kernel_h * g.kernel_w * g.out_c),
    }
