"""CMSIS-NN's convolution."""

from __future__ import annotations

from tinyfuse.ir import Op
from tinyfuse.kernels.cmsis_common import (
    SUCCESS,
    CmsisRows,
    activation,
    channel_constants,
    dims,
    function_context,
    max_scratch,
    per_channel,
    row_window,
    tile,
    window_pointer,
)
from tinyfuse.kernels.cmsis_conv_paths import (
    all_calls,
    convolve_exact,
    convolve_scratch,
    whole_call,
)
from tinyfuse.ops.base import Call, Constant, Context, Let, RowWindow, Site, Statement
from tinyfuse.ops.convolution import geometry


class CmsisConv(CmsisRows):
    """CONV_2D. The output must not overlap the input: the order of the outputs differs by path."""

    name = "arm_convolve_wrapper_s8"
    stack_bytes = 1280

    def accepts(self, op: Op, context: Context) -> bool:
        return super().accepts(op, context) and all(convolve_exact(c, context) for c in all_calls(op))

    def window(self, op: Op) -> RowWindow:
        return geometry(op).window

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return channel_constants(op)

    def scratch(self, op: Op, context: Context) -> int:
        return max_scratch(convolve_scratch(call, context) for call in all_calls(op))

    def call(self, op: Op, site: Site, context: Context) -> tuple[Statement, ...]:
        return image_call(self.name, "cmsis_nn_conv_params", {}, op, site, self.scratch(op, context))


def image_call(
    function: str, params_type: str, params: dict[str, int], op: Op, site: Site, scratch: int
) -> tuple[Statement, ...]:
    """A call of a (depthwise) convolution; `params` are fields of its parameters beside the usual."""
    window, call, source = geometry(op).window, whole_call(op), site.inputs[0]
    statements: list[Statement] = []
    pointer, in_h, out_h, pad_h, stride_h = source.pointer, call.in_h, call.out_h, call.pad_h, call.stride_h
    if site.row is not None:
        statements.append(row_window(window, site, call.in_h))
        pointer = window_pointer(window, source)
        # the fields of cmsis_conv_paths.row_call
        in_h, out_h, pad_h, stride_h = "window.rows", 1, "window.pad_top", 1
    filters = call.out_c if op.kind == "CONV_2D" else 1
    filter_c = call.kernel_c if op.kind == "CONV_2D" else call.out_c
    fields = {
        "input_offset": -op.input.zero_point,
        "output_offset": op.output.zero_point,
        **params,
        "stride": tile(stride_h, call.stride_w),
        "padding": tile(pad_h, call.pad_w),
        "dilation": tile(call.dilation_h, call.dilation_w),
        "activation": activation(op),
    }
    return (
        *statements,
        function_context(site, scratch),
        Let(params_type, "params", fields),
        per_channel(site),
        dims("input", 1, in_h, call.in_w, call.in_c),
        dims("filter", filters, call.kernel_h, call.kernel_w, filter_c),
        dims("bias", 1, 1, 1, call.out_c),
        dims("output", 1, out_h, call.out_w, call.out_c),
        Call(
            function,
            ("&context", "&params", "&quantization", "&input_dims", pointer, "&filter_dims",
             site.constant("weights"), "&bias_dims", site.constant("bias"), "&output_dims",
             site.outputs[0].pointer),
            SUCCESS,
        ),
    )  # fmt: skip
