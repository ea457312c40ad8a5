"""CMSIS-NN's convolution."""

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
from tinyfuse.kernels.counts.layers import layer_counts
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.core.convolution import geometry
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

    def exact(self, call: conv_paths.ConvCall, context: Context) -> bool:
        return conv_paths.convolve_exact(call, context)

    def scratch(self, op: Op, context: Context) -> int:
        return max(conv_paths.convolve_scratch(call, context) for call in conv_paths.all_calls(op, self.rows_a_call))

    def path(self, op: Op, by_row: bool, context: Context) -> str:
        return conv_paths.convolve_path(conv_paths.middle_call(op, by_row, self.rows_a_call), context.cmsis_nn)
