"""Constants as our C kernels expect them, and the parameter structs of their calls."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tinyfuse.ir import ITEM_BYTES, Array, Op, Tensor
from tinyfuse.ir.fixedpoint import RANGE
from tinyfuse.kernels.core.c_constants import c_constant
from tinyfuse.kernels.core.kernel import AccessOrder, CallSite, Constant, Kernel
from tinyfuse.kernels.core.rows import piece_pointer
from tinyfuse.kernels.core.statements import Call, Expr, Let, Statement
from tinyfuse.kernels.requantize.half_even import scale_bits
from tinyfuse.kernels.requantize.two_roundings import REQUANT, folded_bias
from tinyfuse.ops.core.convolution import (
    FLOAT_HALF_EVEN,
    bias_values,
    channel_multipliers,
    clamp_range,
    geometry,
    quantized,
    rounds_by,
)
from tinyfuse.ops.weight_sums import channel_weights

#: what a pointer in scratch takes, on every target
POINTER_BYTES = c_constant("tinyfuse_common.h", "TINYFUSE_POINTER_BYTES")


def general_channels(op: Op) -> Constant:
    """Per output channel: bias, multiplier and shift as TensorFlow Lite Micro has them; of FLOAT_HALF_EVEN a factor's
    bits and 0."""
    channels = np.zeros(op.output.shape[-1], REQUANT)
    channels["bias"] = bias_values(op)
    if rounds_by(op, FLOAT_HALF_EVEN):
        channels["multiplier"] = scale_bits(op)
    else:
        channels["multiplier"], channels["shift"] = channel_multipliers(op)
    return Constant("channels", channels, "tinyfuse_requant")


def plain_weights(op: Op) -> Constant:
    """The weights in the order of the file, int8 or float32."""
    weights = op.operand(1)
    ctype = "float" if weights.dtype == "float32" else "int8_t"
    return Constant("weights", np.ascontiguousarray(weights.values).reshape(-1), ctype)


def input_zero_point(data: Tensor) -> int:
    """The zero point of a layer's data, 0 of float32."""
    return data.zero_point if data.dtype != "float32" else 0


def output_fields(op: Op) -> dict[str, int]:
    """The fields of a parameter struct that say where outputs lie and end: zero point and clamp; 0 of float32."""
    if not quantized(op):
        return dict.fromkeys(("out_zero_point", "act_min", "act_max"), 0)
    low, high = clamp_range(op)
    return {"out_zero_point": op.output.zero_point, "act_min": low, "act_max": high}


def conv_params(op: Op, site: CallSite) -> Let:
    """`const tinyfuse_conv p`: geometry and quantization of a (depthwise) convolution; of a piece of a row, as if the
    first of its columns were the row's."""
    g = geometry(op)
    rows = {"in_h": g.in_h, "stride_h": g.stride_h}
    if site.input(0).endless:  # rows are counted from a ring's start, one by one (TensorAccess)
        rows = {"in_h": 2 * g.in_h, "stride_h": 1}
    fields = {
        "in_h": rows["in_h"], "in_w": g.in_w, "in_c": g.in_c, "in_ring": site.input(0).ring_rows,
        "out_w": site.piece.count if site.piece else g.out_w, "out_c": g.out_c, "groups": g.groups,
        "kernel_h": g.kernel_h, "kernel_w": g.kernel_w,
        "stride_h": rows["stride_h"], "stride_w": g.stride_w,
        "dilation_h": g.dilation_h, "dilation_w": g.dilation_w,
        "pad_top": g.pad_top, "pad_left": left_of_piece(g.pad_left, g.stride_w, site),
        "in_zero_point": input_zero_point(op.input),
    }  # fmt: skip
    return Let("tinyfuse_conv", "p", fields | output_fields(op))


def left_of_piece(padding: int, stride: int, site: CallSite) -> Expr:
    """Columns of padding to the left of a call's first window; less than none inside of the image."""
    return padding if site.piece is None else f"{padding} - {site.piece.first} * {stride}"


def conv_row_call(
    kernel: Kernel, op: Op, site: CallSite, *more: Expr, channels: str = "channels", rows: tuple[str, ...] | None = None
) -> tuple[Statement, ...]:
    """The call of a kernel that makes a row of a (depthwise) convolution, or several to `rows`, from its input, weights
    and channels; `more` are the arguments after these, `channels` the constant that has them."""
    constants = site.constant("weights"), site.constant(channels)
    to = rows or (piece_pointer(site.output.pointer, site, op.output.shape[3]),)
    args = ("&p", site.input(0).pointer, site.output_row, *to, *constants, *more)
    return conv_params(op, site), Call(kernel.name, args)


def orders_by_pixels(op: Op, pixels: int = 1, buffered: bool = False) -> dict[int, AccessOrder]:
    """Where a call for a row goes forward by so many pixels, whose windows it reads until it has written them all, or
    where they are `buffered` before it writes the first."""
    g = geometry(op)
    if -(-g.in_w // (pixels * g.stride_w)) * pixels < g.out_w:
        return {}
    pixel, made = (ITEM_BYTES[tensor.dtype] * tensor.shape[3] for tensor in (op.input, op.output))
    rereads = max(0, g.pad_left) * pixel
    return {0: AccessOrder(pixels * g.stride_w * pixel, pixels * made, buffered, rereads)}


# --- Helium (runtime_c/tinyfuse_matmul_mve.h) ----------------------------------------------------


def rectified(op: Op) -> bool:
    """Whether the clamp is all of int8 from the zero point on: then saturating is all of it, and it doesn't matter
    which way negative halves are rounded."""
    return op.output.zero_point == -128 and clamp_range(op) == RANGE["int8"]


def channels4(op: Op, order: Array | list[list[int]]) -> Constant:
    """int32 [fours][3][4]: folded biases, multipliers and shifts of each four channels in `order`, of FLOAT_HALF_EVEN
    the bits of scales and zeros; a channel that isn't there is zeros."""
    fields = [np.append(field, 0) for field in (folded_bias(op), *vector_scales(op))]
    out_c = len(fields[0]) - 1
    fours = np.minimum(order, out_c)
    data = np.stack([field[fours] for field in fields], axis=1).astype(np.int32)
    return Constant("channels", data.reshape(-1), "int32_t")


def vector_scales(op: Op) -> tuple[Array, Array]:
    """[out_c] multipliers and shifts, of FLOAT_HALF_EVEN the bits of scales and zeros."""
    if rounds_by(op, FLOAT_HALF_EVEN):
        return scale_bits(op), np.zeros(op.output.shape[-1], np.int64)
    return channel_multipliers(op)


def matmul_mve_constants(op: Op, shared: bool = False) -> tuple[Constant, ...]:
    """Weights and channels as the header says; `shared`: with one scale."""
    weights = channel_weights(op)
    out_c, depth = weights.shape
    groups = -(-out_c // 4)
    padded = np.zeros((4 * groups, depth), np.int8)
    padded[:out_c] = weights
    packed = np.concatenate([grouped_by_four(padded), np.zeros(16, np.int8)])
    channels = channels4(op, np.arange(4 * groups).reshape(groups, 4))
    if shared:
        fields = channels.data.reshape(groups, 3, 4)
        scale = fields[0, 1:, :1].repeat(4, axis=1)
        channels = replace(channels, data=np.concatenate([scale.reshape(-1), fields[:, 0].reshape(-1)]))
    return Constant("weights", packed, "int8_t"), channels


def grouped_by_four(weights: Array) -> Array:
    """Return int8 weights [channels, depth] of fours of channels, each four as [depth / 16][4][16], [4][depth % 16]."""
    depth = weights.shape[1]
    groups, blocks = len(weights) // 4, depth // 16
    fours = weights.reshape(groups, 4, depth)
    whole, rest = fours[:, :, : 16 * blocks], fours[:, :, 16 * blocks :]
    parts = whole.reshape(groups, 4, blocks, 16).swapaxes(1, 2).reshape(groups, -1), rest.reshape(groups, -1)
    found: Array = np.concatenate(parts, axis=1).reshape(-1)
    return found
