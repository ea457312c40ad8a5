"""CMSIS-NN's layers of int16 data with int8 weights (16x8), since 7.0.

They sum at least a part of the products in int32. The requantization of an int64 sum passes through an int32 that holds
twice the output. They are exact where both are proven to fit (`_proven`).
"""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import Op
from tinyfuse.ir.fixedpoint import reduced_multiplier
from tinyfuse.kernels.cmsis.common import channel_constants, weights_constant
from tinyfuse.kernels.cmsis.conv import Convolution, Depthwise, fills_scratch
from tinyfuse.kernels.cmsis.conv_paths import ConvCall
from tinyfuse.kernels.cmsis.fully_connected import Dense
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Constant
from tinyfuse.kernels.core.methods import always
from tinyfuse.kernels.core.statements import Let, Statement
from tinyfuse.kernels.layers.int16.dsp import greatest_sums, has_zero_points
from tinyfuse.ops.core.convolution import accumulator, bias_values, channel_multipliers

#: the fewest taps that CMSIS-NN leaves to the general depthwise convolution (USE_FAST_DW_CONV_S16_FUNCTION)
_MANY_TAPS = 512


def _proven(op: Op) -> bool:
    """Return whether no sum, and no intermediate value of its requantization, leaves int32."""
    greatest, (multipliers, shifts) = greatest_sums(op), channel_multipliers(op)
    if (greatest >= 2**31).any():
        return False
    if accumulator(op) == "int32":
        return bool((greatest << np.maximum(shifts, 0) < 2**31).all())
    doubled = 14 - shifts
    return bool(((doubled >= 0) & (greatest * reduced_multiplier(multipliers) >> doubled.clip(0, 62) < 2**31)).all())


def _bias(op: Op) -> Constant:
    """Return the constant "bias" [out_c] in the dtype of the sums."""
    dtype = accumulator(op)
    return Constant("bias", bias_values(op).astype(dtype), f"{dtype}_t", align=8 if dtype == "int64" else 4)


def convolve_scratch_s16(call: ConvCall, context: Context) -> int:
    """Return the bytes that ctx.buf of arm_convolve_s16 must have: im2col of a block of pixels."""
    terms = call.in_c * call.kernel_h * call.kernel_w
    return 4 * 16 * -(-terms // 8) if context.target.mve else 2 * 2 * terms


def depthwise_scratch_s16(call: ConvCall, context: Context) -> int:
    """Return the bytes that ctx.buf of arm_depthwise_conv_wrapper_s16 must have, with 8 that MVE reads beyond it."""
    if not _is_fast(call) or not context.target.dsp:
        return 0
    pixel = 2 * call.in_c * call.kernel_h * call.kernel_w
    return 4 * pixel + 8 if context.target.mve else pixel


def _is_fast(call: ConvCall) -> bool:
    return call.in_c == call.out_c and call.undilated and call.kernel_h * call.kernel_w < _MANY_TAPS


class _Int16Rows(Convolution):
    """Base of (depthwise) convolutions of int16 data by CMSIS-NN. The bias has the dtype of the sums."""

    since = (7, 0)

    def accepts(self, op: Op, context: Context) -> bool:
        return super().accepts(op, context) and _proven(op)

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        weights, _, *quantization = channel_constants(op)
        return weights, _bias(op), *quantization


class CmsisConvS16(_Int16Rows):
    """CONV_2D of int16 data without groups, by CMSIS-NN."""

    name = "arm_convolve_wrapper_s16"
    call_scratch = staticmethod(convolve_scratch_s16)
    bias = always("&bias_data")

    def exact(self, call: ConvCall, context: Context) -> bool:
        return call.in_c == call.kernel_c and call.fits and call.filter_fits

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        bias = {"data": site.constant("bias"), "is_int32_bias": int(accumulator(op) == "int32")}
        return Let("cmsis_nn_bias_data", "bias_data", bias), *super().call(op, site, context)


class CmsisDepthwiseS16(_Int16Rows, Depthwise):
    """DEPTHWISE_CONV_2D of int16 data, by CMSIS-NN."""

    name = "arm_depthwise_conv_wrapper_s16"
    call_scratch = staticmethod(depthwise_scratch_s16)

    def exact(self, call: ConvCall, context: Context) -> bool:
        fills = not _is_fast(call) or not context.target.dsp or context.target.mve or fills_scratch(call)
        return call.fits and fills

    def call_path(self, call: ConvCall, context: Context) -> str:
        return "fast" if _is_fast(call) else "general"


class CmsisFullyConnectedS16(Dense):
    """FULLY_CONNECTED with one weight scale, int64 sums and no zero points."""

    name, since = "arm_fully_connected_s16", (7, 0)

    def accepts(self, op: Op, context: Context) -> bool:
        plain = not has_zero_points(op) and not op.operand(1).quantization.per_channel
        return super().accepts(op, context) and plain and accumulator(op) == "int64" and _proven(op)

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return weights_constant(op), _bias(op)
