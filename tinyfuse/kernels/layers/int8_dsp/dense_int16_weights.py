"""Fully connected layers whose weights are int16 in flash (runtime_c/tinyfuse_dense_unpacked.h)."""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import Op
from tinyfuse.kernels.core.kernel import CallSite, Constant, Context, require_proven
from tinyfuse.kernels.core.rows import vectors
from tinyfuse.kernels.core.statements import Call, Let, Statement
from tinyfuse.kernels.counts.common import Counts, ceil_div, memoized
from tinyfuse.kernels.counts.layers import layer_counts
from tinyfuse.kernels.layers.common.params import output_fields
from tinyfuse.kernels.layers.int8_dsp.dense import DenseWide
from tinyfuse.kernels.layers.int8_dsp.lanes import halves
from tinyfuse.kernels.requantize.single_rounding import SHIFT, SingleRounding, single_rounding
from tinyfuse.kernels.requantize.two_roundings import bounded


class UnpackedDense(DenseWide):
    """A layer whose weights have no zero point, four outputs at a time, requantized along a step line of one slope,
    or in the bounded form; inputs are widened to int16 in scratch first, as far as that takes little memory for the
    user's objective."""

    name = "tinyfuse_dense_unpacked_s8"
    headers = ("tinyfuse_dense_unpacked.h",)
    form_of = DenseWide.name
    weights = "unpacked"

    def accepts(self, op: Op, context: Context) -> bool:
        asked = context.weights in ("auto", self.weights) and context.target.dsp and not context.target.mve
        few = op.operand(1).shape[1] <= self.few_inputs[context.optimize]
        return asked and few and bounded(op) is not None and super().accepts(op, context)

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        """int32: for each four outputs biases, and the weights of each eight inputs, two a word; in the bounded form of
        each output multiplier, shift, and the rounding shifted by it."""
        layer, line = require_proven(bounded(op)), _line(op)
        (out_c, in_c), steps = layer.weights.shape, _steps(op)
        fours = -(-out_c // 4)
        weights, channels = np.zeros((4 * fours, 8 * steps), "<i2"), np.zeros((4 * fours, 4), np.int64)
        if line is None:
            weights[:out_c, :in_c] = layer.weights
            channels[:out_c, :3] = np.stack([layer.channels[name] for name in ("bias", "multiplier", "shift")], axis=1)
            channels[:, 3] = _rounding(op) << channels[:, 2]
        else:
            weights[:out_c, :in_c] = 256 * line.weights.astype("<i2")
            channels[:out_c, 0] = line.channels()["bias"]
        words = np.ascontiguousarray(halves(weights)).view("<i4").reshape(fours, 4, steps, 4).transpose(0, 2, 1, 3)
        biases, scales = channels[:, 0].reshape(fours, 4), channels[:, 1:].reshape(fours, 12)
        parts = [biases, words.reshape(fours, -1)] + [scales] * (line is None)
        return (Constant("fours", np.concatenate(parts, axis=1).reshape(-1).astype("<i4"), "int32_t"),)

    def path(self, op: Op, by_row: bool, context: Context) -> str:
        return "bounded" if _line(op) is None else "single_rounding"

    def counts(self, op: Op, by_row: bool) -> Counts:
        return _counts(op, by_row)

    def scratch(self, op: Op, context: Context) -> int:
        return 16 * _steps(op)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        (out_c, in_c), (pointer, batches) = op.operand(1).shape, vectors(op, site)
        output, line = output_fields(op), _line(op)
        slope, rounding = (int(line.multiplier[0]), _rounding(op) << (SHIFT - 1)) if line else (0, 0)
        fields = {
            "batches": batches, "in_c": in_c, "out_c": out_c,
            "multiplier": slope, "rounding": rounding,
            "act_min": output["act_min"], "act_max": output["act_max"],
        }  # fmt: skip
        arguments = ("&p", pointer, site.output.pointer, site.constant("fours"), int(line is not None), site.scratch)
        return Let("tinyfuse_dense_unpacked", "p", fields), Call(self.name, arguments)


def _line(op: Op) -> SingleRounding | None:
    """The layer's step line; None where it has none, or lines of several multipliers."""
    line = single_rounding(op)
    return line if line is not None and len(set(line.multiplier.tolist())) == 1 else None


@memoized
def _counts(op: Op, by_row: bool) -> Counts:
    """Of fours of outputs (quads): eights of inputs, iterations of four of these; passes over fours that are whole, and
    over the last one."""
    found, out_c, steps = layer_counts(op, by_row), op.operand(1).shape[0], _steps(op)
    names = ("calls", "pixels", "terms", "byte_pixels", "clamped_outputs", "quads")
    return {
        **{name: found[name] for name in names},
        "quad_eights": found["quads"] * steps,
        "quad_iterations": found["quads"] * ceil_div(steps, 4),
        "passes": found["pixels"] * ((out_c > 3) + (out_c % 4 > 0)),
    }


def _rounding(op: Op) -> int:
    """The output zero point and a half, twice."""
    return 2 * op.output.zero_point + 1


def _steps(op: Op) -> int:
    """Eights of inputs, the last one filled up."""
    in_c: int = op.operand(1).shape[1]
    return -(-in_c // 8)
