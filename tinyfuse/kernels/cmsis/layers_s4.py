"""CMSIS-NN's layers of int8 data with weights of int4, two to a byte in the file's order, since 7.0."""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import INT4, Op
from tinyfuse.kernels.cmsis.common import CmsisKernel, bias_constant, channel_constants
from tinyfuse.kernels.cmsis.conv import Convolution, Depthwise, fills_scratch
from tinyfuse.kernels.cmsis.conv_paths import ConvCall, convolve_exact, convolve_path
from tinyfuse.kernels.cmsis.fully_connected import Dense
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import Constant
from tinyfuse.kernels.layers.int4.conv_dsp import int4_weights


def _weights(op: Op) -> Constant:
    values = np.ascontiguousarray(op.operand(1).values).reshape(-1)
    return Constant("weights", int4_weights(np.pad(values, (0, values.size % 2)).reshape(-1, 2)), "int8_t")


def convolve_scratch_s4(call: ConvCall, context: Context) -> int:
    """Return the bytes that ctx.buf of arm_convolve_wrapper_s4 must have: im2col of a block of pixels."""
    path, terms = convolve_path(call, context), call.in_c * call.kernel_h * call.kernel_w
    if path.startswith("1x1"):
        return 0
    if not context.target.mve:
        return 4 * terms
    return 0 if path == "1xn" else 64 * -(-terms // 16)


def depthwise_scratch_s4(call: ConvCall, context: Context) -> int:
    """Return the bytes that ctx.buf of arm_depthwise_conv_wrapper_s4 must have without MVE: the im2col window of a
    pixel."""
    return 2 * call.in_c * call.kernel_h * call.kernel_w if _is_opt(call) else 0


def _is_opt(call: ConvCall) -> bool:
    return call.in_c == call.out_c and call.undilated


class _Int4(CmsisKernel):
    """Base of layers of int8 data with int4 weights, two to a byte, by CMSIS-NN."""

    int4_weights, since = True, (7, 0)

    def accepts(self, op: Op, context: Context) -> bool:
        return super().accepts(op, context) and op.operand(1).dtype == INT4

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return _weights(op), *channel_constants(op)[1:]


class CmsisConvS4(_Int4, Convolution):
    """CONV_2D without groups and with int4 weights, by arm_convolve_wrapper_s4."""

    name = "arm_convolve_wrapper_s4"
    call_scratch, call_path = staticmethod(convolve_scratch_s4), staticmethod(convolve_path)

    def exact(self, call: ConvCall, context: Context) -> bool:
        if call.in_c != call.kernel_c:
            return False
        if convolve_path(call, context) == "1xn" and context.target.mve:
            # windows with padding start at a weight that may lie in the upper half of a byte
            whole = (call.out_w - 1) * call.stride_w + call.kernel_w == call.in_w
            return whole and (call.out_h, call.pad_h, call.pad_w) == (1, 0, 0)
        return convolve_exact(call, context)


class CmsisDepthwiseS4(_Int4, Depthwise):
    """DEPTHWISE_CONV_2D with int4 weights, by arm_depthwise_conv_wrapper_s4."""

    name = "arm_depthwise_conv_wrapper_s4"
    call_scratch = staticmethod(depthwise_scratch_s4)

    def exact(self, call: ConvCall, context: Context) -> bool:
        """Return whether the result is exact. The general function reads whole bytes of weights per tap, so it needs an
        even number of channels; the optimized one is wrong for most shapes on MVE."""
        if not _is_opt(call):
            return call.in_c % 2 == 0
        return not context.target.mve and fills_scratch(call)

    def call_path(self, call: ConvCall, context: Context) -> str:
        return "opt" if _is_opt(call) else "general"


class CmsisFullyConnectedS4(_Int4, Dense):
    """FULLY_CONNECTED with int4 weights that have one scale."""

    name = "arm_fully_connected_s4"

    def accepts(self, op: Op, context: Context) -> bool:
        return super().accepts(op, context) and not any(op.operand(1).quantization.zero_point)

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return _weights(op), bias_constant(op)
