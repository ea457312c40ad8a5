"""CMSIS-NN's fully connected layers."""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import Op
from tinyfuse.kernels.cmsis import common as cmsis
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Constant
from tinyfuse.kernels.core.methods import of_calls
from tinyfuse.kernels.core.statements import Call, Let, Statement
from tinyfuse.kernels.counts.layers import layer_counts
from tinyfuse.ops.core.convolution import bias_values, channel_multipliers


class Dense(cmsis.CmsisKernel):
    """Base of FULLY_CONNECTED of any dtype. The output must not overlap the input."""

    counts = of_calls(layer_counts)

    def takes_sums(self, context: Context) -> bool:
        """Return whether the function reads each output's sum of weights from ctx.buf."""
        return False

    def quantization(self, op: Op, site: CallSite) -> Let:
        """Return the declaration of the multipliers and shifts, by default of a single one."""
        multipliers, shifts = channel_multipliers(op)
        return cmsis.per_tensor("quantization", (int(multipliers[0]), int(shifts[0])))

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        out_c, in_c = op.operand(1).shape
        batches, bias = op.output.elements // out_c, "NULL"
        fields = {
            "input_offset": -op.input.zero_point,
            "filter_offset": 0,
            "output_offset": op.output.zero_point,
            "activation": cmsis.activation(op),
        }
        if not self.takes_sums(context) or context.cmsis_nn < (7, 0):
            bias = site.constant("bias")
        sums = cmsis.buffer("context")
        if self.takes_sums(context):
            # the cast drops const, because the field lacks it; CMSIS-NN only reads there
            sums = cmsis.buffer("context", f"(void *){site.constant('sums')}", 4 * out_c)
        args = (
            "&context", "&params", "&quantization", "&input_dims", site.input(0).pointer, "&filter_dims",
            site.constant("weights"), "&bias_dims", bias, "&output_dims", site.output.pointer,
        )  # fmt: skip
        return (
            sums,
            Let("cmsis_nn_fc_params", "params", fields),
            self.quantization(op, site),
            cmsis.dims("input", batches, 1, 1, in_c),
            cmsis.dims("filter", in_c, 1, 1, out_c),
            cmsis.dims("bias", 1, 1, 1, out_c),
            cmsis.dims("output", batches, 1, 1, out_c),
            Call(self.name, args, cmsis.SUCCESS),
        )


class CmsisFullyConnected(Dense):
    """FULLY_CONNECTED with one weight scale.

    CMSIS-NN 5 and 6 read each output's sum of weights; 7.0 reads bias + input offset * sum.
    """

    name = "arm_fully_connected_s8"

    def accepts(self, op: Op, context: Context) -> bool:
        # 4.0 ignores a zero point of the weights
        quant = op.operand(1).quantization
        return super().accepts(op, context) and not quant.per_channel and not any(quant.zero_point)

    def takes_sums(self, context: Context) -> bool:
        return context.target.mve and context.cmsis_nn >= (5, 0)

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        if not self.takes_sums(context):
            return cmsis.weights_constant(op), cmsis.bias_constant(op)
        sums = op.operand(1).values.astype(np.int64).sum(axis=1)  # as arm_vector_sum_s8 computes them at run time
        if context.cmsis_nn >= (7, 0):
            folded = bias_values(op) - op.input.zero_point * sums  # wraps like C
            return cmsis.weights_constant(op), cmsis.int32s("sums", folded)
        return cmsis.weights_constant(op), cmsis.bias_constant(op), cmsis.int32s("sums", sums)


class CmsisFullyConnectedPerChannel(CmsisFullyConnected):
    """FULLY_CONNECTED with a weight scale per output, since 7.0."""

    name, since = "arm_fully_connected_per_channel_s8", (7, 0)

    def accepts(self, op: Op, context: Context) -> bool:
        return Dense.accepts(self, op, context) and op.operand(1).quantization.per_channel

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return *super().constants(op, context), *cmsis.channel_constants(op)[2:]

    def quantization(self, op: Op, site: CallSite) -> Let:
        return cmsis.per_channel(site)
