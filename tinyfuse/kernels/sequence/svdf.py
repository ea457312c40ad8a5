"""Kernels of SVDF (runtime_c/tinyfuse_svdf*.h)."""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Constant, Kernel
from tinyfuse.kernels.core.methods import of_calls
from tinyfuse.kernels.core.rows import KernelOfOperands
from tinyfuse.kernels.core.statements import Call, Let, Statement
from tinyfuse.kernels.counts.common import svdf_counts
from tinyfuse.ops.sequence.svdf import CLAMPS, SIGN_BIT, Svdf
from tinyfuse.ops.sequence.svdf_scaling import feature_multiplier, time_multiplier

#: index of an operand -> name of its constant: weights and bias in the file's order
SVDF_OPERANDS = {1: "features", 2: "time", 3: "bias"}


class _Svdf(KernelOfOperands):
    """Base of SVDF kernels. The output must not overlap the input."""

    operands = SVDF_OPERANDS
    counts = of_calls(svdf_counts)

    def sizes(self, op: Op) -> dict[str, int]:
        """Fields of the sizes."""
        (batches, inputs), (filters, memory), rank = op.input.shape, op.operand(2).shape, op.attributes_as(Svdf).rank
        return {"batches": batches, "inputs": inputs, "units": filters // rank, "rank": rank, "memory": memory}


class SvdfWhole(_Svdf):
    """SVDF of int8 data."""

    headers = ("tinyfuse_svdf.h",)
    name, dtype = "tinyfuse_svdf", "int8"

    def path(self, op: Op, by_row: bool, context: Context) -> str:
        return "s16" if op.operand(4).dtype == "int16" else "s8"

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return *super().constants(op, context), self.offsets(op)

    def offsets(self, op: Op) -> Constant:
        """Offsets that replace the input's zero point, from constant feature weights: int32 [filters]."""
        offsets = -op.input.zero_point * op.operand(1).values.sum(axis=1, dtype=np.int64)
        return Constant("offsets", offsets.astype(np.int32), "int32_t")  # wraps, like the sums

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        feature, time = feature_multiplier(op), time_multiplier(op)
        params = Let("tinyfuse_svdf", "p", {
            **self.sizes(op),
            "state_zero_point": op.operand(4).zero_point,
            "out_zero_point": op.output.zero_point,
            "feature_multiplier": feature[0], "feature_shift": feature[1],
            "time_multiplier": time[0], "time_shift": time[1],
        })  # fmt: skip
        arguments = (
            "&p", site.input(0).pointer, site.input(4).pointer, site.output.pointer,
            site.constant("features"), site.constant("offsets"), site.constant("time"), site.constant("bias"),
        )  # fmt: skip
        return params, Call(f"{self.name}_{self.path(op, False, context)}", arguments)


class SvdfF32(_Svdf):
    """SVDF of float32 with a clamp as activation."""

    headers = ("tinyfuse_svdf_f32.h",)
    name, dtype = "tinyfuse_svdf_f32", "float32"

    def accepts(self, op: Op, context: Context) -> bool:
        return super().accepts(op, context) and op.attributes_as(Svdf).activation in CLAMPS

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        high, low = CLAMPS.get(op.attributes_as(Svdf).activation, (None, None))
        params = Let("tinyfuse_svdf_real", "p", {
            **self.sizes(op),
            "has_high": int(high is not None), "has_low": int(low is not None),
            "high": high or 0.0, "low": low or 0.0,
        })  # fmt: skip
        return params, Call(
            self.name,
            ("&p", site.input(0).pointer, site.input(4).pointer, site.output.pointer,
             site.constant("features"), site.constant("time"), site.constant("bias"), *self.activation(op)),
        )  # fmt: skip

    def activation(self, op: Op) -> tuple[int, ...]:
        """Arguments that select the activation."""
        return ()


class SvdfActivatedF32(SvdfF32):
    """SVDF of float32 with an activation that is not a clamp."""

    headers = ("tinyfuse_svdf_activated_f32.h",)
    name = "tinyfuse_svdf_activated_f32"

    def accepts(self, op: Op, context: Context) -> bool:
        return Kernel.accepts(self, op, context) and op.attributes_as(Svdf).activation not in CLAMPS

    def activation(self, op: Op) -> tuple[int, ...]:
        return (int(op.attributes_as(Svdf).activation == SIGN_BIT),)
