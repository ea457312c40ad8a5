"""FULLY_CONNECTED with int4 weights for cores with the DSP extension (runtime_c/tinyfuse_dense_s4.h).

Weights stay two to a byte in flash.
"""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import INT4, Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Constant, require_proven
from tinyfuse.kernels.core.rows import vectors
from tinyfuse.kernels.core.statements import Call, Let, Statement
from tinyfuse.kernels.counts.common import Counts
from tinyfuse.kernels.counts.layers import layer_counts
from tinyfuse.kernels.layers.common.params import output_fields, scale_constants
from tinyfuse.kernels.layers.int8_dsp.dense import DenseWide
from tinyfuse.kernels.requantize.two_roundings import bounded, has_one_scale

#: upper bounds of a sum in 4096ths, and of a sum of digits in 256ths
_SUMS, _DIGITS = 2**19, 2**23


class Int4Dense(DenseWide):
    """A fully connected layer with int4 weights, four outputs at a time, requantized in the bounded form.

    Inputs are converted to int16 in scratch. For --optimize ram, int8 kernels compute the layer from a byte per weight.
    """

    name = "tinyfuse_dense_s4"
    headers = ("tinyfuse_dense_s4.h",)
    int4_weights = True

    def accepts(self, op: Op, context: Context) -> bool:
        weights = op.operand(1)
        if weights.dtype != INT4 or any(weights.quantization.zero_point):
            return False
        if not context.target.dsp or context.target.mve or context.optimize == "ram" or bounded(op) is None:
            return False
        most = 128 * int(np.abs(require_proven(bounded(op)).weights.astype(np.int64)).sum(axis=1).max())
        return most < _SUMS and 128 * 15 * weights.shape[1] < _DIGITS

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        layer = require_proven(bounded(op))
        out_c, in_c = layer.weights.shape
        quads, depth = -(-out_c // 4), _depth(in_c)
        weights = np.zeros((quads * 4, depth), np.int64)
        weights[:out_c, :in_c] = layer.weights
        digits = weights.reshape(quads, 4, depth // 4, 4)[:, :, :, [0, 2, 1, 3]].reshape(quads, 4, depth)
        digits[:, :3] += 8
        packed = (digits * (1 << 4 * np.arange(4))[:, None]).sum(axis=1).astype("<i2")
        channels = layer.channels[np.minimum(np.arange(quads * 4), out_c - 1)]  # the last channel fills the last four
        return Constant("weights", packed.reshape(-1).view(np.int8), "int8_t"), *scale_constants(channels)

    def scratch(self, op: Op, context: Context) -> int:
        return 2 * _depth(op.operand(1).shape[1])

    def counts(self, op: Op, by_row: bool) -> Counts:
        return layer_counts(op, by_row)

    def path(self, op: Op, by_row: bool, context: Context) -> str:
        return ""

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        out_c, in_c = op.operand(1).shape
        pointer, batches = vectors(op, site)
        fields = {
            "batches": batches, "in_c": in_c, "out_c": out_c, "scale_step": 1 - _shares_scale(op),
        } | output_fields(op)  # fmt: skip
        return Let("tinyfuse_dense", "p", fields), Call(
            self.name,
            ("&p", pointer, site.output.pointer, site.constant("weights"),
             site.constant("biases"), site.constant("scales"), site.scratch),
        )  # fmt: skip


def _depth(in_c: int) -> int:
    """Return the inputs of a column: `in_c` rounded up to a multiple of 8."""
    return -(-in_c // 8) * 8


def _shares_scale(op: Op) -> bool:
    channels = require_proven(bounded(op)).channels
    return has_one_scale(channels["multiplier"], channels["shift"])
