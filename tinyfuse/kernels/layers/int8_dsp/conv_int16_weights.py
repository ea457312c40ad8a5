"""Convolutions of int8 data whose weights are int16 in flash (runtime_c/tinyfuse_int16_weights.h)."""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import Array, Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import Constant, require_proven
from tinyfuse.kernels.core.methods import of_operator
from tinyfuse.kernels.core.statements import Expr
from tinyfuse.kernels.counts.common import Counts
from tinyfuse.kernels.counts.im2col import packed_counts
from tinyfuse.kernels.counts.layers import layer_counts
from tinyfuse.kernels.layers.int8_dsp.conv import AT_BORDERS, CODE_OF_WINDOWS, has_own_code, kind_of_windows
from tinyfuse.kernels.layers.int8_dsp.im2col_blocks import Im2colRow, InBlocks, PointwiseInBlocks
from tinyfuse.kernels.layers.int8_dsp.lanes import in_columns, padded, split_even_odd
from tinyfuse.kernels.requantize.half_even import half_even, share_of_single_rounding, single_or_half_even
from tinyfuse.kernels.requantize.single_rounding import single_rounding
from tinyfuse.kernels.requantize.two_roundings import bounded
from tinyfuse.ops.core.convolution import FLOAT_HALF_EVEN, rounds_by

_BESIDE = "TINYFUSE_PAIRS_SINGLE_ROUNDING_BESIDE"
_BOUNDED, _HALF_EVEN = "TINYFUSE_PAIRS_BOUNDED", "TINYFUSE_PAIRS_HALF_EVEN"


class _Int16Weights(InBlocks):
    """Layer with int16 weights in flash. Sums are requantized with a single rounding if that is exact, else with two
    roundings without overflow or, on an FPU, in float32 half to even."""

    weights = "unpacked"

    def accepts(self, op: Op, context: Context) -> bool:
        asked = context.weights in ("auto", self.weights)
        pairs = context.target.dsp and not context.target.mve
        return asked and pairs and super().accepts(op, context) and _is_proven(op, context)

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return (Constant("pairs", _pairs(op), "int32_t"),)

    def last_arguments(self, op: Op, context: Context) -> tuple[Expr, ...]:
        return (_form(op, context),)

    def path(self, op: Op, by_row: bool, context: Context) -> str:
        return "loads beside products" if _form(op, context) == _BESIDE else ""

    def code_path(self, op: Op, by_row: bool, context: Context) -> str:
        return {_BOUNDED: "bounded", _HALF_EVEN: "half_even"}.get(_form(op, context), "")

    def counts(self, op: Op, by_row: bool) -> Counts:
        return _with_form(op, layer_counts(op, by_row))


class Int16WeightsConvRow(_Int16Weights, Im2colRow):
    """Convolution of int8 without groups, with int16 weights, a row at a time."""

    name = "tinyfuse_conv_int16_weights_row_s8"
    headers = ("tinyfuse_conv_int16_weights.h",)
    own_code = of_operator(has_own_code)

    def counts(self, op: Op, by_row: bool) -> Counts:
        return _with_form(op, packed_counts(op, by_row))

    def path(self, op: Op, by_row: bool, context: Context) -> str:
        return f"{kind_of_windows(op, True)} {super().path(op, by_row, context)}".strip()

    def code_path(self, op: Op, by_row: bool, context: Context) -> str:
        form = super().code_path(op, by_row, context)
        return f"{form} of its own".lstrip() if has_own_code(op) else form

    def copy_of_code(self, op: Op, context: Context) -> str:
        return AT_BORDERS if self.own_code(op) else super().copy_of_code(op, context)

    def calls_too(self, op: Op) -> tuple[str, ...]:
        return CODE_OF_WINDOWS


class Int16WeightsPointwise(_Int16Weights, PointwiseInBlocks):
    """1x1 convolution of int8 with stride 1 and int16 weights."""

    name = "tinyfuse_pointwise_int16_weights_s8"
    headers = ("tinyfuse_pointwise_int16_weights.h",)


def _is_proven(op: Op, context: Context) -> bool:
    """Tell whether the layer has one of the C's forms."""
    if single_rounding(op) is not None:
        return True
    if rounds_by(op, FLOAT_HALF_EVEN):
        return context.target.fpu and half_even(op, 256) is not None
    return bounded(op) is not None


def _form(op: Op, context: Context | None = None) -> str:
    """Form of the C function. For a dual-issue core, the form of a single rounding places loads beside
    multiplications."""
    if single_rounding(op) is None:
        return _HALF_EVEN if rounds_by(op, FLOAT_HALF_EVEN) else _BOUNDED
    return _BESIDE if context is not None and context.target.dual_issue else "TINYFUSE_PAIRS_SINGLE_ROUNDING"


def _with_form(op: Op, counts: Counts) -> Counts:
    form = _form(op)
    # a pair of channels multiplied in float32 costs about as much as one in the bounded form
    share = 1 - share_of_single_rounding(op, 2) if form == _HALF_EVEN else float(form == _BOUNDED)
    return {**counts, "bounded_outputs": counts["outputs"] * share}


def _pairs(op: Op) -> Array:
    """Return int32 words for each pair of output channels: both biases twice, the weights, and both multipliers; with
    two roundings also both shifts and both values of rounding << shift.

    A word holds two weights; with two roundings, weights are multiplied by 256. An odd last channel follows alone, with
    its bias once.
    """
    line, form = single_rounding(op), _form(op)
    if form == _BOUNDED:
        twice = require_proven(bounded(op))
        channels, in_order = twice.channels, _in_order(op, twice.weights)
        rounding = (2 * op.output.zero_point + 1) << channels["shift"].astype(np.int64)
        scales = np.stack([channels["multiplier"], channels["shift"], rounding], axis=1)
    else:
        once = require_proven(half_even(op, 256)) if line is None else line
        channels = _single_or_half_even(op) if line is None else line.channels()
        in_order = 256 * _in_order(op, once.weights)
        scales = channels["multiplier"][:, None]
    words = np.ascontiguousarray(split_even_odd(in_order)).view("<i4")[..., 0]  # [out_c, steps, 2]
    even = len(words) // 2 * 2
    biases = channels["bias"][:even].reshape(-1, 2)
    of_pairs = (
        words[:even].reshape(-1, 2, *words.shape[1:]).transpose(0, 2, 3, 1).reshape(even // 2, 4 * words.shape[1])
    )
    of_both = (
        scales[:even].reshape(even // 2, 2, scales.shape[1]).transpose(0, 2, 1).reshape(even // 2, 2 * scales.shape[1])
    )
    last = [part.reshape(-1) for part in (channels["bias"][even:], words[even:], scales[even:])]
    pairs = np.concatenate([biases, biases, of_pairs, of_both], axis=1)
    return np.concatenate([pairs.reshape(-1), *last]).astype("<i4")


def _in_order(op: Op, weights: Array) -> Array:
    """Return weights int16 [out_c, depth] in the order of a column's inputs."""
    return padded(op, in_columns(op, weights)).astype("<i2")


def _single_or_half_even(op: Op) -> Array:
    """Return SINGLE_ROUNDING parameters [out_c]; pairs of channels are computed together."""
    out_c = op.output.shape[-1]
    pairs = np.minimum(np.arange(out_c + out_c % 2), out_c - 1).reshape(-1, 2)
    return single_or_half_even(op, pairs).reshape(-1)[:out_c]
