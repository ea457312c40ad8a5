"""Fully connected layers, five outputs at a time (runtime_c/tinyfuse_dense_five_outputs.h)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tinyfuse.ir import Array, Int64s, Op
from tinyfuse.kernels.core.c_constants import c_constant
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Constant, require_proven
from tinyfuse.kernels.core.rows import vectors
from tinyfuse.kernels.core.statements import Call, Let, Statement
from tinyfuse.kernels.counts.common import Counts, ceil_div, memoized
from tinyfuse.kernels.counts.layers import layer_counts
from tinyfuse.kernels.layers.common.params import output_fields
from tinyfuse.kernels.layers.int8_dsp.dense import DenseWide
from tinyfuse.kernels.requantize.layer_facts import layer_facts
from tinyfuse.kernels.requantize.per_tensor_rounding import per_tensor_rounding

_HEADER = "tinyfuse_dense_five_outputs.h"
#: groups of four inputs that an iteration of the C's loop multiplies
_STEPS = c_constant(_HEADER, "TINYFUSE_FIVE_OUTPUTS_STEPS")
#: right shift of single-rounding requantization, and of sign-dependent rounding with `steady` sums
SHIFT = c_constant(_HEADER, "TINYFUSE_FIVE_OUTPUTS_SHIFT")
#: forms of requantization: the C's name -> the cost path
FORMS = {
    "TINYFUSE_FIVE_OUTPUTS_SINGLE_ROUNDING": "single_rounding",
    "TINYFUSE_FIVE_OUTPUTS_SIGNED_ROUNDING": "signed_rounding",
    "TINYFUSE_FIVE_OUTPUTS_ANY": "any_signed_rounding",
}


class DenseFiveOutputs(DenseWide):
    """Fully connected layer of int8 with one scale and weights that fit packed lanes, five outputs at a time.

    It takes fewer cycles but more instructions than four outputs at a time.
    """

    name = "tinyfuse_dense_five_outputs_s8"
    headers = (_HEADER,)
    form_of = DenseWide.name

    def accepts(self, op: Op, context: Context) -> bool:
        out_c, in_c = op.operand(1).shape
        fits, target = in_c % 4 == 0 and _groups(out_c) is not None, context.target
        counted = context.optimize == "speed" and context.cycles is not None and target.dsp and not target.mve
        return fits and counted and super().accepts(op, context) and five_outputs_layer(op) is not None

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        """Return the constant "groups", int32: values that all groups share, then the groups of five outputs, then
        those of four.

        A group has the initial value of each sum, then for each four inputs one word of weights per output.
        """
        layer, (out_c, in_c) = require_proven(five_outputs_layer(op)), op.operand(1).shape
        fives, quads = require_proven(_groups(out_c))
        # the inputs end with a marker of -2^15, which the loop multiplies by the lower lane of the last weights: the
        # initial sums compensate for it
        sums = layer.sums + 2**15 * layer.words[:, -1].astype(np.int16).astype(np.int64)
        words = np.concatenate([wrapped(sums)[:, None], layer.words], axis=1)
        of_five, of_four = np.split(words, [5 * fives])
        groups = [*np.split(of_five, max(fives, 1)), *np.split(of_four, max(quads, 1))]
        first = (in_c // 4 - 1) % _STEPS + 1
        inputs = (in_c << 12) + (first << 8) + layer.shift
        shared = np.array([*layer.first_words, of_five.nbytes, of_four.nbytes, inputs], np.int32)
        return (Constant("groups", np.concatenate([shared, *(group.T.reshape(-1) for group in groups)]), "int32_t"),)

    def path(self, op: Op, by_row: bool, context: Context) -> str:
        return FORMS[require_proven(five_outputs_layer(op)).form]

    def code_path(self, op: Op, by_row: bool, context: Context) -> str:
        path = self.path(op, by_row, context)
        return "signed_rounding" if path == "any_signed_rounding" else path  # both functions have much the same size

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
    """Constants of a fully connected layer for tinyfuse_dense_five_outputs_s8.

    words                        int32 [out_c, in_c / 4]: four weights in lanes each
    sums                         int64 [out_c]: initial value of each sum
    multiplier, rounding, shift  requantization of all outputs
    form                         a key of `FORMS`
    """

    words: Array
    sums: Int64s
    multiplier: int
    rounding: int
    shift: int
    form: str

    @property
    def first_words(self) -> tuple[int, ...]:
        """Words that the C loads before the groups: the multiplier, and the rounding constant unless the sums include
        it."""
        in_sums = FORMS[self.form] == "single_rounding"
        return (self.multiplier,) if in_sums else (self.multiplier, self.rounding)


@lru_cache(maxsize=512)
def five_outputs_layer(op: Op) -> FiveOutputs | None:
    """Return the layer with one requantization for all outputs; None if there is none or weights don't fit lanes."""
    words, line = _in_lanes(op.operand(1).values.astype(np.int64)), per_tensor_rounding(op, SHIFT)
    if words is None or line is None:
        return None
    of_x = 128 * op.operand(1).values[:, ::2].sum(1, dtype=np.int64)  # the C adds 128 to each input
    sums = 256 * (layer_facts(op).bias - of_x) + line.bias
    line_form, signed_rounding_form, any_form = FORMS
    signed_rounding = signed_rounding_form if line.steady and line.shift == SHIFT else any_form
    form = signed_rounding if line.bend else line_form
    return FiveOutputs(wrapped(words), sums, line.multiplier, line.rounding, line.shift, form)


def _in_lanes(weights: Int64s) -> Int64s | None:
    """Return weights [out_c, in_c] as int64 [out_c, in_c / 4]: each word packs four weights into the lanes of
    runtime_c/tinyfuse_dense_five_outputs.h. None if a weight of -128 is not the second one of its four, the only lane
    that it fits."""
    first, second, third, fourth = (weights[:, at::4] for at in range(4))
    if any((weight == -128).any() for weight in (first, third, fourth)):
        return None
    words: Int64s = ((second - 256 * first) << 16) + ((256 * third - fourth) & 0xFFFF)
    return words


def wrapped(values: Int64s) -> Array:
    """Return the lower 32 bits as int32: intermediate sums may leave its range."""
    return values.astype(np.int32)


@memoized
def _counts(op: Op, by_row: bool) -> Counts:
    """Return the counts of groups of five and of four outputs: groups, words of weights an output, loop iterations."""
    found, (out_c, in_c) = layer_counts(op, by_row), op.operand(1).shape
    fives, quads = (groups * found["pixels"] for groups in require_proven(_groups(out_c)))
    iterations = ceil_div(in_c // 4, _STEPS)
    return {
        **{name: found[name] for name in ("calls", "pixels", "terms", "clamped_outputs")},
        "fives": fives,
        "five_words": fives * (in_c // 4),
        "five_iterations": fives * iterations,
        "fours": quads,
        "four_words": quads * (in_c // 4),
        "four_iterations": quads * iterations,
    }


def _groups(out_c: int) -> tuple[int, int] | None:
    """Return (groups of five, groups of four) that make `out_c` outputs, with the fewest groups of four; None if none
    do."""
    quads = -out_c % 5
    return ((out_c - 4 * quads) // 5, quads) if 4 * quads <= out_c else None
