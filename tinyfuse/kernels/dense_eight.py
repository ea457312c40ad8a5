"""Fully connected layers of eight inputs (runtime_c/tinyfuse_dense_eight.h)."""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import Op
from tinyfuse.kernels.base import CallSite, Constant, Context, proven
from tinyfuse.kernels.c_constants import c_constant
from tinyfuse.kernels.convolution_counts import layer_counts
from tinyfuse.kernels.counts import Counts, kept, round_up
from tinyfuse.kernels.dense_fives import DenseFives, fives_layer, wrapped
from tinyfuse.kernels.packing import output_fields
from tinyfuse.kernels.rows import vectors
from tinyfuse.kernels.statements import Call, Let, Statement

_HEADER = "tinyfuse_dense_eight.h"
#: pairs of outputs of an iteration of the loop
_PAIRS = c_constant(_HEADER, "TINYFUSE_EIGHT_PAIRS")


class DenseEight(DenseFives):
    """A layer as those by five outputs whose inputs stay in registers, two outputs at a time."""

    name = "tinyfuse_dense_eight_s8"
    headers = (_HEADER,)

    def accepts(self, op: Op, context: Context) -> bool:
        out_c, in_c = op.operand(1).shape
        return in_c == 8 and out_c % 2 == 0 and self.has_lanes(op, context)

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        """int32: what all outputs share; of each what its sum begins with, of each four inputs a word of weights."""
        layer = proven(fives_layer(op))
        words = np.concatenate([wrapped(layer.sums)[:, None], layer.words], axis=1)
        first = (len(words) // 2 - 1) % _PAIRS + 1
        shared = [*layer.line, words.nbytes, (first << 8) + layer.shift]
        return (Constant("pairs", np.concatenate([np.array(shared, np.int32), words.reshape(-1)]), "int32_t"),)

    def counts(self, op: Op, by_row: bool) -> Counts:
        return _counts(op, by_row)

    def scratch(self, op: Op, context: Context) -> int:
        return 0

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        (pointer, batches), output = vectors(op, site), output_fields(op)
        fields = {
            "batches": batches, "out_c": op.operand(1).shape[0], "form": proven(fives_layer(op)).form,
            "act_min": output["act_min"], "act_max": output["act_max"],
        }  # fmt: skip
        arguments = ("&p", pointer, site.output.pointer, site.constant("pairs"))
        return Let("tinyfuse_dense_eight", "p", fields), Call(self.name, arguments)


@kept
def _counts(op: Op, by_row: bool) -> Counts:
    """Pairs of outputs, and iterations of them."""
    found = layer_counts(op, by_row)
    pairs = op.operand(1).shape[0] // 2
    return {
        **{name: found[name] for name in ("calls", "pixels", "clamped_outputs")},
        "pairs": found["pixels"] * pairs,
        "iterations": found["pixels"] * round_up(pairs, _PAIRS),
    }
