"""CMSIS-NN's SVDF, with a state of int16 or int8."""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import Op
from tinyfuse.kernels.cmsis.common import SUCCESS, CmsisKernel, buffer, dims, int32s, per_tensor
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Constant
from tinyfuse.kernels.core.methods import of_operator
from tinyfuse.kernels.core.operands import constant_operands
from tinyfuse.kernels.core.statements import Call, Let, Statement
from tinyfuse.kernels.sequence.svdf import SVDF_OPERANDS
from tinyfuse.ops.sequence.svdf import Svdf
from tinyfuse.ops.sequence.svdf_scaling import feature_multiplier, time_multiplier


class CmsisSvdf(CmsisKernel):
    """SVDF whose state and time weights are int16. The output must not overlap the input."""

    name = "arm_svdf_state_s16_s8"
    state_dtype = "int16"
    constants = of_operator(constant_operands, SVDF_OPERANDS)

    def accepts(self, op: Op, context: Context) -> bool:
        if not super().accepts(op, context) or op.operand(4).dtype != self.state_dtype:
            return False
        # the function shifts left by a multiplication that must not overflow int32; TFLM's shift wraps
        largest = 255 * 128 * op.input.shape[1]
        feature, time = feature_multiplier(op)[1], time_multiplier(op)[1]
        return largest << max(feature, 0) < 2**31 and time <= 0

    def scratch(self, op: Op, context: Context) -> int:
        """Return the bytes of an int32 per filter and one per unit, for all batches."""
        return 4 * (self._filters(op) + op.output.elements)

    @staticmethod
    def _filters(op: Op) -> int:
        """Return the number of filters times the number of batches."""
        return op.input.shape[0] * op.operand(2).shape[0]

    def sums(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        """Return the declaration of a further context, for sums of weights, that some variants take."""
        return ()

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        (batches, inputs), (filters, memory) = op.input.shape, op.operand(2).shape
        units, split = op.output.shape[1], 4 * self._filters(op)
        low, high = np.iinfo(self.state_dtype).min, np.iinfo(self.state_dtype).max
        sums = self.sums(op, site, context)
        params = {
            "rank": op.attributes_as(Svdf).rank, "input_offset": op.input.zero_point,
            "output_offset": op.output.zero_point,
            "input_activation": {"min": int(low), "max": int(high)},
            "output_activation": {"min": -128, "max": 127},
        }  # fmt: skip
        return (
            *sums,
            buffer("filters", site.scratch, split),
            buffer("units", f"{site.scratch} + {split}", 4 * op.output.elements),
            Let("cmsis_nn_svdf_params", "params", params),
            per_tensor("to_state", feature_multiplier(op)),
            per_tensor("to_output", time_multiplier(op)),
            dims("input", batches, inputs),
            dims("state", batches, memory * filters),
            dims("features", filters, inputs),
            dims("time", filters, memory),
            dims("bias", units),
            dims("output", batches, units),
            Call(
                self.name,
                (*("&sums" for _ in sums), "&filters", "&units", "&params", "&to_state", "&to_output",
                 "&input_dims", site.input(0).pointer, "&state_dims", site.input(4).pointer,
                 "&features_dims", site.constant("features"), "&time_dims", site.constant("time"),
                 "&bias_dims", site.constant("bias"), "&output_dims", site.output.pointer),
                SUCCESS,
            ),
        )  # fmt: skip


class CmsisSvdfInt8(CmsisSvdf):
    """SVDF whose state and time weights are int8 without a zero point, which CMSIS-NN does not support."""

    name = "arm_svdf_s8"
    state_dtype = "int8"

    def accepts(self, op: Op, context: Context) -> bool:
        # 4.0's MVE code writes after the state
        sound = not context.target.mve or context.cmsis_nn > (4, 0)
        return super().accepts(op, context) and sound and op.operand(4).zero_point == 0

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        found = super().constants(op, context)
        if not context.target.mve or context.cmsis_nn < (5, 0):
            return found
        sums = op.operand(1).values.astype(np.int64).sum(axis=1)
        # since 7.0 the function expects the sums multiplied by the input's offset
        return (*found, int32s("sums", -op.input.zero_point * sums if context.cmsis_nn >= (7, 0) else sums))

    def sums(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        """Return the context of the sums of each filter's weights: since 5.0, and read by MVE code alone."""
        if context.cmsis_nn < (5, 0):
            return ()
        if not context.target.mve:
            return (buffer("sums"),)
        # the field is a pointer to non-const, though CMSIS-NN only reads
        return (buffer("sums", f"(void *){site.constant('sums')}", 4 * op.operand(2).shape[0]),)
