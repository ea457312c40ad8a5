"""Layers of int8 data whose weights are int16 in flash: convolutions (runtime_c/tinyfuse_int16_weights.h), and fully
connected layers (runtime_c/tinyfuse_dense_int16_weights.h)."""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import Array, Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Constant, require_proven
from tinyfuse.kernels.core.methods import always, of_operator
from tinyfuse.kernels.core.rows import vectors
from tinyfuse.kernels.core.statements import Call, Expr, Let, Statement
from tinyfuse.kernels.counts.common import Counts, ceil_div, memoized
from tinyfuse.kernels.counts.im2col import packed_counts
from tinyfuse.kernels.counts.layers import layer_counts
from tinyfuse.kernels.layers.common.params import output_fields
from tinyfuse.kernels.layers.int8_dsp.conv import AT_BORDERS, CODE_OF_WINDOWS, has_own_code, kind_of_windows
from tinyfuse.kernels.layers.int8_dsp.dense import DenseWide
from tinyfuse.kernels.layers.int8_dsp.im2col_blocks import Im2colRow, InBlocks, PointwiseInBlocks
from tinyfuse.kernels.layers.int8_dsp.lanes import in_columns, padded, split_even_odd
from tinyfuse.kernels.requantize.half_even import half_even, share_of_single_rounding, single_or_half_even
from tinyfuse.kernels.requantize.single_rounding import SHIFT, SingleRounding, single_rounding
from tinyfuse.kernels.requantize.two_roundings import bounded
from tinyfuse.ops.core.convolution import FLOAT_HALF_EVEN, rounds_by

_PAIRS_BESIDE = "TINYFUSE_PAIRS_SINGLE_ROUNDING_BESIDE"
_PAIRS_BOUNDED, _PAIRS_HALF_EVEN = "TINYFUSE_PAIRS_BOUNDED", "TINYFUSE_PAIRS_HALF_EVEN"


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
        return (_pairs_form(op, context),)

    def path(self, op: Op, by_row: bool, context: Context) -> str:
        return "loads beside products" if _pairs_form(op, context) == _PAIRS_BESIDE else ""

    def code_path(self, op: Op, by_row: bool, context: Context) -> str:
        return {_PAIRS_BOUNDED: "bounded", _PAIRS_HALF_EVEN: "half_even"}.get(_pairs_form(op, context), "")

    def counts(self, op: Op, by_row: bool) -> Counts:
        return _with_pairs_form(op, layer_counts(op, by_row))


class Int16WeightsConvRow(_Int16Weights, Im2colRow):
    """Convolution of int8 without groups, with int16 weights, a row at a time."""

    name = "tinyfuse_conv_int16_weights_row_s8"
    headers = ("tinyfuse_conv_int16_weights.h",)
    own_code = of_operator(has_own_code)
    calls_too = always(CODE_OF_WINDOWS)

    def counts(self, op: Op, by_row: bool) -> Counts:
        return _with_pairs_form(op, packed_counts(op, by_row))

    def path(self, op: Op, by_row: bool, context: Context) -> str:
        return f"{kind_of_windows(op, True)} {super().path(op, by_row, context)}".strip()

    def code_path(self, op: Op, by_row: bool, context: Context) -> str:
        form = super().code_path(op, by_row, context)
        return f"{form} of its own".lstrip() if has_own_code(op) else form

    def copy_of_code(self, op: Op, context: Context) -> str:
        return AT_BORDERS if self.own_code(op) else super().copy_of_code(op, context)


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


def _pairs_form(op: Op, context: Context | None = None) -> str:
    """Form of the C function. For a dual-issue core, the form of a single rounding places loads beside
    multiplications."""
    if single_rounding(op) is None:
        return _PAIRS_HALF_EVEN if rounds_by(op, FLOAT_HALF_EVEN) else _PAIRS_BOUNDED
    return _PAIRS_BESIDE if context is not None and context.target.dual_issue else "TINYFUSE_PAIRS_SINGLE_ROUNDING"


def _with_pairs_form(op: Op, counts: Counts) -> Counts:
    form = _pairs_form(op)
    # a pair of channels multiplied in float32 costs about as much as one in the bounded form
    share = 1 - share_of_single_rounding(op, 2) if form == _PAIRS_HALF_EVEN else float(form == _PAIRS_BOUNDED)
    return {**counts, "bounded_outputs": counts["outputs"] * share}


def _pairs(op: Op) -> Array:
    """Return int32 words for each pair of output channels: both biases twice, the weights, and both multipliers; with
    two roundings also both shifts and both values of rounding << shift.

    A word holds two weights; with two roundings, weights are multiplied by 256. An odd last channel follows alone, with
    its bias once.
    """
    line, form = single_rounding(op), _pairs_form(op)
    if form == _PAIRS_BOUNDED:
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


_QUADS_BOUNDED, _QUADS_SINGLE_ROUNDING, _QUADS_HALF_EVEN = (
    "TINYFUSE_QUADS_BOUNDED",
    "TINYFUSE_QUADS_SINGLE_ROUNDING",
    "TINYFUSE_QUADS_HALF_EVEN",
)


class Int16WeightsDense(DenseWide):
    """Fully connected layer of int8 with int16 weights without a zero point, four outputs at a time.

    It is requantized with a single rounding if one multiplier serves all outputs, else in the bounded form or, on an
    FPU, half to even. Inputs are converted to int16 in scratch, at most `few_inputs` of them.
    """

    name = "tinyfuse_dense_int16_weights_s8"
    headers = ("tinyfuse_dense_int16_weights.h",)
    form_of = DenseWide.name
    weights = "unpacked"

    def accepts(self, op: Op, context: Context) -> bool:
        asked = context.weights in ("auto", self.weights) and context.target.dsp and not context.target.mve
        few = op.operand(1).shape[1] <= self.few_inputs[context.optimize]
        if rounds_by(op, FLOAT_HALF_EVEN):
            proven = context.target.fpu and half_even(op, 1) is not None
        else:
            proven = bounded(op) is not None
        return asked and few and proven and super().accepts(op, context)

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        """Return the constant "quads", int32, for each four outputs: biases, then the weights of each eight inputs.

        A word has two weights. The bounded form adds multiplier, shift and rounding << shift of each output, half to
        even its scale.
        """
        form, (out_c, in_c), steps = _quads_form(op), op.operand(1).shape, _steps(op)
        quads = -(-out_c // 4)
        weights, channels = np.zeros((4 * quads, 8 * steps), "<i2"), np.zeros((4 * quads, _QUADS_WORDS[form]), np.int64)
        if form == _QUADS_HALF_EVEN:
            even = require_proven(half_even(op, 1))
            weights[:out_c, :in_c] = even.weights
            channels[:out_c] = np.stack([even.bias, even.multiplier], axis=1)
        elif form == _QUADS_BOUNDED:
            layer = require_proven(bounded(op))
            weights[:out_c, :in_c] = layer.weights
            channels[:out_c, :3] = np.stack([layer.channels[name] for name in ("bias", "multiplier", "shift")], axis=1)
            channels[:, 3] = _twice_rounding(op) << channels[:, 2]
        else:
            line = require_proven(_line(op))
            weights[:out_c, :in_c] = 256 * line.weights.astype("<i2")
            channels[:out_c, 0] = line.channels()["bias"]
        words = (
            np.ascontiguousarray(split_even_odd(weights)).view("<i4").reshape(quads, 4, steps, 4).transpose(0, 2, 1, 3)
        )
        parts = channels[:, 0].reshape(quads, 4), words.reshape(quads, -1), channels[:, 1:].reshape(quads, -1)
        return (Constant("quads", np.concatenate(parts, axis=1).reshape(-1).astype("<i4"), "int32_t"),)

    def path(self, op: Op, by_row: bool, context: Context) -> str:
        return "single_rounding" if _quads_form(op) == _QUADS_SINGLE_ROUNDING else "bounded"

    def code_path(self, op: Op, by_row: bool, context: Context) -> str:
        return _quads_form(op).removeprefix("TINYFUSE_QUADS_").lower()

    def counts(self, op: Op, by_row: bool) -> Counts:
        return _quads_counts(op, by_row)

    def scratch(self, op: Op, context: Context) -> int:
        return 16 * _steps(op)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        (out_c, in_c), (pointer, batches) = op.operand(1).shape, vectors(op, site)
        output, form = output_fields(op), _quads_form(op)
        slope, rounding = 0, op.output.zero_point if form == _QUADS_HALF_EVEN else 0
        if form == _QUADS_SINGLE_ROUNDING:
            slope, rounding = int(require_proven(_line(op)).multiplier[0]), _twice_rounding(op) << (SHIFT - 1)
        fields = {
            "batches": batches, "in_c": in_c, "out_c": out_c,
            "multiplier": slope, "rounding": rounding,
            "act_min": output["act_min"], "act_max": output["act_max"],
        }  # fmt: skip
        arguments = ("&p", pointer, site.output.pointer, site.constant("quads"), form, site.scratch)
        return Let("tinyfuse_dense_int16_weights", "p", fields), Call(self.name, arguments)


def _line(op: Op) -> SingleRounding | None:
    """Return the layer's single-rounding requantization; None if it has none, or outputs have several multipliers."""
    line = single_rounding(op)
    return line if line is not None and len(set(line.multiplier.tolist())) == 1 else None


#: words that an output has besides its weights
_QUADS_WORDS = {_QUADS_BOUNDED: 4, _QUADS_SINGLE_ROUNDING: 1, _QUADS_HALF_EVEN: 2}


def _quads_form(op: Op) -> str:
    """Return the form of the C function."""
    if _line(op) is not None:
        return _QUADS_SINGLE_ROUNDING
    return _QUADS_HALF_EVEN if rounds_by(op, FLOAT_HALF_EVEN) else _QUADS_BOUNDED


@memoized
def _quads_counts(op: Op, by_row: bool) -> Counts:
    """Return the counts of groups of four outputs (quads).

    quad_eights      groups of eight inputs
    quad_iterations  loop iterations, of four such groups each
    passes           loops over whole quads, and over a last one that is not whole
    """
    found, out_c, steps = layer_counts(op, by_row), op.operand(1).shape[0], _steps(op)
    names = ("calls", "pixels", "terms", "byte_pixels", "clamped_outputs", "quads")
    return {
        **{name: found[name] for name in names},
        "quad_eights": found["quads"] * steps,
        "quad_iterations": found["quads"] * ceil_div(steps, 4),
        "passes": found["pixels"] * ((out_c > 3) + (out_c % 4 > 0)),
    }


def _twice_rounding(op: Op) -> int:
    """Return twice the sum of the output zero point and a half."""
    return 2 * op.output.zero_point + 1


def _steps(op: Op) -> int:
    """Return the groups of eight inputs, the last one padded with zeros."""
    in_c: int = op.operand(1).shape[1]
    return -(-in_c // 8)
