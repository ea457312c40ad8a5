"""Fully connected layers whose weights are int16 in flash (runtime_c/tinyfuse_dense_unpacked.h)."""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import Op
from tinyfuse.kernels.base import Call, CallSite, Constant, Context, Let, Statement, proven
from tinyfuse.kernels.fully_connected import DenseWide
from tinyfuse.kernels.matmul import halves
from tinyfuse.kernels.packing import bounded, output_fields
from tinyfuse.kernels.rows import vectors


class UnpackedDense(DenseWide):
    """A layer whose weights have no zero point, four outputs at a time, requantized in the bounded form; inputs are
    widened to int16 in scratch first, as far as that takes little memory for the user's objective."""

    name = "tinyfuse_dense_unpacked_s8"
    headers = ("tinyfuse_dense_unpacked.h",)
    form_of = DenseWide.name
    weights = "unpacked"

    def accepts(self, op: Op, context: Context) -> bool:
        asked = context.weights in ("auto", self.weights) and context.target.dsp and not context.target.mve
        return asked and op.operand(1).shape[1] <= self.few_inputs[context.optimize] and super().accepts(op, context)

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        """int32: for each four outputs biases, the weights of each eight inputs, two a word, and of each output
        multiplier, shift, and the rounding shifted by it."""
        layer = proven(bounded(op))
        (out_c, in_c), steps = layer.weights.shape, _steps(op)
        fours = -(-out_c // 4)
        weights = np.zeros((4 * fours, 8 * steps), "<i2")
        weights[:out_c, :in_c] = layer.weights
        words = np.ascontiguousarray(halves(weights)).view("<i4").reshape(fours, 4, steps, 4).transpose(0, 2, 1, 3)
        channels = np.zeros((4 * fours, 4), np.int64)
        channels[:out_c, :3] = np.stack([layer.channels[name] for name in ("bias", "multiplier", "shift")], axis=1)
        channels[:, 3] = (2 * op.output.zero_point + 1) << channels[:, 2]
        of_fours = channels.reshape(fours, 4, 4)
        parts = of_fours[..., 0], words.reshape(fours, -1), of_fours[..., 1:].reshape(fours, 12)
        return (Constant("fours", np.concatenate(parts, axis=1).reshape(-1).astype("<i4"), "int32_t"),)

    def path(self, op: Op, by_row: bool, context: Context) -> str:
        return ""

    def scratch(self, op: Op, context: Context) -> int:
        return 16 * _steps(op)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        (out_c, in_c), (pointer, batches) = op.operand(1).shape, vectors(op, site)
        output = output_fields(op)
        fields = {"batches": batches, "in_c": in_c, "out_c": out_c}
        clamp = {name: output[name] for name in ("act_min", "act_max")}
        arguments = ("&p", pointer, site.output.pointer, site.constant("fours"), site.scratch)
        return Let("tinyfuse_dense_unpacked", "p", fields | clamp), Call(self.name, arguments)


def _steps(op: Op) -> int:
    """Eights of inputs, the last one filled up."""
    in_c: int = op.operand(1).shape[1]
    return -(-in_c // 8)
