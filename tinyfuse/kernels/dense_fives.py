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
from tinyfuse.kernels.matmul import LANES, STEP_LINE, dense_layer, matmul_layer
from tinyfuse.kernels.packing import one_scale, output_fields
from tinyfuse.kernels.rows import vectors
from tinyfuse.kernels.statements import Call, Let, Statement
from tinyfuse.kernels.step_line import SHIFT

_HEADER = "tinyfuse_dense_fives.h"
#: inputs of a turn of the loop
_TURN = c_constant(_HEADER, "TINYFUSE_FIVES_INPUTS")


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
        return in_c % _TURN == 0 and _groups(out_c) is not None and _layer(op, context) is not None

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        """int32: for each five outputs, then each four, what their sums begin with, and of each four inputs a word of
        weights an output."""
        layer, (fives, fours) = proven(_layer(op, context)), proven(_groups(op.operand(1).shape[0]))
        words = np.concatenate([layer.biases[:, None], layer.words], axis=1)
        of_five, of_four = np.split(words, [5 * fives])
        groups = [*np.split(of_five, max(fives, 1)), *np.split(of_four, max(fours, 1))]
        return (Constant("groups", np.concatenate([group.T.reshape(-1) for group in groups]), "int32_t"),)

    def path(self, op: Op, by_row: bool, context: Context) -> str:
        return "lanes" if proven(_layer(op, context)).shift else "step_line"

    def code_path(self, op: Op, by_row: bool, context: Context) -> str:
        return ""

    def counts(self, op: Op, by_row: bool) -> Counts:
        return _counts(op, by_row)

    def scratch(self, op: Op, context: Context) -> int:
        return 2 * int(op.operand(1).shape[1])

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        layer, (out_c, in_c), (pointer, batches) = proven(_layer(op, context)), op.operand(1).shape, vectors(op, site)
        output, (fives, fours) = output_fields(op), proven(_groups(out_c))
        fields = {
            "batches": batches, "in_c": in_c, "fives": fives, "fours": fours,
            "multiplier": layer.multiplier, "rounding": layer.rounding, "shift": layer.shift,
            "act_min": output["act_min"], "act_max": output["act_max"],
        }  # fmt: skip
        arguments = ("&p", pointer, site.output.pointer, site.constant("groups"), site.scratch)
        return Let("tinyfuse_dense_fives", "p", fields), Call(self.name, arguments)


@dataclass(frozen=True, eq=False)
class _Fives:
    """words int32 [out_c, in_c / 4], weights in lanes; biases int32 [out_c]; the others as tinyfuse_dense_fives."""

    words: Array
    biases: Array
    multiplier: int
    rounding: int
    shift: int


@lru_cache(maxsize=512)
def _layer(op: Op, context: Context) -> _Fives | None:
    """The layer on a step line, else in the bounded form; None where it doesn't fit lanes, or has several scales."""
    rounding = 2 * op.output.zero_point + 1
    layer, shift = dense_layer(op, context), 0
    if layer is None or layer.form != LANES:
        return None
    line = matmul_layer(op, context)
    if line is not None and line.form == STEP_LINE and len(set(line.channels["multiplier"].tolist())) == 1:
        layer, rounding = line, rounding << (SHIFT - 1)
    elif one_scale(layer.channels["multiplier"], layer.channels["shift"]) and layer.channels["shift"][0] > 0:
        shift = int(layer.channels["shift"][0])
        rounding <<= shift
    else:
        return None
    words = layer.weights.view("<i4")
    biases = layer.channels["bias"].astype(np.int64) + 2**15 * _signed_lanes(words)
    return _Fives(words, biases.astype("<i4"), int(layer.channels["multiplier"][0]), rounding, shift)


def _signed_lanes(words: Array) -> Int64s:
    """int64 [out_c]: the lanes that the sign by which the loop ends, -2^15, is multiplied with (as the header says)."""
    lanes: Int64s = (words[:, -_TURN // 4] >> 16).astype(np.int64)
    return lanes


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
