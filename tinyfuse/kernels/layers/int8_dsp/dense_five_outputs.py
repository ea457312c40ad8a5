"""Fully connected layers by five outputs (runtime_c/tinyfuse_dense_five_outputs.h)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tinyfuse.ir import Array, Int64s, Op
from tinyfuse.kernels.core.c_constants import c_constant
from tinyfuse.kernels.core.kernel import CallSite, Constant, Context, require_proven
from tinyfuse.kernels.core.rows import vectors
from tinyfuse.kernels.core.statements import Call, Let, Statement
from tinyfuse.kernels.counts.common import Counts, ceil_div, memoized
from tinyfuse.kernels.counts.layers import layer_counts
from tinyfuse.kernels.layers.common.params import output_fields
from tinyfuse.kernels.layers.int8_dsp.dense import DenseWide
from tinyfuse.kernels.requantize.per_tensor_rounding import per_tensor_rounding
from tinyfuse.kernels.requantize.two_roundings import folded_bias

_HEADER = "tinyfuse_dense_five_outputs.h"
#: fours of inputs of an iteration of the loop
_STEPS = c_constant(_HEADER, "TINYFUSE_FIVE_OUTPUTS_STEPS")
#: of step lines, and of signed_rounding ones whose sums are steady
SHIFT = c_constant(_HEADER, "TINYFUSE_FIVE_OUTPUTS_SHIFT")
#: how outputs are requantized: C's names and paths
FORMS = {
    "TINYFUSE_FIVE_OUTPUTS_LINE": "single_rounding",
    "TINYFUSE_FIVE_OUTPUTS_SIGNED_ROUNDING": "signed_rounding",
    "TINYFUSE_FIVE_OUTPUTS_ANY": "any_signed_rounding",
}


class DenseFiveOutputs(DenseWide):
    """A layer of one scale whose weights fit lanes, five outputs at a time: fewer cycles, but more instructions."""

    name = "tinyfuse_dense_five_outputs_s8"
    headers = (_HEADER,)
    form_of = DenseWide.name

    def accepts(self, op: Op, context: Context) -> bool:
        out_c, in_c = op.operand(1).shape
        return in_c % 4 == 0 and _groups(out_c) is not None and self.has_lanes(op, context)

    def has_lanes(self, op: Op, context: Context) -> bool:
        """Whether cycles count on a core that it saves some, and weights fit lanes, and one line all outputs."""
        target = context.target
        counted = context.optimize == "speed" and context.cycles is not None and target.dsp and not target.mve
        return counted and super().accepts(op, context) and five_outputs_layer(op) is not None

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        """int32: what all groups share; for each five outputs, then each four, what their sums begin with, and of each
        four inputs a word of weights an output."""
        layer, (out_c, in_c) = require_proven(five_outputs_layer(op)), op.operand(1).shape
        fives, fours = require_proven(_groups(out_c))
        # the sign by which the loop ends, -2^15, is multiplied with a lower lane
        sums = layer.sums + 2**15 * layer.words[:, -1].astype(np.int16).astype(np.int64)
        words = np.concatenate([wrapped(sums)[:, None], layer.words], axis=1)
        of_five, of_four = np.split(words, [5 * fives])
        groups = [*np.split(of_five, max(fives, 1)), *np.split(of_four, max(fours, 1))]
        first = (in_c // 4 - 1) % _STEPS + 1
        inputs = (in_c << 12) + (first << 8) + layer.shift
        shared = np.array([*layer.line, of_five.nbytes, of_four.nbytes, inputs], np.int32)
        return (Constant("groups", np.concatenate([shared, *(group.T.reshape(-1) for group in groups)]), "int32_t"),)

    def path(self, op: Op, by_row: bool, context: Context) -> str:
        return FORMS[require_proven(five_outputs_layer(op)).form]

    def code_path(self, op: Op, by_row: bool, context: Context) -> str:
        path = self.path(op, by_row, context)
        return "signed_rounding" if path == "any_signed_rounding" else path  # functions of much the same size

    def counts(self, op: Op, by_row: bool) -> Counts:
        return _counts(op, by_row)

    def scratch(self, op: Op, context: Context) -> int:
        steps: int = op.operand(1).shape[1] // 4
        return 4 * (steps + ceil_div(steps, _STEPS))

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        (out_c, in_c), (pointer, batches), output = op.operand(1).shape, vectors(op, site), output_fields(op)
        fields = {
            "batches": batches, "in_c": in_c, "out_c": out_c, "form": require_proven(five_outputs_layer(op)).form,
            "act_min": output["act_min"], "act_max": output["act_max"],
        }  # fmt: skip
        arguments = ("&p", pointer, site.output.pointer, site.constant("groups"), site.scratch)
        return Let("tinyfuse_dense_five_outputs", "p", fields), Call(self.name, arguments)


@dataclass(frozen=True, eq=False)
class FiveOutputs:
    """words int32 [out_c, in_c / 4], weights in lanes; sums int64 [out_c], what they begin with; the others as groups
    and tinyfuse_dense_five_outputs have them."""

    words: Array
    sums: Int64s
    multiplier: int
    rounding: int
    shift: int
    form: str

    @property
    def line(self) -> tuple[int, ...]:
        """What is loaded first."""
        return (self.multiplier,) if self.form == "TINYFUSE_FIVE_OUTPUTS_LINE" else (self.multiplier, self.rounding)


@lru_cache(maxsize=512)
def five_outputs_layer(op: Op) -> FiveOutputs | None:
    """The layer on the line that all its outputs share; None where there is none, or where weights don't fit lanes."""
    words, line = _in_lanes(op.operand(1).values.astype(np.int64)), per_tensor_rounding(op, SHIFT)
    if words is None or line is None:
        return None
    of_x = 128 * op.operand(1).values[:, ::2].sum(1, dtype=np.int64)  # X are 128 more than inputs
    sums = 256 * (folded_bias(op) - of_x) + line.bias
    line_form, signed_rounding_form, any_form = FORMS
    signed_rounding = signed_rounding_form if line.steady and line.shift == SHIFT else any_form
    form = signed_rounding if line.bend else line_form
    return FiveOutputs(wrapped(words), sums, line.multiplier, line.rounding, line.shift, form)


def _in_lanes(weights: Int64s) -> Int64s | None:
    """int64 [out_c, in_c / 4]: each four of weights [out_c, in_c] as a word of lanes (as the header says); None where a
    weight of -128 doesn't fit, as it does in the second place alone."""
    first, second, third, fourth = (weights[:, at::4] for at in range(4))
    if any((weight == -128).any() for weight in (first, third, fourth)):
        return None
    words: Int64s = ((second - 256 * first) << 16) + ((256 * third - fourth) & 0xFFFF)
    return words


def wrapped(values: Int64s) -> Array:
    """The lower 32 bits, as int32: sums may pass through values beyond it on their way."""
    return values.astype(np.int32)


@memoized
def _counts(op: Op, by_row: bool) -> Counts:
    """Of groups of five and of four outputs: words of weights an output, and iterations of the loop."""
    found, (out_c, in_c) = layer_counts(op, by_row), op.operand(1).shape
    fives, fours = (groups * found["pixels"] for groups in require_proven(_groups(out_c)))
    iterations = ceil_div(in_c // 4, _STEPS)
    return {
        **{name: found[name] for name in ("calls", "pixels", "terms", "clamped_outputs")},
        "fives": fives,
        "five_words": fives * (in_c // 4),
        "five_iterations": fives * iterations,
        "fours": fours,
        "four_words": fours * (in_c // 4),
        "four_iterations": fours * iterations,
    }


def _groups(out_c: int) -> tuple[int, int] | None:
    """(fives, fours) that make so many outputs, as few fours as can be; None where none do."""
    fours = -out_c % 5
    return ((out_c - 4 * fours) // 5, fours) if 4 * fours <= out_c else None
