"""Fully connected layers of int8 data whose weights are int16 in flash (runtime_c/tinyfuse_dense_int16_weights.h)."""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Constant, require_proven
from tinyfuse.kernels.core.rows import vectors
from tinyfuse.kernels.core.statements import Call, Let, Statement
from tinyfuse.kernels.counts.common import Counts, ceil_div, memoized
from tinyfuse.kernels.counts.layers import layer_counts
from tinyfuse.kernels.layers.common.params import output_fields
from tinyfuse.kernels.layers.int8_dsp.dense import DenseWide
from tinyfuse.kernels.layers.int8_dsp.lanes import split_even_odd
from tinyfuse.kernels.requantize.half_even import half_even
from tinyfuse.kernels.requantize.single_rounding import SHIFT, SingleRounding, single_rounding
from tinyfuse.kernels.requantize.two_roundings import bounded
from tinyfuse.ops.core.convolution import FLOAT_HALF_EVEN, rounds_by

_BOUNDED, _SINGLE_ROUNDING, _HALF_EVEN = (
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
        form, (out_c, in_c), steps = _form(op), op.operand(1).shape, _steps(op)
        quads = -(-out_c // 4)
        weights, channels = np.zeros((4 * quads, 8 * steps), "<i2"), np.zeros((4 * quads, _WORDS[form]), np.int64)
        if form == _HALF_EVEN:
            even = require_proven(half_even(op, 1))
            weights[:out_c, :in_c] = even.weights
            channels[:out_c] = np.stack([even.bias, even.multiplier], axis=1)
        elif form == _BOUNDED:
            layer = require_proven(bounded(op))
            weights[:out_c, :in_c] = layer.weights
            channels[:out_c, :3] = np.stack([layer.channels[name] for name in ("bias", "multiplier", "shift")], axis=1)
            channels[:, 3] = _rounding(op) << channels[:, 2]
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
        return "single_rounding" if _form(op) == _SINGLE_ROUNDING else "bounded"

    def code_path(self, op: Op, by_row: bool, context: Context) -> str:
        return _form(op).removeprefix("TINYFUSE_QUADS_").lower()

    def counts(self, op: Op, by_row: bool) -> Counts:
        return _counts(op, by_row)

    def scratch(self, op: Op, context: Context) -> int:
        return 16 * _steps(op)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        (out_c, in_c), (pointer, batches) = op.operand(1).shape, vectors(op, site)
        output, form = output_fields(op), _form(op)
        slope, rounding = 0, op.output.zero_point if form == _HALF_EVEN else 0
        if form == _SINGLE_ROUNDING:
            slope, rounding = int(require_proven(_line(op)).multiplier[0]), _rounding(op) << (SHIFT - 1)
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
_WORDS = {_BOUNDED: 4, _SINGLE_ROUNDING: 1, _HALF_EVEN: 2}


def _form(op: Op) -> str:
    """Return the form of the C function."""
    if _line(op) is not None:
        return _SINGLE_ROUNDING
    return _HALF_EVEN if rounds_by(op, FLOAT_HALF_EVEN) else _BOUNDED


@memoized
def _counts(op: Op, by_row: bool) -> Counts:
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


def _rounding(op: Op) -> int:
    """Return twice the sum of the output zero point and a half."""
    return 2 * op.output.zero_point + 1


def _steps(op: Op) -> int:
    """Return the groups of eight inputs, the last one padded with zeros."""
    in_c: int = op.operand(1).shape[1]
    return -(-in_c // 8)
