"""Rules that CONV_2D, DEPTHWISE_CONV_2D, FULLY_CONNECTED and TRANSPOSE_CONV share."""

from __future__ import annotations

from tinyfuse.ir import INT4, Op, Tensor
from tinyfuse.ir.fixedpoint import RANGE
from tinyfuse.ops.core.convolution import (
    ACTIVATIONS,
    Clamped,
    Conv2D,
    accumulator,
    channel_multipliers,
    padded_dims,
    quantized,
)
from tinyfuse.ops.core.family import Rule


def _one_scale(tensor: Tensor) -> bool:
    quant = tensor.quant
    return quant is not None and len(quant.scale) == 1 and len(quant.zero_point) == 1


def _bias_dtypes(op: Op) -> tuple[str, ...]:
    """Return the dtypes that TFLM accepts for the bias."""
    if op.output.dtype != "int16":
        return ("int32",) if op.output.dtype == "int8" else (op.output.dtype,)
    return {"DEPTHWISE_CONV_2D": ("int64",), "TRANSPOSE_CONV": ("int64", "int16")}.get(op.kind, ("int64", "int32"))


def _bad_data(op: Op) -> Tensor | None:
    data, result = op.operand(0), op.outputs[0]
    if data.dtype not in ("int8", "int16", "float32"):
        return data
    return None if result.dtype == data.dtype else result


def _bad_weights(op: Op) -> Tensor | None:
    weights = op.operand(1)
    dtypes = {"int8": ("int8", INT4), "int16": ("int8",), "float32": ("float32",)}[op.input.dtype]
    if getattr(op.attributes, "float_scales", False):
        dtypes += ("int16",)
    return None if weights.dtype in dtypes and (weights.is_constant or weights.dtype != INT4) else weights


def _bad_bias(op: Op) -> Tensor | None:
    bias = op.optional(2)
    good = bias is None or (bias.dtype in _bias_dtypes(op) and bias.elements == op.output.shape[-1])
    return None if good else bias


def _bad_scale(op: Op) -> Tensor | None:
    if not quantized(op):
        return None
    # a filter with only zeros may have scale 0: TFLM multiplies its sums by 0
    least = {op.operand(1): 0.0}
    for tensor in (op.input, op.operand(1), op.output):
        scales = tensor.quantization.scale
        if min(scales) > 0 and max(scales) < float("inf"):  # the usual case, without a loop
            continue
        if not all(scale < float("inf") and (scale > 0 or scale == least.get(tensor)) for scale in scales):
            return tensor
    return None


#: rules on tensors that do not rely on their shapes, which are checked later
TENSOR_RULES = (
    Rule(
        "two or three inputs and one output",
        lambda op: not 2 <= len(op.inputs) <= 3 or len(op.outputs) != 1 or None in op.inputs[:2],
    ),
    Rule("input and output are both int8, int16 or float32", _bad_data),
    Rule(
        "weights, constant or computed, are int8, with float32 data float32; constant ones with int8 data int4 too",
        _bad_weights,
    ),
    Rule(
        "quantized input and output are each quantized by one scale and one zero point",
        lambda op: next((t for t in (op.input, op.output) if quantized(op) and not _one_scale(t)), None),
    ),
)

#: rule of convolutions: with int16 data, TFLM computes them without zero points
ZERO_POINT_RULE = Rule(
    "zero points of int16 are 0",
    lambda op: next((t for t in (op.input, op.output) if t.dtype == "int16" and t.zero_point != 0), None),
)


def _bad_bounds(op: Op) -> Tensor | None:
    bounded = op.attributes_as(Clamped).activation in ("RELU6", "RELU_N1_TO_1")
    return op.output if bounded and op.output.dtype in RANGE and op.output.scale <= 2.0**-28 else None


#: rules on a fused activation, of every operator that has one
ACTIVATION_RULES = (
    Rule(
        f"the fused activation is one of {', '.join(ACTIVATIONS)}",
        lambda op: op.attributes_as(Clamped).activation not in ACTIVATIONS,
    ),
    Rule(
        "the scale of a quantized output with a fused RELU6 or RELU_N1_TO_1 is above 2^-28",
        _bad_bounds,
        "the activation's bounds, divided by it, may not fit 32 bits",
    ),
)

#: left shifts that TFLM's requantization is made for
_MOST_SHIFT = {"int32": 30, "int64": 7}

#: rules on quantization, once the shapes are right
QUANTIZATION_RULES = (
    Rule(
        "the bias is absent, or has one value per output channel: int32 with int8 data, float32 with float32; "
        "with int16 data int64, or int32 of CONV_2D and FULLY_CONNECTED, or int16 of TRANSPOSE_CONV",
        _bad_bias,
    ),
    Rule("scales are positive and finite; that of a filter may be 0", _bad_scale),
    Rule(
        "a requantization multiplier is below 2^31, of int64 sums below 2^7",
        lambda op: quantized(op) and bool((channel_multipliers(op)[1] > _MOST_SHIFT[accumulator(op)]).any()),
    ),
    *ACTIVATION_RULES,
)


def size_along(tensor: Tensor, axis: int) -> int | None:
    """Size of the dimension `axis`, which a file names; None if the tensor has no such dimension."""
    return tensor.shape[axis] if 0 <= axis < len(tensor.shape) else None


def weights_scale_rule(axis: int) -> Rule:
    """Rule that weights are symmetric, with one scale or one per index of dimension `axis`. As in TFLM, the file may
    name another dimension of the same size (kernel_util.cc, PopulateConvolutionQuantizationParams)."""

    def bad(op: Op) -> Tensor | None:
        weights = op.operand(1)
        quant = weights.quant
        if not quantized(op):
            return None
        if quant is None or any(quant.zero_point):
            return weights
        if len(quant.scale) == 1:
            return None
        return None if len(quant.scale) == weights.shape[axis] == size_along(weights, quant.axis) else weights

    return Rule(f"quantized weights have zero point 0 and one scale, or one per index of dimension {axis}", bad)


def _bad_output_shape(op: Op) -> Tensor | None:
    (rows, _), (columns, _) = padded_dims(op)
    good = rows > 0 and columns > 0 and op.output.shape[:3] == (op.input.shape[0], rows, columns)
    return None if good else op.output


def _bad_steps(op: Op) -> bool:
    a = op.attributes_as(Conv2D)
    return not all(1 <= step <= _MOST_STEP for step in a.stride + a.dilation)


def _ends_too_far(op: Op) -> bool:
    a, (_, rows, columns, _), (_, *kernel, _) = op.attributes_as(Conv2D), op.output.shape, op.operand(1).shape
    axes = zip((rows, columns), a.stride, kernel, a.dilation, strict=True)
    return any(count * stride + size * dilation >= 1 << 30 for count, stride, size, dilation in axes)


#: the largest stride and the largest dilation
_MOST_STEP = 32767

#: rules on the shapes of CONV_2D and DEPTHWISE_CONV_2D
SHAPE_RULES = (
    Rule(
        "input, weights and output have rank 4 and no empty dimension",
        lambda op: next(
            (t for t in (op.input, op.operand(1), op.output) if len(t.shape) != 4 or min(t.shape) < 1),
            None,
        ),
    ),
    Rule(
        f"strides and dilations are from 1 to {_MOST_STEP}",
        lambda op: (
            not all(
                1 <= step <= _MOST_STEP for step in op.attributes_as(Conv2D).stride + op.attributes_as(Conv2D).dilation
            )
        ),
    ),
    Rule(
        "the output has the input's batch, and the rows and columns that padding, stride and dilation give",
        _bad_output_shape,
    ),
    Rule("windows end before row and column 2^30, whose numbers fit 32 bits", _ends_too_far),
)
