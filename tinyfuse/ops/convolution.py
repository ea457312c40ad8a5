"""What CONV_2D, DEPTHWISE_CONV_2D, FULLY_CONNECTED and TRANSPOSE_CONV share: attributes, geometry, arithmetic.

Arithmetic of all four, as TensorFlow Lite Micro does it.

int8     an int32 accumulator that wraps, over (input - input zero point) * weight, plus the bias; requantized per
         output channel with two roundings; plus the output zero point; clamped
int16    with int8 weights: the same where the accumulator is int32; where it is int64 (`accumulator`), it is
         requantized with one rounding and 16 bits of the multiplier
float32  products and their sum, each rounded, in the order of rows, columns, channels; taps outside the image are
         left out; plus the bias (0 where there is none); clamped
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Self

import numpy as np

from tinyfuse.ir import INT4, Array, Int64s, Op, Tensor
from tinyfuse.ir.fixedpoint import (
    activation_range,
    clamp,
    multiply_by_quantized_multiplier,
    multiply_by_reduced_multiplier,
    quantize_multipliers,
)
from tinyfuse.once import cached_property
from tinyfuse.ops.base import RowWindow, Rule

#: activations that a convolution or fully connected layer may have fused in
ACTIVATIONS = ("NONE", "RELU", "RELU6", "RELU_N1_TO_1")


class Clamped:
    """Attributes of an operator that ends in a clamp.

    activation  one of ACTIVATIONS
    clamp       (low, high) in stored units where a rewrite narrowed the clamp by a following
                activation; None: what `activation` gives
    """

    activation: str
    clamp: tuple[int, int] | tuple[float, float] | None

    def clamped(self, clamp: tuple[int, int] | tuple[float, float]) -> Self:
        """The same with that clamp."""
        return replace(self, clamp=clamp)  # type: ignore[type-var]  # each subclass is a dataclass


@dataclass(frozen=True)
class Conv2D(Clamped):
    """Attributes of CONV_2D.

    padding     "SAME" or "VALID" as in the file, or rows and columns (top, bottom, left, right)
                once a rewrite folded a PAD operator in
    stride      (rows, columns)
    dilation    (rows, columns)
    quantized_bias_type  of int16 data without a bias: "INT32" if the sums are int32
    float_scales  of a uint8 model: the scales of input and weights are multiplied in float32, and the weights, less
                  their zero point, may need int16
    """

    padding: str | tuple[int, int, int, int] = "VALID"
    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    activation: str = "NONE"
    clamp: tuple[int, int] | tuple[float, float] | None = None
    quantized_bias_type: str = "FLOAT32"
    float_scales: bool = False


@dataclass(frozen=True)
class DepthwiseConv2D(Conv2D):
    """Attributes of DEPTHWISE_CONV_2D: output channel c reads input channel c // depth_multiplier."""

    depth_multiplier: int = 1


def conv_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that CONV_2D and DEPTHWISE_CONV_2D read alike, with the schema's defaults; the latter's table has
    no quantized_bias_type."""
    return {
        "padding": options.get("padding", "SAME"),
        "stride": (options.get("stride_h", 0), options.get("stride_w", 0)),
        "dilation": (options.get("dilation_h_factor", 1), options.get("dilation_w_factor", 1)),
        "activation": options.get("fused_activation_function", "NONE"),
        "quantized_bias_type": options.get("quantized_bias_type", "FLOAT32"),
    }


@dataclass(frozen=True)
class ConvGeometry:
    """Extents of a convolution in rows, columns and channels.

    `groups` is in_c / channels of a filter for CONV_2D; for DEPTHWISE_CONV_2D it is in_c.
    """

    in_h: int
    in_w: int
    in_c: int
    out_h: int
    out_w: int
    out_c: int
    kernel_h: int
    kernel_w: int
    stride_h: int
    stride_w: int
    dilation_h: int
    dilation_w: int
    pad_top: int
    pad_left: int
    groups: int

    @cached_property
    def window(self) -> RowWindow:
        return RowWindow((self.kernel_h - 1) * self.dilation_h + 1, self.stride_h, self.pad_top)

    @property
    def pads_rows(self) -> bool:
        """Whether a window reaches above or below the image."""
        return self.pad_top > 0 or self.pads_bottom

    @property
    def pads_bottom(self) -> bool:
        """Whether a window reaches below the image."""
        after = (self.out_h - 1) * self.stride_h - self.pad_top + (self.kernel_h - 1) * self.dilation_h
        return after >= self.in_h

    @property
    def pads_columns(self) -> bool:
        """Whether a window reaches beside the image."""
        return self.pad_left > 0 or self.pads_right

    @property
    def pads_right(self) -> bool:
        """Whether a window reaches beyond the image's last column."""
        after = (self.out_w - 1) * self.stride_w - self.pad_left + (self.kernel_w - 1) * self.dilation_w
        return after >= self.in_w


def windows_along(dim: int, kernel: int, stride: int, dilation: int, padding: str | tuple[int, int]) -> tuple[int, int]:
    """(output positions, padding before) of a window that slides along one axis; `padding` is "SAME",
    "VALID" or (before, after)."""
    span = (kernel - 1) * dilation + 1
    if padding == "SAME":
        count = -(-dim // stride)
        return count, max(0, (count - 1) * stride + span - dim) // 2
    before, after = (0, 0) if isinstance(padding, str) else padding
    return (dim + before + after - span) // stride + 1, before


def padded_dims(op: Op) -> tuple[tuple[int, int], tuple[int, int]]:
    """((output rows, padding on top), (output columns, padding on the left))."""
    a, (_, height, width, _) = op.attributes_as(Conv2D), op.input.shape
    _, kernel_h, kernel_w, _ = op.operand(1).shape
    rows = a.padding if isinstance(a.padding, str) else a.padding[:2]
    columns = a.padding if isinstance(a.padding, str) else a.padding[2:]
    return (
        windows_along(height, kernel_h, a.stride[0], a.dilation[0], rows),
        windows_along(width, kernel_w, a.stride[1], a.dilation[1], columns),
    )


@lru_cache(maxsize=2048)
def geometry(op: Op) -> ConvGeometry:
    """The geometry of a CONV_2D or DEPTHWISE_CONV_2D that meets its family's rules."""
    weights, attributes = op.operand(1), op.attributes_as(Conv2D)
    _, in_h, in_w, in_c = op.input.shape
    _, out_h, out_w, out_c = op.output.shape
    (_, pad_top), (_, pad_left) = padded_dims(op)
    depthwise = op.kind == "DEPTHWISE_CONV_2D"
    return ConvGeometry(
        in_h, in_w, in_c, out_h, out_w, out_c, weights.shape[1], weights.shape[2],
        *attributes.stride, *attributes.dilation, pad_top, pad_left,
        groups=in_c if depthwise else in_c // weights.shape[3],
    )  # fmt: skip


def conv_of_rows(op: Op, inputs: tuple[Tensor | None, ...], output: Tensor, above: int, below: int) -> Op:
    """`OpFamily.of_rows` of a CONV_2D or DEPTHWISE_CONV_2D: its padding is told row by row."""
    g = geometry(op)
    right = max(0, (g.out_w - 1) * g.stride_w + (g.kernel_w - 1) * g.dilation_w + 1 - g.in_w - g.pad_left)
    padding = (above, below, g.pad_left, right)
    attributes = replace(op.attributes_as(Conv2D), padding=padding if any(padding) else "VALID")
    return replace(op, inputs=inputs, outputs=(output,), attributes=attributes)


def turned_conv(op: Op, inputs: tuple[Tensor | None, ...]) -> Op:
    """`OpFamily.turned` of a CONV_2D or DEPTHWISE_CONV_2D."""
    a, weights = op.attributes_as(Conv2D), op.operand(1)
    padding = a.padding if isinstance(a.padding, str) else (*a.padding[2:], *a.padding[:2])
    attributes = replace(a, stride=a.stride[::-1], dilation=a.dilation[::-1], padding=padding)
    data = weights.values.swapaxes(1, 2)
    return replace(
        op, inputs=(inputs[0], replace(weights, shape=data.shape, data=data), *op.inputs[2:]), attributes=attributes
    )


def is_plain_pointwise(op: Op) -> bool:
    """A 1x1 CONV_2D of one group whose output pixels are its input pixels."""
    g = geometry(op)
    window = (g.kernel_h, g.kernel_w, g.stride_h, g.stride_w, g.pad_top, g.pad_left, g.groups)
    return window == (1, 1, 1, 1, 0, 0, 1) and (g.in_h, g.in_w) == (g.out_h, g.out_w)


def accumulator(op: Op) -> str:
    """The dtype in which a layer's products are summed: of int16 data the bias's, and without one int64 unless
    the file says otherwise; depthwise and transposed convolutions have int64 alone."""
    if op.output.dtype != "int16":
        return "int32" if op.output.dtype == "int8" else op.output.dtype
    if op.kind in ("DEPTHWISE_CONV_2D", "TRANSPOSE_CONV"):
        return "int64"
    bias = op.optional(2)
    if bias is not None:
        return bias.dtype
    return "int32" if getattr(op.attributes, "quantized_bias_type", None) == "INT32" else "int64"


@lru_cache(maxsize=512)
def clamp_range(op: Op) -> tuple[int, int]:
    """(low, high) of a quantized output in stored units."""
    attributes = op.attributes_as(Clamped)
    if attributes.clamp is not None:
        low, high = attributes.clamp
        return int(low), int(high)
    return activation_range(attributes.activation, op.output.scale, op.output.zero_point, op.output.dtype)


@lru_cache(maxsize=512)
def channel_multipliers(op: Op) -> tuple[Array, Array]:
    """(multipliers, shifts), int64, one an output channel; read-only, as several kernels and rules ask for the same.

    The real multiplier is input scale * weight scale / output scale in double precision; only a
    FULLY_CONNECTED layer with one weight scale, and a convolution of a uint8 model, multiply the first two in float32.
    """
    weights = op.operand(1)
    per_channel = weights.quantization.per_channel
    in_floats = op.kind == "FULLY_CONNECTED" or getattr(op.attributes, "float_scales", False)
    scales = np.array(weights.quantization.scale)
    with np.errstate(over="ignore"):  # a rule refuses infinity
        if in_floats and not per_channel:
            products = (np.float32(op.input.scale) * scales.astype(np.float32)).astype(np.float64)
        else:
            products = op.input.scale * scales
        found = np.array(quantize_multipliers(products / op.output.scale))
    found = found if per_channel else found.repeat(op.output.shape[-1], axis=1)
    found.setflags(write=False)
    return found[0], found[1]


def bias_values(op: Op) -> Int64s:
    """The bias as int64, zeros where it is absent."""
    bias = op.optional(2)
    if bias is None:
        return np.zeros(op.output.shape[-1], np.int64)
    return bias.values.reshape(-1).astype(np.int64)


def with_bias(op: Op, inputs: Sequence[Array | None], index: int = 2) -> Op:
    """The layer with the bias that it gets; itself where that is its constant one, or it has none."""
    bias = op.optional(index)
    if bias is None or bias.data is inputs[index]:
        return op
    return replace(op, inputs=(*op.inputs[:index], replace(bias, data=inputs[index]), *op.inputs[index + 1 :]))


def requantize_channels(op: Op, accumulators: Array) -> Array:
    """Stored outputs from int64 accumulators [..., out_c] that have no bias yet."""
    total = accumulators + bias_values(op)
    if accumulator(op) == "int64":
        scaled = multiply_by_reduced_multiplier(total, *channel_multipliers(op))
    else:  # wraps as the C does
        scaled = multiply_by_quantized_multiplier(total.astype(np.int32), *channel_multipliers(op))
    return clamp(scaled + op.output.zero_point, *clamp_range(op), op.output.dtype)


# --- rules -----------------------------------------------------------------------------------


def _one_scale(tensor: Tensor) -> bool:
    quant = tensor.quant
    return quant is not None and len(quant.scale) == 1 and len(quant.zero_point) == 1


def _bias_dtypes(op: Op) -> tuple[str, ...]:
    """What the bias may be, as TFLM reads it."""
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


def quantized(op: Op) -> bool:
    """Whether a layer computes stored integers; else float32, of which no quantization is asked."""
    return op.output.dtype != "float32"


def _bad_scale(op: Op) -> Tensor | None:
    if not quantized(op):
        return None
    # a filter of zeros alone may have scale 0: whatever it sums up to, TFLM multiplies by 0
    least = {op.operand(1): 0.0}
    for tensor in (op.input, op.operand(1), op.output):
        scales = tensor.quantization.scale
        if min(scales) > 0 and max(scales) < float("inf"):  # mostly
            continue
        if not all(scale < float("inf") and (scale > 0 or scale == least.get(tensor)) for scale in scales):
            return tensor
    return None


#: rules on tensors, before anything of their shapes is known to be right
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
        "quantized input and output have one scale and one zero point",
        lambda op: next((t for t in (op.input, op.output) if quantized(op) and not _one_scale(t)), None),
    ),
)

#: of the convolutions, which TFLM computes without zero points where the data are int16
ZERO_POINT_RULE = Rule(
    "zero points of int16 are 0",
    lambda op: next((t for t in (op.input, op.output) if t.dtype == "int16" and t.zero_point != 0), None),
)

#: left shifts that TFLM's requantization is made for
_MOST_SHIFT = {"int32": 30, "int64": 7}

#: rules on quantization, once the shapes are right
QUANTIZATION_RULES = (
    Rule(
        "the bias is absent, or has one value an output channel: int32 with int8 data, float32 with float32; "
        "with int16 data int64, or int32 of CONV_2D and FULLY_CONNECTED, or int16 of TRANSPOSE_CONV",
        _bad_bias,
    ),
    Rule("scales are positive and finite; that of a filter may be 0", _bad_scale),
    Rule(
        "a requantization multiplier is below 2^31, of int64 sums below 2^7",
        lambda op: quantized(op) and bool((channel_multipliers(op)[1] > _MOST_SHIFT[accumulator(op)]).any()),
    ),
    Rule(
        f"the fused activation is one of {', '.join(ACTIVATIONS)}",
        lambda op: op.attributes_as(Clamped).activation not in ACTIVATIONS,
    ),
)


def extent_of(tensor: Tensor, axis: int) -> int | None:
    """The size of a dimension that a file names, None where there is none."""
    return tensor.shape[axis] if 0 <= axis < len(tensor.shape) else None


def weights_scale_rule(axis: int) -> Rule:
    """Weights are symmetric with one scale, or one an index of dimension `axis`; as in TFLM, the file may name
    another dimension of the same size (kernel_util.cc, PopulateConvolutionQuantizationParams)."""

    def bad(op: Op) -> Tensor | None:
        weights = op.operand(1)
        quant = weights.quant
        if not quantized(op):
            return None
        if quant is None or any(quant.zero_point):
            return weights
        if len(quant.scale) == 1:
            return None
        return None if len(quant.scale) == weights.shape[axis] == extent_of(weights, quant.axis) else weights

    return Rule(f"quantized weights have zero point 0 and one scale, or one an index of dimension {axis}", bad)


def _bad_output_shape(op: Op) -> Tensor | None:
    (rows, _), (columns, _) = padded_dims(op)
    good = rows > 0 and columns > 0 and op.output.shape[:3] == (op.input.shape[0], rows, columns)
    return None if good else op.output


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
        "strides and dilations are positive",
        lambda op: min(op.attributes_as(Conv2D).stride + op.attributes_as(Conv2D).dilation) < 1,
    ),
    Rule(
        "the output has the input's batch, and the rows and columns that padding, stride and dilation give",
        _bad_output_shape,
    ),
)


# --- reference -------------------------------------------------------------------------------


def taps(op: Op, data: Array) -> Iterator[tuple[int, int, Int64s]]:
    """Yields (kernel row, kernel column, values): the int64 (input - zero point) [H, W, C] that each
    output position reads under that tap, zero where it reads padding."""
    for ky, kx, values, inside in windows(op, data[0].astype(np.int64) - op.input.zero_point):
        yield ky, kx, values * inside


def windows(op: Op, values: Array) -> Iterator[tuple[int, int, Array, Array]]:
    """Yields (kernel row, kernel column, the elements of `values` [H, W, C] that each output position reads under
    that tap, and whether it reads any: bool [H, W, 1]; else the elements are some others)."""
    g = geometry(op)
    rows = np.arange(g.out_h) * g.stride_h - g.pad_top
    columns = np.arange(g.out_w) * g.stride_w - g.pad_left
    for ky in range(g.kernel_h):
        y = rows + ky * g.dilation_h
        for kx in range(g.kernel_w):
            x = columns + kx * g.dilation_w
            window = values[np.clip(y, 0, g.in_h - 1)][:, np.clip(x, 0, g.in_w - 1)]
            inside = ((y >= 0) & (y < g.in_h))[:, None] & ((x >= 0) & (x < g.in_w))[None, :]
            yield ky, kx, window, inside[..., None]
