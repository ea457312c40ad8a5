"""Fully connected layers by five outputs (runtime_c/tinyfuse_dense_fives.h)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tinyfuse.ir import Array, Int64s, Op
from tinyfuse.kernels.base import CallSite, Constant, Context, proven
from tinyfuse.kernels.c_constants import c_constant
from tinyfuse.kernels.convolution_counts import layer_counts
from tinyfuse.kernels.counts import Counts, kept
from tinyfuse.kernels.fully_connected import DenseWide
from tinyfuse.kernels.packing import folded_bias, output_fields
from tinyfuse.kernels.rows import vectors
from tinyfuse.kernels.shared_line import shared_line
from tinyfuse.kernels.statements import Call, Let, Statement

_HEADER = "tinyfuse_dense_fives.h"
#: inputs of a turn of the loop
_TURN = c_constant(_HEADER, "TINYFUSE_FIVES_INPUTS")
#: bytes of its columns
_TURN_BYTES = c_constant(_HEADER, "TINYFUSE_FIVES_TURN_BYTES")
#: of step lines
SHIFT = c_constant(_HEADER, "TINYFUSE_FIVES_SHIFT")


class DenseFives(DenseWide):
    """A layer of one scale whose weights fit lanes, five outputs at a time: fewer cycles, but more instructions."""

    name = "tinyfuse_dense_fives_s8"
    headers = (_HEADER,)
    form_of = DenseWide.name

    def accepts(self, op: Op, context: Context) -> bool:
        target = context.target
        if context.optimize != "speed" or not target.dsp or target.mve or not super().accepts(op, context):
            return False
        out_c, in_c = op.operand(1).shape
        return in_c % _TURN == 0 and _groups(out_c) is not None and _layer(op) is not None

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        """int32: for each five outputs, then each four, what their sums begin with, and of each four inputs a word of
        weights an output."""
        layer, (fives, fours) = proven(_layer(op)), proven(_groups(op.operand(1).shape[0]))
        words = np.concatenate([layer.sums[:, None], layer.words], axis=1)
        of_five, of_four = np.split(words, [5 * fives])
        groups = [*np.split(of_five, max(fives, 1)), *np.split(of_four, max(fours, 1))]
        return (Constant("groups", np.concatenate([group.T.reshape(-1) for group in groups]), "int32_t"),)

    def path(self, op: Op, by_row: bool, context: Context) -> str:
        return "bent_line" if proven(_layer(op)).shift else "step_line"

    def code_path(self, op: Op, by_row: bool, context: Context) -> str:
        return ""

    def counts(self, op: Op, by_row: bool) -> Counts:
        return _counts(op, by_row)

    def scratch(self, op: Op, context: Context) -> int:
        return int(op.operand(1).shape[1]) // _TURN * _TURN_BYTES

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        layer, (out_c, in_c), (pointer, batches) = proven(_layer(op)), op.operand(1).shape, vectors(op, site)
        output, (fives, _) = output_fields(op), proven(_groups(out_c))
        fields = {
            "batches": batches, "in_c": in_c, "out_c": out_c,
            "first_four": 5 * fives * (1 + in_c // 4), "words": out_c * (1 + in_c // 4),
            "multiplier": layer.multiplier, "rounding": layer.rounding, "shift": layer.shift,
            "act_min": output["act_min"], "act_max": output["act_max"],
        }  # fmt: skip
        arguments = ("&p", pointer, site.output.pointer, site.constant("groups"), site.scratch)
        return Let("tinyfuse_dense_fives", "p", fields), Call(self.name, arguments)


@dataclass(frozen=True, eq=False)
class _Fives:
    """words int32 [out_c, in_c / 4], weights in lanes; sums int32 [out_c], what they begin with; the others as
    tinyfuse_dense_fives."""

    words: Array
    sums: Array
    multiplier: int
    rounding: int
    shift: int


@lru_cache(maxsize=512)
def _layer(op: Op) -> _Fives | None:
    """The layer on the line that all its outputs share; None where there is none, or where weights don't fit lanes."""
    words, line = _in_lanes(op.operand(1).values.astype(np.int64)), shared_line(op, SHIFT)
    if words is None or line is None:
        return None
    # X are 128 more than inputs; the sign by which the loop ends, -2^15, is multiplied with a lower lane
    of_x = 128 * op.operand(1).values[:, ::2].sum(1, dtype=np.int64)
    of_sign = -(2**15) * words[:, -_TURN // 4].astype(np.int16).astype(np.int64)
    sums = 256 * (folded_bias(op) - of_x) + line.bias - of_sign
    return _Fives(_wrapped(words), _wrapped(sums), line.multiplier, line.rounding, line.shift if line.bent else 0)


def _in_lanes(weights: Int64s) -> Int64s | None:
    """int64 [out_c, in_c / 4]: each four of weights [out_c, in_c] as a word of lanes (as the header says); None where a
    weight of -128 doesn't fit, as it does in the second place alone."""
    first, second, third, fourth = (weights[:, at::4] for at in range(4))
    if any((weight == -128).any() for weight in (first, third, fourth)):
        return None
    words: Int64s = ((second - 256 * first) << 16) + ((256 * third - fourth) & 0xFFFF)
    return words


def _wrapped(values: Int64s) -> Array:
    """The lower 32 bits, as int32: sums may pass through values beyond it on their way."""
    return values.astype(np.int32)


@kept
def _counts(op: Op, by_row: bool) -> Counts:
    found, (out_c, in_c) = layer_counts(op, by_row), op.operand(1).shape
    fives, fours = (groups * found["pixels"] for groups in proven(_groups(out_c)))
    return {
        **{name: found[name] for name in ("calls", "pixels", "terms", "clamped_outputs")},
        "fives": fives,
        "five_words": fives * (in_c // 4),
        "fours": fours,
        "four_words": fours * (in_c // 4),
    }


def _groups(out_c: int) -> tuple[int, int] | None:
    """(fives, fours) that make so many outputs, as few fours as can be; None where none do."""
    fours = -out_c % 5
    return ((out_c - 4 * fours) // 5, fours) if 4 * fours <= out_c else None
