"""CMSIS-NN's fully connected layers."""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import Op
from tinyfuse.kernels.cmsis.common import (
    SUCCESS,
    CmsisKernel,
    activation,
    bias_constant,
    channel_constants,
    dims,
    int32s,
    per_channel,
    weights_constant,
)
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Constant
from tinyfuse.kernels.core.statements import Call, Let, Statement
from tinyfuse.kernels.counts.common import Counts
from tinyfuse.kernels.counts.layers import layer_counts
from tinyfuse.ops.core.convolution import bias_values, channel_multipliers


def _takes_sums(context: Context) -> bool:
    """Return whether the function reads each output's sum of weights from ctx.buf: MVE code since 5.0."""
    return context.target.mve and context.cmsis_nn >= (5, 0)


def _sums(op: Op, context: Context) -> Constant:
    """Return the constant "sums", int32 [out_c]: the sums of weights that arm_vector_sum_s8 would compute at run time.

    Since 7.0 they are multiplied by the input's offset, and contain the bias; before, the function does both.
    """
    sums = op.operand(1).values.astype(np.int64).sum(axis=1)
    if context.cmsis_nn >= (7, 0):
        sums = bias_values(op) - op.input.zero_point * sums
    return int32s("sums", sums)  # wraps as the C does


class CmsisFullyConnected(CmsisKernel):
    """FULLY_CONNECTED with one weight scale. The output must not overlap the input."""

    name = "arm_fully_connected_s8"

    def accepts(self, op: Op, context: Context) -> bool:
        # 4.0 ignores a zero point of the weights
        quant = op.operand(1).quantization
        return super().accepts(op, context) and not quant.per_channel and not any(quant.zero_point)

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        if not _takes_sums(context):
            return weights_constant(op), bias_constant(op)
        if context.cmsis_nn >= (7, 0):
            return weights_constant(op), _sums(op, context)
        return weights_constant(op), bias_constant(op), _sums(op, context)

    def counts(self, op: Op, by_row: bool) -> Counts:
        return layer_counts(op, by_row)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        return _call(self.name, _one_scale(op), op, site, context)


class CmsisFullyConnectedPerChannel(CmsisKernel):
    """FULLY_CONNECTED with a weight scale per output, since 7.0."""

    name = "arm_fully_connected_per_channel_s8"

    def accepts(self, op: Op, context: Context) -> bool:
        per_channel = op.operand(1).quantization.per_channel and context.cmsis_nn >= (7, 0)
        return super().accepts(op, context) and per_channel

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        weights, bias, *quantization = channel_constants(op)
        return weights, _sums(op, context) if _takes_sums(context) else bias, *quantization

    def counts(self, op: Op, by_row: bool) -> Counts:
        return layer_counts(op, by_row)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        return _call(self.name, per_channel(site), op, site, context)


def _call(function: str, quantization: Let, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
    # the field is a pointer to non-const, though CMSIS-NN only reads
    buffer = f"(void *){site.constant('sums')}" if _takes_sums(context) else "NULL"
    bias = "NULL" if _takes_sums(context) and context.cmsis_nn >= (7, 0) else site.constant("bias")
    return _dense_call(function, quantization, op, site, buffer, bias)


def plain_call(function: str, op: Op, site: CallSite) -> tuple[Statement, ...]:
    """Return the call of a function that takes one scale, a bias and no scratch."""
    return _dense_call(function, _one_scale(op), op, site, "NULL", site.constant("bias"))


def _one_scale(op: Op) -> Let:
    multipliers, shifts = channel_multipliers(op)
    fields = {"multiplier": int(multipliers[0]), "shift": int(shifts[0])}
    return Let("cmsis_nn_per_tensor_quant_params", "quantization", fields)


def _dense_call(
    function: str, quantization: Let, op: Op, site: CallSite, buffer: str, bias: str
) -> tuple[Statement, ...]:
    out_c, in_c = op.operand(1).shape
    batches = op.output.elements // out_c
    fields = {
        "input_offset": -op.input.zero_point,
        "filter_offset": 0,
        "output_offset": op.output.zero_point,
        "activation": activation(op),
    }
    return (
        Let("cmsis_nn_context", "context", {"buf": buffer, "size": 4 * out_c if buffer != "NULL" else 0}),
        Let("cmsis_nn_fc_params", "params", fields),
        quantization,
        dims("input", batches, 1, 1, in_c),
        dims("filter", in_c, 1, 1, out_c),
        dims("bias", 1, 1, 1, out_c),
        dims("output", batches, 1, 1, out_c),
        Call(
            function,
            ("&context", "&params", "&quantization", "&input_dims", site.input(0).pointer,
             "&filter_dims", site.constant("weights"), "&bias_dims", bias, "&output_dims",
             site.output.pointer),
            SUCCESS,
        ),
    )  # fmt: skip
