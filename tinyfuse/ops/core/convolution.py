"""What CONV_2D, DEPTHWISE_CONV_2D, FULLY_CONNECTED and TRANSPOSE_CONV share: attributes, geometry, arithmetic.

Arithmetic of all four, as TensorFlow Lite Micro does it.

int8     an int32 accumulator that wraps, over (input - input zero point) * weight, plus the bias; requantized per
         output channel by one of ROUNDINGS; plus the output zero point; clamped
int16    with int8 weights: the same where the accumulator is int32; where it is int64 (`accumulator`), it is
         requantized with one rounding and 16 bits of the multiplier
float32  products and their sum, each rounded, in the order of rows, columns, channels; taps outside the image are
         left out; plus the bias (0 where there is none); clamped
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, Self

import numpy as np

from tinyfuse.ir import Array, Int64s, Op, Tensor
from tinyfuse.ir.fixedpoint import (
    activation_range,
    clamp,
    multiply_by_quantized_multiplier,
    multiply_by_real,
    multiply_by_reduced_multiplier,
    multiply_half_even,
    quantize_multipliers,
)
from tinyfuse.ops.core.family import RowWindow

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
        """Return these attributes with another clamp."""
        return replace(self, clamp=clamp)  # type: ignore[type-var]  # each subclass is a dataclass


#: rules by which int8 layers requantize their sums:
#: TensorFlow Lite Micro's, a fixed-point product and a shift, each rounded, halves of the shift away from zero;
#: LiteRT's of FULLY_CONNECTED in uint8 models, a product in double precision, halves away from zero;
#: onnxruntime's, a product in float32, halves to even
TWO_ROUNDINGS, REAL_MULTIPLIER, FLOAT_HALF_EVEN = ROUNDINGS = ("two_roundings", "real_multiplier", "float_half_even")


@dataclass(frozen=True)
class Requantized(Clamped):
    """Attributes of a layer.

    rounding    one of ROUNDINGS, by which sums of int8 data become outputs
    """

    rounding: str = field(default=TWO_ROUNDINGS, kw_only=True)


@dataclass(frozen=True)
class Conv2D(Requantized):
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
    """Attributes that CONV_2D and DEPTHWISE_CONV_2D have in common, with the schema's defaults; the option table of the
    latter has no quantized_bias_type."""
    return {
        "padding": options.get("padding", "SAME"),
        "stride": (options.get("stride_h", 0), options.get("stride_w", 0)),
        "dilation": (options.get("dilation_h_factor", 1), options.get("dilation_w_factor", 1)),
        "activation": options.get("fused_activation_function", "NONE"),
        "quantized_bias_type": options.get("quantized_bias_type", "FLOAT32"),
    }


@dataclass(frozen=True)
class ConvGeometry:
    """Sizes of a convolution in rows, columns and channels.

    `groups` is in_c divided by the channels of a filter for CONV_2D, and in_c for DEPTHWISE_CONV_2D.
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
        """Tell whether a window reaches above or below the image."""
        return self.pad_top > 0 or self.pads_bottom

    @property
    def pads_bottom(self) -> bool:
        """Tell whether the window of any output row reaches below the image."""
        after = (self.out_h - 1) * self.stride_h - self.pad_top + (self.kernel_h - 1) * self.dilation_h
        return after >= self.in_h

    @property
    def pads_columns(self) -> bool:
        """Tell whether a window reaches beside the image."""
        return self.pad_left > 0 or self.pads_right

    @property
    def pads_right(self) -> bool:
        """Tell whether a window reaches beyond the image's last column."""
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
    """`OpFamily.of_rows` of a CONV_2D or DEPTHWISE_CONV_2D: a convolution whose padding fits the selected rows."""
    g = geometry(op)
    right = max(0, (g.out_w - 1) * g.stride_w + (g.kernel_w - 1) * g.dilation_w + 1 - g.in_w - g.pad_left)
    padding = (above, below, g.pad_left, right)
    attributes = replace(op.attributes_as(Conv2D), padding=padding if any(padding) else "VALID")
    return replace(op, inputs=inputs, outputs=(output,), attributes=attributes)


def conv_with_axes_swapped(op: Op, inputs: tuple[Tensor | None, ...]) -> Op:
    """`OpFamily.with_axes_swapped` of a CONV_2D or DEPTHWISE_CONV_2D."""
    a, weights = op.attributes_as(Conv2D), op.operand(1)
    padding = a.padding if isinstance(a.padding, str) else (*a.padding[2:], *a.padding[:2])
    attributes = replace(a, stride=a.stride[::-1], dilation=a.dilation[::-1], padding=padding)
    data = weights.values.swapaxes(1, 2)
    return replace(
        op, inputs=(inputs[0], replace(weights, shape=data.shape, data=data), *op.inputs[2:]), attributes=attributes
    )


def quantized(op: Op) -> bool:
    """Tell whether a layer computes stored integers; otherwise it is float32, whose quantization is ignored."""
    return op.output.dtype != "float32"


def is_plain_pointwise(op: Op) -> bool:
    """Tell whether a layer is a 1x1 CONV_2D with stride 1, no padding and no groups: output pixel i reads only input
    pixel i."""
    g = geometry(op)
    window = (g.kernel_h, g.kernel_w, g.stride_h, g.stride_w, g.pad_top, g.pad_left, g.groups)
    return window == (1, 1, 1, 1, 0, 0, 1) and (g.in_h, g.in_w) == (g.out_h, g.out_w)


def accumulator(op: Op) -> str:
    """Dtype in which a layer's products are summed. For int16 data it is the bias's dtype, and without a bias int64
    unless the file says otherwise; depthwise and transposed convolutions always sum int16 in int64."""
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
    """(multipliers, shifts), int64, one per output channel; read-only, as several kernels and rules ask for the same.

    The real multiplier is input scale * weight scale / output scale in double precision; only a FULLY_CONNECTED layer
    with one weight scale, and a convolution of a uint8 model, multiply the first two in float32. For layers of
    FLOAT_HALF_EVEN they represent `float_multipliers` exactly, except that values below 2^-32 are 0.
    """
    weights = op.operand(1)
    per_channel = weights.quantization.per_channel
    in_floats = op.kind == "FULLY_CONNECTED" or getattr(op.attributes, "float_scales", False)
    scales = np.array(weights.quantization.scale)
    with np.errstate(over="ignore"):  # a rule refuses infinity
        if rounds_by(op, FLOAT_HALF_EVEN):
            found = np.array(quantize_multipliers(float_multipliers(op).astype(np.float64)))
            found.setflags(write=False)
            return found[0], found[1]
        if in_floats and not per_channel:
            products = (np.float32(op.input.scale) * scales.astype(np.float32)).astype(np.float64)
        else:
            products = op.input.scale * scales
        found = np.array(quantize_multipliers(products / op.output.scale))
    found = found if per_channel else found.repeat(op.output.shape[-1], axis=1)
    found.setflags(write=False)
    return found[0], found[1]


def rounds_by(op: Op, rounding: str) -> bool:
    """Tell whether a layer's sums are requantized by `rounding`, one of ROUNDINGS."""
    return getattr(op.attributes, "rounding", TWO_ROUNDINGS) == rounding


def real_multiplier(op: Op) -> float:
    """Input scale * weight scale / output scale of a layer of REAL_MULTIPLIER, in double precision."""
    return op.input.scale * op.operand(1).scale / op.output.scale


def float_multipliers(op: Op) -> Array:
    """Input scale * weight scale / output scale, float32 [out_c], each operation rounded to float32: the factors of a
    layer of FLOAT_HALF_EVEN, as onnxruntime computes them."""
    scales = np.array(op.operand(1).quantization.scale, np.float32)
    found = np.float32(op.input.scale) * scales / np.float32(op.output.scale)
    return np.broadcast_to(found, op.output.shape[-1:])


def scales_of_multipliers(
    multipliers: Iterable[int], shifts: Iterable[int], input_scale: float, output_scale: float
) -> tuple[float, ...]:
    """Return weight scales, one per output channel, from which `channel_multipliers` computes exactly the given
    multipliers (0, or 2^30 to 2^31 - 1) and shifts. For files that store multipliers instead of scales.

    Exact, because double precision rounds at 2^-53 of a scale, and multipliers have 31 bits.
    """
    reals = (multiplier * 2.0 ** (shift - 31) for multiplier, shift in zip(multipliers, shifts, strict=True))
    return tuple(real * output_scale / input_scale for real in reals)


def scaled_sums(op: Op, sums: Array) -> Int64s:
    """Outputs of a layer of int8 data, less the zero point and not clamped. `sums`: int32 [..., out_c], biases
    included."""
    if rounds_by(op, REAL_MULTIPLIER):
        return multiply_by_real(sums, real_multiplier(op))
    if rounds_by(op, FLOAT_HALF_EVEN):
        return multiply_half_even(sums, float_multipliers(op))
    return multiply_by_quantized_multiplier(sums, *channel_multipliers(op))


def bias_values(op: Op) -> Int64s:
    """The bias as int64, zeros where it is absent."""
    bias = op.optional(2)
    if bias is None:
        return np.zeros(op.output.shape[-1], np.int64)
    return bias.values.reshape(-1).astype(np.int64)


def with_bias(op: Op, inputs: Sequence[Array | None], index: int = 2) -> Op:
    """Operator with the bias values of a run (`inputs[index]`, int32 or int64 [channels]) as its constant bias. The
    operator itself if its bias is constant already, or if it has none."""
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
        scaled = scaled_sums(op, total.astype(np.int32))
    return clamp(scaled + op.output.zero_point, *clamp_range(op), op.output.dtype)


# --- reference -------------------------------------------------------------------------------


#: values of an image's windows that lie side by side at once: 32 MB
_SIDE_BY_SIDE = 1 << 22


def im2col(op: Op, data: Array) -> Iterator[tuple[slice, Array]]:
    """Yields blocks of output rows, each with the window that every output of them reads: float64 [rows, W, kernel
    rows, kernel columns, C] of input - zero point, 0 for padding. float64 holds every sum of integer products exactly,
    and its matrix product is fast."""
    g = geometry(op)
    image = np.zeros((g.in_h + 1, g.in_w + 1, g.in_c))  # a row and a column of padding
    image[:-1, :-1] = data[0]
    image[:-1, :-1] -= op.input.zero_point
    y = (np.arange(g.out_h) * g.stride_h - g.pad_top)[:, None] + np.arange(g.kernel_h) * g.dilation_h
    x = (np.arange(g.out_w) * g.stride_w - g.pad_left)[:, None] + np.arange(g.kernel_w) * g.dilation_w
    y[(y < 0) | (y >= g.in_h)] = g.in_h
    x[(x < 0) | (x >= g.in_w)] = g.in_w
    at_once = max(1, _SIDE_BY_SIDE // (x.size * g.kernel_h * g.in_c))
    for start in range(0, g.out_h, at_once):
        rows = slice(start, start + at_once)
        yield rows, image[y[rows, None, :, None], x[None, :, None, :]]


def windows(op: Op, values: Array) -> Iterator[tuple[int, int, Array, Array]]:
    """Yields for each tap (kernel row, kernel column, elements, inside). `elements` [out H, out W, C] are those that
    each output position reads from `values` [H, W, C] under the tap. `inside`, bool [out H, out W, 1], is false where
    the tap lies in the padding; the elements there mean nothing."""
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
