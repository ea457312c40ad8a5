"""CMSIS-NN's convolution."""

from __future__ import annotations

from tinyfuse.ir import Op
from tinyfuse.kernels.cmsis.common import (
    SEVERAL_ROWS,
    SUCCESS,
    CmsisRows,
    activation,
    channel_constants,
    dims,
    function_context,
    image,
    per_channel,
    tile,
)
from tinyfuse.kernels.cmsis.conv_paths import (
    all_calls,
    all_exact,
    convolve_exact,
    convolve_path,
    convolve_scratch,
    middle_call,
    whole_call,
)
from tinyfuse.kernels.core.context import Context, without_objective
from tinyfuse.kernels.core.kernel import CallSite, Constant
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

    def window(self, op: Op) -> RowWindow:
        return geometry(op).window

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return channel_constants(op)

    def counts(self, op: Op, by_row: bool) -> Counts:
        return layer_counts(op, by_row, self.rows_a_call)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        return image_call(self, "cmsis_nn_conv_params", {}, op, site, context)


class CmsisConv(Convolution):
    """CONV_2D of int8 by CMSIS-NN."""

    name = "arm_convolve_wrapper_s8"

    def accepts(self, op: Op, context: Context) -> bool:
        of_any = without_objective(context)
        return super().accepts(op, context) and all_exact(convolve_exact, op, self.rows_a_call, of_any)

    def scratch(self, op: Op, context: Context) -> int:
        return max(convolve_scratch(call, context) for call in all_calls(op, self.rows_a_call))

    def path(self, op: Op, by_row: bool, context: Context) -> str:
        return convolve_path(middle_call(op, by_row, self.rows_a_call), context.cmsis_nn)


def image_call(
    kernel: Convolution,
    params_type: str,
    params: dict[str, int],
    op: Op,
    site: CallSite,
    context: Context,
    bias: str | None = None,
) -> tuple[Statement, ...]:
    """Return the call of a (depthwise) convolution.

    `params` are further fields of its parameter struct, `bias` is C for the bias, by default the constant.
    """
    call, source = whole_call(op), image(kernel.window(op), site, kernel.rows_a_call)
    depthwise = FAMILIES[op.kind].depthwise
    filters = 1 if depthwise else call.out_c
    filter_c = call.out_c if depthwise else call.kernel_c
    fields = {  # calls by rows pass the dimensions that conv_paths.all_calls lists
        "input_offset": -op.input.zero_point,
        "output_offset": op.output.zero_point,
        **params,
        "stride": tile(source.stride, call.stride_w),
        "padding": tile(source.pad_top, call.pad_w),
        "dilation": tile(call.dilation_h, call.dilation_w),
        "activation": activation(op),
    }
    return (
        *source.statements,
        function_context(site, kernel.scratch(op, context)),
        Let(params_type, "params", fields),
        per_channel(site),
        dims("input", 1, source.rows, call.in_w, call.in_c),
        dims("filter", filters, call.kernel_h, call.kernel_w, filter_c),
        dims("bias", 1, 1, 1, call.out_c),
        dims("output", 1, source.out_rows, call.out_w, call.out_c),
        Call(
            kernel.name,
            ("&context", "&params", "&quantization", "&input_dims", source.pointer, "&filter_dims",
             site.constant("weights"), "&bias_dims", bias or site.constant("bias"), "&output_dims",
             site.output.pointer),
            SUCCESS,
        ),
    )  # fmt: skip
