"""Kinds of calls that are converted, with the names of their arguments in the order of ExecuTorch's signatures."""

from __future__ import annotations

from tinyfuse.frontend.executorch import elementwise, layers, movement, portable
from tinyfuse.frontend.executorch.graph import Kind
from tinyfuse.frontend.executorch.memory import VIEW

_WINDOW = "stride padding dilation"
_REQUANTIZED = "input_offset output_offset requantize_multipliers requantize_shifts activation_min activation_max"
_QUANTIZED = "input scale zero_point quant_min quant_max dtype"

#: kind -> (names of arguments, conversion, statement of quantizations)
_KINDS = {
    "cortex_m::quantize_per_tensor.out": (_QUANTIZED, elementwise.convert_quantize, elementwise.state_quantize),
    "cortex_m::dequantize_per_tensor.out": (_QUANTIZED, elementwise.convert_dequantize, elementwise.state_dequantize),
    "cortex_m::quantized_add.out": (
        "self self_zero_point self_multiplier self_shift other other_zero_point other_multiplier other_shift "
        "output_zero_point output_multiplier output_shift activation_min activation_max",
        elementwise.convert_add,
        elementwise.state_add,
    ),
    "cortex_m::quantized_mul.out": (
        "self self_zero_point other other_zero_point output_zero_point output_multiplier output_shift",
        elementwise.convert_mul,
        elementwise.state_mul,
    ),
    "cortex_m::quantized_div.out": (
        "self self_zero_point other other_zero_point output_zero_point output_scale",
        elementwise.convert_div,
        elementwise.state_div,
    ),
    "cortex_m::quantized_activation.out": ("input lut", elementwise.convert_table, elementwise.state_nothing),
    "cortex_m::minimum.out": ("self other", elementwise.convert_choice, elementwise.state_choice),
    "cortex_m::maximum.out": ("self other", elementwise.convert_choice, elementwise.state_choice),
    "aten::minimum.out": ("self other", elementwise.convert_choice, elementwise.state_choice),
    "aten::maximum.out": ("self other", elementwise.convert_choice, elementwise.state_choice),
    "cortex_m::quantized_linear.out": (
        "input weights bias kernel_sum input_offset filter_offset output_offset requantize_multipliers "
        "requantize_shifts activation_max activation_min",
        layers.convert_linear,
        layers.state_layer,
    ),
    "cortex_m::quantized_conv2d.out": (
        f"input weight bias {_WINDOW} {_REQUANTIZED} scratch",
        layers.convert_conv,
        layers.state_layer,
    ),
    "cortex_m::quantized_depthwise_conv2d.out": (
        f"input weight bias {_WINDOW} depth_multiplier {_REQUANTIZED} scratch",
        layers.convert_depthwise,
        layers.state_layer,
    ),
    "cortex_m::quantized_transpose_conv2d.out": (
        f"input weight bias stride padding output_padding dilation {_REQUANTIZED} scratch output_scratch",
        layers.convert_transposed_conv,
        layers.state_layer,
    ),
    "cortex_m::quantized_batch_matmul.out": (
        "lhs lhs_zero_point rhs_transposed rhs_zero_point output_zero_point output_multiplier output_shift scratch",
        layers.convert_matmul,
        layers.state_matmul,
    ),
    "cortex_m::quantized_avg_pool2d.out": (
        "input kernel_size stride padding ceil_mode zero_point multiplier shift scratch",
        movement.convert_pool,
        movement.state_average,
    ),
    "cortex_m::quantized_max_pool2d.out": (
        "input kernel_size stride padding dilation ceil_mode input_zero_point output_zero_point activation_min "
        "activation_max",
        movement.convert_pool,
        movement.state_maximum,
    ),
    "cortex_m::softmax.out": (
        "input dim input_zero_point output_zero_point input_multiplier input_shift diff_min",
        movement.convert_softmax,
        movement.state_softmax,
    ),
    "cortex_m::transpose.out": ("input dims", movement.convert_transpose, movement.state_moved),
    "cortex_m::pad.out": ("input pre_pad post_pad pad_value", movement.convert_pad, movement.state_moved),
    "aten::permute_copy.out": ("input dims", movement.convert_transpose, movement.state_moved),
    "aten::view_copy.out": ("input size", movement.convert_view, movement.state_moved),
    "aten::cat.out": ("tensors dim", movement.convert_join, movement.require_one_quantization),
    "dim_order_ops::_to_dim_order_copy.out": (
        "input non_blocking dim_order",
        movement.convert_copy,
        movement.state_moved,
    ),
    "dim_order_ops::_clone_dim_order.out": (
        "input non_blocking dim_order",
        movement.convert_copy,
        movement.state_moved,
    ),
    VIEW: ("input", movement.convert_view, movement.state_moved),
    "aten::unsqueeze_copy.out": ("input dim", movement.convert_view, movement.state_moved),
    "aten::squeeze_copy.dim_out": ("input dim", movement.convert_view, movement.state_moved),
    "aten::squeeze_copy.dims_out": ("input dim", movement.convert_view, movement.state_moved),
    "aten::slice_copy.Tensor_out": ("input dim start end step", portable.convert_slice, movement.state_moved),
    "aten::select_copy.int_out": ("input dim index", portable.convert_slice, movement.state_moved),
    "aten::upsample_nearest2d.vec_out": (
        "input output_size scale_factors",
        portable.convert_upsample,
        movement.state_moved,
    ),
    "aten::add.out": ("self other alpha", portable.convert_arithmetic, elementwise.state_nothing),
    "aten::sub.out": ("self other alpha", portable.convert_arithmetic, elementwise.state_nothing),
    "aten::mul.out": ("self other", portable.convert_arithmetic, elementwise.state_nothing),
    "aten::div.out": ("self other", portable.convert_arithmetic, elementwise.state_nothing),
    "aten::clamp.out": ("input min max", portable.convert_clamp, elementwise.state_nothing),
    "aten::hardtanh.out": ("input min max", portable.convert_clamp, elementwise.state_nothing),
    "aten::mean.out": ("input dim keepdim dtype", portable.convert_mean, elementwise.state_nothing),
    "aten::native_layer_norm.out": (
        "input normalized_shape weight bias eps out mean rstd",
        portable.convert_layer_norm,
        elementwise.state_nothing,
    ),
} | {
    f"aten::{name}.out": ("input", portable.convert_function, elementwise.state_nothing)
    for name in ("relu", "abs", "neg", "sqrt", "floor", "ceil")
}  # fmt: skip

#: arguments that are computed values
_COMPUTED = ("input", "self", "other", "lhs", "rhs_transposed", "out")
#: beginnings of kinds that convert to or from float32, or move elements of any dtype
_ANY_DTYPE = ("cortex_m::quantize_per", "cortex_m::dequantize_per", "aten::", "dim_order_ops::", VIEW)


def _kind(name: str) -> Kind:
    text, convert, state = _KINDS[name]
    names = tuple(text.split()) if " out " in text else (*text.split(), "out")
    int8 = () if name.startswith(_ANY_DTYPE) else tuple(n for n in names if n in _COMPUTED)
    return Kind(names, int8, convert, state)


KINDS = {name: _kind(name) for name in _KINDS}
#: operators of images, which have twins for sizes [N, H, W, C] in CortexMPassManager(use_explicit_layout=True)
_IMAGES = ("conv2d", "depthwise_conv2d", "transpose_conv2d", "avg_pool2d", "max_pool2d")
KINDS |= {f"cortex_m::quantized_{name}_nhwc.out": KINDS[f"cortex_m::quantized_{name}.out"] for name in _IMAGES}
