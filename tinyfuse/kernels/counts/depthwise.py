"""Counts of depthwise convolutions.

Loop counts are explained in `tinyfuse.kernels.counts.common`. Names with "four" and "quad" count groups of four
channels, with "eight" and "sixteen" groups of 8 and 16; "pairs" are two taps.
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
from tinyfuse.kernels.counts.layers import pixels_of_calls
from tinyfuse.kernels.counts.padding import inner_taps
from tinyfuse.ops.core.convolution import geometry


@memoized
def depthwise_counts(op: Op, by_row: bool, at_once: int = 1) -> Counts:
    """Counts of a depthwise convolution, `at_once` rows a call."""
    g = geometry(op)
    of_calls = pixels_of_calls(op, g.out_h * g.out_w, by_row, at_once)
    calls, rests = sum([count for count, _ in of_calls]), sum([count * (each % 4) for count, each in of_calls])
    fours = ceil_div(g.out_c, 4)
    return {
        **_depthwise_counts(op),
        "calls": calls,
        "fours": calls * fours,
        "four_columns": calls * fours * (g.out_w - 1) * g.stride_w + 3 * calls * fours,
        "rest_pixels": rests,
        "rest_pixel_fours": rests * fours,
        "rest_pixel_taps": rests * fours * g.kernel_h * g.kernel_w,
    }


@memoized
def _depthwise_counts(op: Op) -> Counts:
    """Counts that do not depend on the number of calls."""
    g = geometry(op)
    taps, pixels, inner = g.kernel_h * g.kernel_w, g.out_h * g.out_w, inner_taps(op)
    fours, eights, sixteens = ceil_div(g.out_c, 4), ceil_div(g.out_c, 8), ceil_div(g.out_c, 16)
    pairs = ceil_div(taps, 2)
    return {
        "pixels": pixels,
        "tap_rows": pixels * g.kernel_h,
        "taps": pixels * taps,
        "pairs": pixels * pairs,
        "border_taps": pixels * taps - inner,
        "outputs": pixels * g.out_c,
        "signed_outputs": count_signed_outputs(op),
        "clamped_outputs": count_clamped_outputs(op),
        "narrowed_outputs": count_narrowed_outputs(op),
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


def paired_depthwise_words(op: Op) -> int:
    """Number of input words per output row and channel. A word holds the inputs of two outputs, one from each half of
    the row (runtime_c/tinyfuse_depthwise_paired.h)."""
    g = geometry(op)
    words: int = ((ceil_div(g.out_w, 2) - 1) * g.stride_w + g.kernel_w) * g.kernel_h
    return words


@memoized
def paired_depthwise_counts(op: Op, by_row: bool) -> Counts:
    """Counts of a depthwise convolution that computes two outputs of a channel in one word."""
    g, words = geometry(op), ceil_div(paired_depthwise_words(op), 2)
    twos = g.out_h * ceil_div(g.out_w, 2)
    return {
        "calls": g.out_h,
        "channels": g.out_h * g.in_c,
        "twos": g.out_h * words,
        "channel_twos": g.out_h * g.in_c * words,
        "outputs": twos * g.in_c,
        "pairs": twos * g.in_c * ceil_div(g.kernel_h * g.kernel_w, 2),
        "narrowed_outputs": count_narrowed_outputs(op),
        "clamped_outputs": count_clamped_outputs(op),
    }


@memoized
def interleaved_depthwise_counts(op: Op, by_row: bool, outputs: int, channels: int) -> Counts:
    """Counts of a depthwise convolution that computes chunks of `outputs` outputs of a row, `channels` channels at a
    time. For each chunk, it regroups the input's columns into planes of columns that are `stride_w` apart."""
    calls, g = count_calls(op, by_row), geometry(op)
    chunks, groups = calls * ceil_div(g.out_w, outputs), ceil_div(g.in_c, channels)
    planes = min(g.stride_w, g.kernel_w)
    reads = calls * (
        g.out_w * planes + ceil_div(g.out_w, outputs) * sum((g.kernel_w - 1 - k) // g.stride_w for k in range(planes))
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
