"""CMSIS-NN's convolution and depthwise convolution."""

from __future__ import annotations

from abc import abstractmethod

from tinyfuse.ir import Op
from tinyfuse.kernels.cmsis import common as cmsis
from tinyfuse.kernels.cmsis import conv_paths
from tinyfuse.kernels.core.context import Context, without_objective
from tinyfuse.kernels.core.kernel import CallSite
from tinyfuse.kernels.core.methods import of_operator
from tinyfuse.kernels.core.statements import Call, Let, Statement
from tinyfuse.kernels.counts.common import Counts
from tinyfuse.kernels.counts.depthwise import depthwise_counts
from tinyfuse.kernels.counts.layers import layer_counts
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.core.convolution import DepthwiseConv2D, geometry
from tinyfuse.ops.core.family import RowWindow


class Convolution(cmsis.CmsisRows):
    """A (depthwise) convolution of any dtype.

    The output must not overlap the input: pixels are copied block by block, and the order of outputs differs by path.
    """

    stack_bytes = 1280
    several_rows = cmsis.SEVERAL_ROWS
    params_type = "cmsis_nn_conv_params"
    constants = of_operator(cmsis.channel_constants)

    def window(self, op: Op) -> RowWindow:
        return geometry(op).window

    def accepts(self, op: Op, context: Context) -> bool:
        exact, at_once = self.exact, self.rows_a_call
        return super().accepts(op, context) and conv_paths.all_exact(exact, op, at_once, without_objective(context))

    @abstractmethod
    def exact(self, call: conv_paths.ConvCall, context: Context) -> bool:
        """Return whether the result of a call equals that of TensorFlow Lite Micro's reference."""

    @abstractmethod
    def call_scratch(self, call: conv_paths.ConvCall, context: Context) -> int:
        """Return the bytes of scratch that a call needs."""

    def call_path(self, call: conv_paths.ConvCall, context: Context) -> str:
        """Return the path that a call takes; empty if all take the same."""
        return ""

    def scratch(self, op: Op, context: Context) -> int:
        return max(self.call_scratch(call, context) for call in conv_paths.all_calls(op, self.rows_a_call))

    def path(self, op: Op, by_row: bool, context: Context) -> str:
        return self.call_path(conv_paths.middle_call(op, by_row, self.rows_a_call), context)

    def counts(self, op: Op, by_row: bool) -> Counts:
        return layer_counts(op, by_row, self.rows_a_call)

    def params(self, op: Op) -> dict[str, int]:
        """Return further fields of the parameters."""
        return {}

    def bias(self, site: CallSite) -> str:
        """Return the C pointer to the bias."""
        return site.constant("bias")

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        call, source = conv_paths.whole_call(op), cmsis.image(self.window(op), site, self.rows_a_call)
        depthwise = FAMILIES[op.kind].depthwise
        filters = 1 if depthwise else call.out_c
        filter_c = call.out_c if depthwise else call.kernel_c
        fields = {  # calls by rows pass the dimensions that conv_paths.all_calls lists
            "input_offset": -op.input.zero_point,
            "output_offset": op.output.zero_point,
            **self.params(op),
            "stride": cmsis.tile(source.stride, call.stride_w),
            "padding": cmsis.tile(source.pad_top, call.pad_w),
            "dilation": cmsis.tile(call.dilation_h, call.dilation_w),
            "activation": cmsis.activation(op),
        }
        args = (
            "&context", "&params", "&quantization", "&input_dims", source.pointer, "&filter_dims",
            site.constant("weights"), "&bias_dims", self.bias(site), "&output_dims", site.output.pointer,
        )  # fmt: skip
        return (
            *source.statements,
            cmsis.buffer("context", site.scratch, self.scratch(op, context)),
            Let(self.params_type, "params", fields),
            cmsis.per_channel(site),
            cmsis.dims("input", 1, source.rows, call.in_w, call.in_c),
            cmsis.dims("filter", filters, call.kernel_h, call.kernel_w, filter_c),
            cmsis.dims("bias", 1, 1, 1, call.out_c),
            cmsis.dims("output", 1, source.out_rows, call.out_w, call.out_c),
            Call(self.name, args, cmsis.SUCCESS),
        )


class CmsisConv(Convolution):
    """CONV_2D of int8 by CMSIS-NN."""

    name = "arm_convolve_wrapper_s8"
    exact, call_scratch = staticmethod(conv_paths.convolve_exact), staticmethod(conv_paths.convolve_scratch)
    call_path = staticmethod(conv_paths.convolve_path)


#: channels that the MVE code takes at a time (CH_IN_BLOCK_MVE, the same since 4.0)
_MVE_BLOCK = 124


class Depthwise(Convolution):
    """DEPTHWISE_CONV_2D of any dtype; the output must not overlap the input, for MVE computes blocks of channels."""

    params_type = "cmsis_nn_dw_conv_params"

    def counts(self, op: Op, by_row: bool) -> Counts:
        return depthwise_counts(op, by_row, self.rows_a_call)

    def params(self, op: Op) -> dict[str, int]:
        return {"ch_mult": op.attributes_as(DepthwiseConv2D).depth_multiplier}


def depthwise_path(call: conv_paths.ConvCall, context: Context) -> str:
    """Return the path that a call takes: "convolution", "3x3", "opt" or "general"."""
    if context.target.mve and context.cmsis_nn >= (7, 0) and call.in_c == 1 and call.out_c > 1:
        return "convolution"
    if call.in_c != call.out_c or not call.undilated:
        return "general"
    small = call.kernel_h == call.kernel_w == 3 and call.pad_h <= 1 and call.pad_w <= 1
    return "3x3" if small and not context.target.mve else "opt"


def depthwise_scratch(call: conv_paths.ConvCall, context: Context) -> int:
    """Return the bytes that ctx.buf of arm_depthwise_conv_wrapper_s8 must have."""
    path, taps = depthwise_path(call, context), call.kernel_h * call.kernel_w
    if path == "convolution":
        # the weights are transposed after the convolution's own scratch
        return conv_paths.convolve_scratch(call._replace(kernel_c=1), context) + call.out_c * taps
    if path != "opt":  # 4.0's getter wants scratch for 3x3, but the function ignores it
        return 0
    if context.target.mve:
        return 4 * _MVE_BLOCK * taps
    return 2 * call.in_c * taps if context.target.dsp else 0


def fills_scratch(call: conv_paths.ConvCall) -> bool:
    """Return whether no window has more padding rows than its own height.

    Without MVE the function clears scratch for all rows above the image and below it, even beyond the window.
    """
    last_row = (call.out_h - 1) * call.stride_h - call.pad_h
    return call.pad_h <= call.kernel_h and last_row <= call.in_h


class CmsisDepthwise(Depthwise):
    """DEPTHWISE_CONV_2D of int8 by CMSIS-NN."""

    name = "arm_depthwise_conv_wrapper_s8"
    call_scratch, call_path = staticmethod(depthwise_scratch), staticmethod(depthwise_path)

    def exact(self, call: conv_paths.ConvCall, context: Context) -> bool:
        path = depthwise_path(call, context)
        if not call.fits:
            return False
        if path == "convolution":
            return conv_paths.convolve_exact(call._replace(kernel_c=1), context)
        if path == "3x3":  # always reads the middle column, so at most one column of padding at the right is possible
            return (call.out_w - 1) * call.stride_w - call.pad_w + 1 < call.in_w
        return path != "opt" or context.target.mve or fills_scratch(call)
