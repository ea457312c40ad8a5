"""C of layers, pools and softmax: each is a call of CMSIS-NN."""

from __future__ import annotations

import numpy as np

from tinyfuse.frontend.executorch.arguments import Arguments
from tinyfuse.verify.executorch_c.declarations import NHWC, Declarations, Writer

#: sort of layer -> the function of CMSIS-NN
_LAYERS = {
    "conv": "arm_convolve_wrapper_s8",
    "dw_conv": "arm_depthwise_conv_wrapper_s8",
    "transpose_conv": "arm_transpose_conv_wrapper_s8",
}


def _image_dims(a: Arguments) -> list[str]:
    """Declare the dimensions of input and result, both images."""
    explicit = "_nhwc." in a.call.kind
    lines = []
    for name, value in (("in", a.value("input")), ("out", a.out)):
        n, h, w, channels = value.sizes if explicit else (value.sizes[d] for d in NHWC)
        lines.append(f"const cmsis_nn_dims {name} = {{{n}, {h}, {w}, {channels}}};")
    return lines


def _layer(c: Declarations, a: Arguments, kind: str, settings: str) -> list[str]:
    weight, bias = a.value("weight"), a.optional("bias")
    rows, columns = a.pair("stride")
    top, left = a.pair("padding")
    down, right = a.pair("dilation")
    low, high = a.clamp()
    multipliers, shifts = (c.pointer(a.value(f"requantize_{w}")) for w in ("multipliers", "shifts"))
    channels = a.value("requantize_multipliers").elements
    biases = "NULL" if bias is None else c.pointer(bias)
    data = f"{c.pointer(a.value('input'))}, &filter, {c.pointer(weight)}, &biases, {biases}, &out"
    contexts = "&context, &output" if kind == "transpose_conv" else "&context"
    return [
        *_image_dims(a),
        f"const cmsis_nn_dims filter = {{{', '.join(map(str, weight.sizes))}}}, biases = {{1, 1, 1, {channels}}};",
        f"const cmsis_nn_{kind}_params settings = {{.input_offset = {a.integer('input_offset')}, "
        f".output_offset = {a.integer('output_offset')}, {settings}.stride = {{.h = {rows}, .w = {columns}}}, "
        f".padding = {{.h = {top}, .w = {left}}}, .dilation = {{.h = {down}, .w = {right}}}, "
        f".activation = {{.min = {low}, .max = {high}}}}};",
        "const cmsis_nn_per_channel_quant_params quant = "
        f"{{(int32_t *)(uintptr_t){multipliers}, (int32_t *)(uintptr_t){shifts}}};",
        *_layer_scratch(c, kind),
        c.checked_call(_LAYERS[kind], contexts, "&settings", "&quant", "&in", data, c.pointer(a.out)),
    ]


def _layer_scratch(c: Declarations, kind: str) -> list[str]:
    """Declare the contexts with scratch memory that a layer's function takes."""
    if kind == "transpose_conv":
        sizes = (
            c.scratch_bytes("arm_transpose_conv_s8_get_buffer_size", "&settings", "&in", "&filter", "&out"),
            c.scratch_bytes("arm_transpose_conv_s8_get_reverse_conv_buffer_size", "&settings", "&in", "&filter"),
        )
        return [
            f"const cmsis_nn_context {name} = space({number}, {size});"
            for number, (name, size) in enumerate(zip(("context", "output"), sizes, strict=True))
        ]
    size = c.scratch_bytes(f"{_LAYERS[kind]}_get_buffer_size", "&settings", "&in", "&filter", "&out")
    return [f"const cmsis_nn_context context = space(0, {size});"]


def _conv(c: Declarations, a: Arguments) -> list[str]:
    return _layer(c, a, "conv", "")


def _depthwise(c: Declarations, a: Arguments) -> list[str]:
    return _layer(c, a, "dw_conv", f".ch_mult = {a.integer('depth_multiplier')}, ")


def _transposed_conv(c: Declarations, a: Arguments) -> list[str]:
    rows, columns = a.pair("output_padding")
    return _layer(c, a, "transpose_conv", f".padding_offsets = {{.h = {rows}, .w = {columns}}}, ")


def _linear_biases(c: Declarations, a: Arguments) -> str:
    """Return a pointer to the biases of a linear layer, or "NULL"."""
    bias, sums = a.optional("bias"), a.optional("kernel_sum")
    if bias is not None:
        return c.pointer(bias)
    if sums is None or sums.data is None:
        return "NULL"
    # only Helium's code reads the sums, which contain the bias
    folded = sums.data - a.constant("weights", "int8").astype(np.int64).sum(axis=1) * a.integer("input_offset")
    return c.constant(f"bias_{a.call.index}", folded, "int32_t")


def _linear(c: Declarations, a: Arguments) -> list[str]:
    value, weights, sums = a.value("input"), a.value("weights"), a.optional("kernel_sum")
    outputs, inputs = weights.sizes
    low, high = a.clamp()
    offset, biases = a.integer("input_offset"), _linear_biases(c, a)
    sizes = f"{{{value.elements // inputs}, 1, 1, "
    (multiplier,), (shift,) = (a.integers(f"requantize_{what}", 1) for what in ("multipliers", "shifts"))
    size = c.scratch_bytes("arm_fully_connected_s8_get_buffer_size", "&filter")
    c.functions.add("arm_vector_sum_s8")
    weight = c.pointer(weights)
    helium = (
        f"context.buf = (void *)(uintptr_t){c.pointer(sums)};"
        if sums is not None
        else f"(void)arm_vector_sum_s8(context.buf, {inputs}, {outputs}, {weight}, {offset}, 0, {biases});"
    )
    return [
        f"const cmsis_nn_dims in = {sizes}{inputs}}}, filter = {{{inputs}, 1, 1, {outputs}}};",
        f"const cmsis_nn_dims out = {sizes}{outputs}}}, bias = {{1, 1, 1, {outputs}}};",
        f"const cmsis_nn_fc_params settings = {{.input_offset = {offset}, .filter_offset = "
        f"{a.integer('filter_offset')}, .output_offset = {a.integer('output_offset')}, "
        f".activation = {{.min = {low}, .max = {high}}}}};",
        f"const cmsis_nn_per_tensor_quant_params quant = {{{multiplier}, {shift}}};",
        f"cmsis_nn_context context = space(0, {size});",
        *([] if sums is None else [f"(void){c.pointer(sums)};"]),
        "#if defined(ARM_MATH_MVEI)", helium, "#endif",
        c.checked_call("arm_fully_connected_s8", "&context", "&settings", "&quant", "&in", c.pointer(value),
                       "&filter", weight, "&bias", biases, "&out", c.pointer(a.out)),
    ]  # fmt: skip


def _matmul(c: Declarations, a: Arguments) -> list[str]:
    left, right = a.value("lhs"), a.value("rhs_transposed")
    batch, rows, inner = left.sizes
    columns = right.sizes[1]
    return [
        f"const cmsis_nn_dims left = {{1, {batch}, {rows}, {inner}}}, right = {{1, {batch}, {columns}, {inner}}};",
        f"const cmsis_nn_dims out = {{1, {batch}, {rows}, {columns}}};",
        "const cmsis_nn_bmm_params settings = {.fc_params = {.input_offset = "
        f"{a.integer('lhs_zero_point')}, .filter_offset = {a.integer('rhs_zero_point')}, .output_offset = "
        f"{a.integer('output_zero_point')}, .activation = {{.min = -128, .max = 127}}}}}};",
        f"const cmsis_nn_per_tensor_quant_params quant = {{{a.integer('output_multiplier')}, "
        f"{a.integer('output_shift')}}};",
        "const cmsis_nn_context context = "
        f"space(0, {c.scratch_bytes('arm_fully_connected_s8_get_buffer_size', '&out')} + {4 * columns});",
        c.checked_call("arm_batch_matmul_s8", "&context", "&settings", "&quant", "&left", c.pointer(left),
                       "&right", c.pointer(right), "&out", c.pointer(a.out)),
    ]  # fmt: skip


def _pool(c: Declarations, a: Arguments) -> list[str]:
    average = "avg_pool" in a.call.kind
    low, high = (-128, 127) if average else a.clamp()
    settings = [
        f".{name} = {{.h = {pair[0]}, .w = {pair[1]}}}"
        for name, pair in (("stride", a.pair("stride")), ("padding", a.pair("padding")))
    ]
    rows, columns = a.pair("kernel_size")
    size = c.scratch_bytes("arm_avgpool_s8_get_buffer_size", "out.w", "in.c") if average else "0"
    return [
        *_image_dims(a),
        f"const cmsis_nn_dims filter = {{1, {rows}, {columns}, 1}};",
        f"const cmsis_nn_pool_params settings = {{{', '.join(settings)}, "
        f".activation = {{.min = {low}, .max = {high}}}}};",
        f"const cmsis_nn_context context = space(0, {size});",
        c.checked_call("arm_avgpool_s8" if average else "arm_max_pool_s8", "&context", "&settings", "&in",
                       c.pointer(a.value("input")), "&filter", "&out", c.pointer(a.out)),
    ]  # fmt: skip


def _softmax(c: Declarations, a: Arguments) -> list[str]:
    value = a.value("input")
    row = value.sizes[-1]
    c.functions.add("arm_softmax_s8")
    numbers = [a.integer(name) for name in ("input_multiplier", "input_shift", "diff_min")]
    return [
        f"arm_softmax_s8({c.pointer(value)}, {value.elements // row}, {row}, "
        f"{', '.join(map(str, numbers))}, {c.pointer(a.out)});"
    ]


WRITERS: dict[str, Writer] = {
    "cortex_m::quantized_linear.out": _linear,
    "cortex_m::quantized_conv2d.out": _conv,
    "cortex_m::quantized_depthwise_conv2d.out": _depthwise,
    "cortex_m::quantized_transpose_conv2d.out": _transposed_conv,
    "cortex_m::quantized_batch_matmul.out": _matmul,
    "cortex_m::quantized_avg_pool2d.out": _pool,
    "cortex_m::quantized_max_pool2d.out": _pool,
    "cortex_m::softmax.out": _softmax,
}
