"""CMSIS-NN's convolution."""

from __future__ import annotations

from abc import abstractmethod

from tinyfuse.ir import Op
from tinyfuse.kernels.cmsis.common import (
    SEVERAL_ROWS,
    SUCCESS,
    CmsisRows,
    activation,
    buffer,
    channel_constants,
    dims,
    image,
    per_channel,
    tile,
)
from tinyfuse.kernels.cmsis.conv_paths import (
    ConvCall,
    all_calls,
    all_exact,
    convolve_exact,
    convolve_path,
    convolve_scratch,
    middle_call,
    whole_call,
)
from tinyfuse.kernels.core.context import Context, without_objective
from tinyfuse.kernels.core.kernel import CallSite
from tinyfuse.kernels.core.methods import of_operator
from tinyfuse.kernels.core.statements import Call, Let, Statement
from tinyfuse.kernels.counts.common import Counts
from tinyfuse.kernels.counts.layers import layer_counts
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.core.convolution import geometry
from tinyfuse.ops.core.family import RowWindow


class Convolution(CmsisRows):
    """A (depthwise) convolution of any dtype.

    The output must not overlap the input: pixels are copied block by block, and the order of outputs differs by path.
    """

    stack_bytes = 1280
    several_rows = SEVERAL_ROWS
    params_type = "cmsis_nn_conv_params"
    constants = of_operator(channel_constants)

    def window(self, op: Op) -> RowWindow:
        return geometry(op).window

    def accepts(self, op: Op, context: Context) -> bool:
        exact, at_once = self.exact, self.rows_a_call
        return super().accepts(op, context) and all_exact(exact, op, at_once, without_objective(context))

    @abstractmethod
    def exact(self, call: ConvCall, context: Context) -> bool:
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
        call, source = whole_call(op), image(self.window(op), site, self.rows_a_call)
        depthwise = FAMILIES[op.kind].depthwise
        filters = 1 if depthwise else call.out_c
        filter_c = call.out_c if depthwise else call.kernel_c
        fields = {  # calls by rows pass the dimensions that conv_paths.all_calls lists
            "input_offset": -op.input.zero_point,
            "output_offset": op.output.zero_point,
            **self.params(op),
            "stride": tile(source.stride, call.stride_w),
            "padding": tile(source.pad_top, call.pad_w),
            "dilation": tile(call.dilation_h, call.dilation_w),
            "activation": activation(op),
        }
        args = (
            "&context", "&params", "&quantization", "&input_dims", source.pointer, "&filter_dims",
            site.constant("weights"), "&bias_dims", self.bias(site), "&output_dims", site.output.pointer,
        )  # fmt: skip
        return (
            *source.statements,
            buffer("context", site.scratch, self.scratch(op, context)),
            Let(self.params_type, "params", fields),
            per_channel(site),
            dims("input", 1, source.rows, call.in_w, call.in_c),
            dims("filter", filters, call.kernel_h, call.kernel_w, filter_c),
            dims("bias", 1, 1, 1, call.out_c),
            dims("output", 1, source.out_rows, call.out_w, call.out_c),
            Call(self.name, args, SUCCESS),
        )


class CmsisConv(Convolution):
    """CONV_2D of int8 by CMSIS-NN."""

    name = "arm_convolve_wrapper_s8"

    def exact(self, call: ConvCall, context: Context) -> bool:
        return convolve_exact(call, context)

    def scratch(self, op: Op, context: Context) -> int:
        return max(convolve_scratch(call, context) for call in all_calls(op, self.rows_a_call))

    def path(self, op: Op, by_row: bool, context: Context) -> str:
        return convolve_path(middle_call(op, by_row, self.rows_a_call), context.cmsis_nn)
