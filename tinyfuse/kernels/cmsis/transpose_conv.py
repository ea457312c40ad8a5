"""CMSIS-NN's two functions for transposed convolutions, since 7.0.

Its wrapper chooses between them as the kernels here do, but flips the filters at every inference, in scratch of their
size. Filters never change: the compiler flips them, and the kernels call the inner functions.
"""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import Op
from tinyfuse.kernels.cmsis import common as cmsis
from tinyfuse.kernels.cmsis.conv_paths import ConvCall, general_scratch
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Constant
from tinyfuse.kernels.core.statements import Call, Let, Statement
from tinyfuse.ops.layers.transpose_conv import TransposeConv, as_convolution, paddings

#: largest number of input channels for which the wrapper uses the rolling buffer
_FEW_CHANNELS = 16


class _CmsisTransposeConv(cmsis.CmsisKernel):
    """Base of transposed int8 convolutions by CMSIS-NN. The output must not overlap the input."""

    stack_bytes = 1280
    since = (7, 0)
    params_type: str
    #: declaration of a second context that one of the functions takes, but does not use
    unused: tuple[Let, ...] = ()

    def accepts(self, op: Op, context: Context) -> bool:
        call = reversed_call(op)
        return super().accepts(op, context) and call.fits and call.filter_fits

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return cmsis.channel_constants(as_convolution(op))

    def dimensions(self, op: Op) -> ConvCall:
        """Return the dimensions that the call passes."""
        return reversed_call(op)

    def upscale(self, op: Op) -> tuple[Let, ...]:
        """Return the declaration of the dimensions of upscaling that one of the functions takes."""
        return ()

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        call, upscale = self.dimensions(op), self.upscale(op)
        fields = {
            "input_offset": -op.operand(2).zero_point,
            "output_offset": op.output.zero_point,
            "stride": cmsis.tile(call.stride_h, call.stride_w),
            "padding": cmsis.tile(call.pad_h, call.pad_w),
            "dilation": cmsis.tile(1, 1),
            "activation": cmsis.activation(op),
        }
        args = (
            "&context", *("&unused" for _ in self.unused), "&params", "&quantization", "&input_dims",
            site.input(2).pointer, "&filter_dims", site.constant("weights"), "&bias_dims", site.constant("bias"),
            *("&upscale_dims" for _ in upscale), "&output_dims", site.output.pointer,
        )  # fmt: skip
        return (
            cmsis.buffer("context", site.scratch, self.scratch(op, context)),
            *self.unused,
            Let(self.params_type, "params", fields),
            cmsis.per_channel(site),
            cmsis.dims("input", 1, call.in_h, call.in_w, call.in_c),
            cmsis.dims("filter", call.out_c, call.kernel_h, call.kernel_w, call.in_c),
            cmsis.dims("bias", 1, 1, 1, call.out_c),
            *upscale,
            cmsis.dims("output", 1, call.out_h, call.out_w, call.out_c),
            Call(self.name, args, cmsis.SUCCESS),
        )


class CmsisReverseConv(_CmsisTransposeConv):
    """Transposed int8 convolution by CMSIS-NN with strides up to 2, computed as a convolution.

    Zero points are put between the input's pixels, and filters are flipped in rows and columns.
    """

    name, params_type = "arm_convolve_s8", "cmsis_nn_conv_params"

    def accepts(self, op: Op, context: Context) -> bool:
        return super().accepts(op, context) and max(op.attributes_as(TransposeConv).stride) <= 2

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        flipped = np.ascontiguousarray(op.operand(1).values[:, ::-1, ::-1])
        return Constant("weights", flipped.reshape(-1), "int8_t"), *super().constants(op, context)[1:]

    def scratch(self, op: Op, context: Context) -> int:
        return general_scratch(reversed_call(op), context)

    def upscale(self, op: Op) -> tuple[Let, ...]:
        return (cmsis.dims("upscale", 0, *op.attributes_as(TransposeConv).stride, 0),)


class CmsisTransposeConv(_CmsisTransposeConv):
    """Transposed int8 convolution by CMSIS-NN, by sums in a rolling buffer of the output rows that an input row
    reaches."""

    name, params_type = "arm_transpose_conv_s8", "cmsis_nn_transpose_conv_params"
    unused = (cmsis.buffer("unused"),)

    def accepts(self, op: Op, context: Context) -> bool:
        few = op.operand(2).shape[3] <= _FEW_CHANNELS or max(op.attributes_as(TransposeConv).stride) > 2
        return super().accepts(op, context) and few and rolling_exact(op)

    def scratch(self, op: Op, context: Context) -> int:
        return rolling_scratch(op)

    def dimensions(self, op: Op) -> ConvCall:
        _, in_h, in_w, _ = op.operand(2).shape
        (stride_h, stride_w), (top, left) = op.attributes_as(TransposeConv).stride, paddings(op)
        sizes = {"in_h": in_h, "in_w": in_w, "stride_h": stride_h, "stride_w": stride_w}
        return reversed_call(op)._replace(**sizes, pad_h=top, pad_w=left)


def reversed_call(op: Op) -> ConvCall:
    """Return the call of a convolution that computes the transposed convolution: its input has empty pixels between the
    pixels, so that they are a stride apart."""
    _, in_h, in_w, in_c = op.operand(2).shape
    out_c, kernel_h, kernel_w, _ = op.operand(1).shape
    (stride_h, stride_w), (top, left) = op.attributes_as(TransposeConv).stride, paddings(op)
    _, out_h, out_w, _ = op.output.shape
    return ConvCall(
        in_h * stride_h, in_w * stride_w, in_c, out_h, out_w, out_c, kernel_h, kernel_w, in_c,
        1, 1, 1, 1, kernel_h - 1 - top, kernel_w - 1 - left,
    )  # fmt: skip


def rolling_scratch(op: Op) -> int:
    """Return the bytes of int32 sums of the rows and columns that an input row reaches, at least a stride's."""
    return (
        4 * _columns(op) * max(op.operand(1).shape[1], op.attributes_as(TransposeConv).stride[0]) * op.output.shape[3]
    )


def rolling_exact(op: Op) -> bool:
    """Return whether arm_transpose_conv_s8 writes exactly the output's rows, from sums within its buffer.

    After each input row it writes as many output rows as the stride, even beyond the output, and at the end the
    remaining rows of the last window. Version 7.0.0 loses rows if the top padding is not a multiple of the stride.
    """
    in_h, out_h, out_w = op.operand(2).shape[1], *op.output.shape[1:3]
    kernel_h, stride = op.operand(1).shape[1], op.attributes_as(TransposeConv).stride[0]
    top, left = paddings(op)
    written = in_h * stride - top
    rows = 0 <= written <= out_h <= written + max(kernel_h - stride, 0)
    return rows and top % stride == 0 and left + out_w <= _columns(op)


def _columns(op: Op) -> int:
    """Return the columns of the rolling buffer."""
    stride, kernel = op.attributes_as(TransposeConv).stride[1], op.operand(1).shape[2]
    return (op.operand(2).shape[2] - 1) * stride + max(kernel, stride)
