"""Scratch sizes against CMSIS-NN's own getters, which run inside firmware of each target."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from cases.matrices import transpose_conv
from cmsis_harness import PRELUDE, array, context_for, run_program, tree_or_skip

from tinyfuse.kernels.cmsis.batch_matmul import sums_scratch
from tinyfuse.kernels.cmsis.conv import depthwise_path, depthwise_scratch
from tinyfuse.kernels.cmsis.conv_paths import ConvCall, convolve_exact, convolve_path, convolve_scratch
from tinyfuse.kernels.cmsis.pooling_reduce import average_scratch
from tinyfuse.kernels.cmsis.transpose_conv import CmsisReverseConv, rolling_scratch

_FIELDS = ConvCall._fields
_GETTERS = {
    "arm_convolve_wrapper_s8_get_buffer_size",
    "arm_depthwise_conv_wrapper_s8_get_buffer_size",
    "arm_avgpool_s8_get_buffer_size",
    "arm_fully_connected_s8_get_buffer_size",
}

# kernel_c is only the convolution's; the depthwise convolution has filters of out_c channels
_PROGRAM = """
int main(void)
{
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i += 15) {
        const int32_t *const c = calls + i;
        const cmsis_nn_dims input = {1, c[0], c[1], c[2]}, output = {1, c[3], c[4], c[5]};
        const cmsis_nn_dims filter = {c[5], c[6], c[7], c[8]}, depthwise_filter = {1, c[6], c[7], c[5]};
        const cmsis_nn_tile stride = {c[10], c[9]}, dilation = {c[12], c[11]}, padding = {c[14], c[13]};
        const cmsis_nn_conv_params params = {.stride = stride, .padding = padding, .dilation = dilation};
        const cmsis_nn_dw_conv_params depthwise = {
            .ch_mult = c[5] / c[2], .stride = stride, .padding = padding, .dilation = dilation};
        const cmsis_nn_dims fully_connected = {c[2], 1, 1, c[5]};

        port_write("case", 4);
        write_number(arm_convolve_wrapper_s8_get_buffer_size(&params, &input, &filter, &output));
        write_number(arm_depthwise_conv_wrapper_s8_get_buffer_size(&depthwise, &input, &depthwise_filter, &output));
        write_number(arm_avgpool_s8_get_buffer_size(c[4], c[2]));
        write_number(arm_fully_connected_s8_get_buffer_size(&fully_connected));
        port_write("\\n", 1);
    }
    port_exit(0);
}
"""


def grid() -> list[ConvCall]:
    """Layers for every path: kernels, strides, paddings, dilations, widths, channels, window rows."""
    calls = []
    channels = ((1, 1), (1, 2), (1, 9), (3, 3), (4, 4), (8, 16), (17, 17), (130, 130))
    for (in_c, out_c), (kernel_h, kernel_w), stride, dilation, pad, in_h, in_w in product(
        channels, ((1, 1), (1, 3), (1, 4), (3, 3), (5, 2)), (1, 2), (1, 2), (0, 1, 2), (1, 4), (3, 8)
    ):
        out_w = (in_w + 2 * pad - (kernel_w - 1) * dilation - 1) // stride + 1
        if out_w > 0:
            calls.append(ConvCall(
                in_h, in_w, in_c, in_h, out_w, out_c, kernel_h, kernel_w, in_c, stride, stride,
                dilation, dilation, min(pad, kernel_h), pad,
            ))  # fmt: skip
    return calls


@pytest.mark.emulated
@pytest.mark.parametrize("target", ["cortex-m3", "cortex-m4", "cortex-m55"])
@pytest.mark.parametrize("wanted", ["4.0", "newest"])
def test_scratch_is_what_the_getters_say(wanted: str, target: str, tmp_path: Path) -> None:
    tree = tree_or_skip(wanted)
    context, calls = context_for(target, tree), grid()
    table = array("int32_t", "calls", np.array([[getattr(c, f) for f in _FIELDS] for c in calls]))
    text = f"#include <arm_nnfunctions.h>\n{PRELUDE}{table}{_PROGRAM}"
    lines = run_program(text, _GETTERS, context.target, tree, tmp_path)
    assert len(lines) == len(calls) > 500
    for call, (convolve, depthwise, average, sums) in zip(calls, lines, strict=True):
        assert convolve_scratch(call, context) == convolve, call
        if call.out_c % call.in_c == 0:
            # 4.0's getter also wants scratch for the 3x3 path, which ignores it
            unused = tree.version == (4, 0) and depthwise_path(call, context) == "3x3"
            assert depthwise_scratch(call, context) == (0 if unused else depthwise), call
        assert average_scratch(call.in_c, context) == average, call
        assert sums == (4 * call.out_c if context.target.mve and tree.version >= (5, 0) else 0)
        if tree.version >= (7, 0):  # BATCH_MATMUL asks the same getter
            assert sums_scratch(call.out_c, context) == sums


_TRANSPOSED = """
int main(void)
{
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i += 8) {
        const int32_t *const c = calls + i;
        const cmsis_nn_dims input = {1, c[0], c[1], c[2]}, filter = {c[3], c[4], c[5], c[2]};
        const cmsis_nn_dims output = {1, c[0] * c[6], c[1] * c[7], c[3]};
        const cmsis_nn_transpose_conv_params params = {.stride = {c[7], c[6]}};

        port_write("case", 4);
        write_number(arm_transpose_conv_s8_get_buffer_size(&params, &input, &filter, &output));
        write_number(arm_convolve_s8_get_buffer_size(&input, &filter));
        port_write("\\n", 1);
    }
    port_exit(0);
}
"""


@pytest.mark.emulated
@pytest.mark.parametrize("target", ["cortex-m3", "cortex-m4", "cortex-m55"])
def test_scratch_of_transposed_convolutions(target: str, tmp_path: Path) -> None:
    """Compares both kernels with the getters of the functions that they call; the wrapper's getter selects the
    function."""
    tree = tree_or_skip("newest")
    if tree.version < (7, 0):
        pytest.skip("needs CMSIS-NN 7.0 or later: CMSIS_NN_PATH names an older one")
    calls = list(product((1, 5), (1, 6), (3, 16, 17), (1, 5), (1, 4), (2, 3), (1, 2, 4), (1, 2, 4)))
    getters = {"arm_transpose_conv_s8_get_buffer_size", "arm_convolve_s8_get_buffer_size"}
    text = f"#include <arm_nnfunctions.h>\n{PRELUDE}{array('int32_t', 'calls', np.array(calls))}{_TRANSPOSED}"
    context = context_for(target, tree)
    lines = run_program(text, getters, context.target, tree, tmp_path)
    assert len(lines) == len(calls) > 800
    for call, (transposed, convolve) in zip(calls, lines, strict=True):
        height, width, channels, filters, *kernel, stride_h, stride_w = call
        op = transpose_conv((1, height, width, channels), filters, kernel, (stride_h, stride_w))
        assert CmsisReverseConv().scratch(op, context) == convolve, call
        if channels > 16 and max(stride_h, stride_w) <= 2:
            assert transposed == convolve, call
        elif max(kernel[1], stride_h) == max(kernel[1], stride_w):
            # else the getter takes one stride for the other
            assert rolling_scratch(op) == transposed, call


def test_known_sizes() -> None:
    """12x12x8 with a 3x3 depthwise kernel, in 7.0: nothing on DSP, 4,464 bytes on MVE."""
    from tinyfuse.kernels.core.context import Context
    from tinyfuse.targets import load_target

    call = ConvCall(12, 12, 8, 12, 12, 8, 3, 3, 1, 1, 1, 1, 1, 1, 1)
    assert depthwise_scratch(call, Context(load_target("cortex-m4"))) == 0
    assert depthwise_scratch(call, Context(load_target("cortex-m55"))) == 4464
    row = ConvCall(1, 8, 4, 1, 4, 3, 1, 5, 4, 1, 2, 1, 1, 0, 2)
    assert convolve_path(row, Context(load_target("cortex-m55"))) == "1xn"
    # a stride of 2 with two columns of padding right: 6.0 and 7.0 read a column after the input
    odd = ConvCall(1, 7, 4, 1, 4, 3, 1, 5, 4, 1, 2, 1, 1, 0, 2)
    assert convolve_exact(odd, Context(load_target("cortex-m4")))
    assert not convolve_exact(odd, Context(load_target("cortex-m55")))
