"""Makes the constants, parameter structs and calls of tinyfuse's C kernels of layers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from tinyfuse.ir import ITEM_BYTES, Array, Op, Tensor
from tinyfuse.ir.fixedpoint import RANGE
from tinyfuse.kernels.core.c_constants import c_constant
from tinyfuse.kernels.core.kernel import AccessOrder, CallSite, Constant, Division, Kernel
from tinyfuse.kernels.core.rows import piece_pointer, row_pointer
from tinyfuse.kernels.core.statements import Call, Expr, Let, Statement
from tinyfuse.kernels.requantize.half_even import scale_bits
from tinyfuse.kernels.requantize.layer_facts import layer_facts
from tinyfuse.kernels.requantize.two_roundings import REQUANT, has_one_scale
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

#: bytes that a pointer in scratch takes, the same on every target
POINTER_BYTES = c_constant("tinyfuse_common.h", "TINYFUSE_POINTER_BYTES")


def general_channels(op: Op) -> Constant:
    """Return the constant "channels": bias, multiplier and shift of each output channel, as TensorFlow Lite Micro has
    them."""
    channels = np.zeros(op.output.shape[-1], REQUANT)
    channels["bias"] = bias_values(op)
    if rounds_by(op, FLOAT_HALF_EVEN):
        channels["multiplier"] = scale_bits(op)
    else:
        channels["multiplier"], channels["shift"] = channel_multipliers(op)
    return Constant("channels", channels, "tinyfuse_requant")


def plain_weights(op: Op) -> Constant:
    """Return the constant "weights": int8 or float32, in the order of the file."""
    weights = op.operand(1)
    ctype = "float" if weights.dtype == "float32" else "int8_t"
    return Constant("weights", np.ascontiguousarray(weights.values).reshape(-1), ctype)


def input_zero_point(data: Tensor) -> int:
    """Return the zero point of a layer's data; 0 for float32, which has none."""
    return data.zero_point if data.dtype != "float32" else 0


def output_fields(op: Op) -> dict[str, int]:
    """Return the output fields of a parameter struct: zero point and clamp, all 0 for float32."""
    if not quantized(op):
        return dict.fromkeys(("out_zero_point", "act_min", "act_max"), 0)
    low, high = clamp_range(op)
    return {"out_zero_point": op.output.zero_point, "act_min": low, "act_max": high}


def conv_params(op: Op, site: CallSite) -> Let:
    """Return the declaration `const tinyfuse_conv p`: geometry and quantization of a (depthwise) convolution.

    A call that computes a part of a row passes the geometry of a row that begins with the part's first column.
    """
    g = geometry(op)
    rows = {"in_h": g.in_h, "stride_h": g.stride_h}
    if site.input(0).endless:  # rows of an endless ring are counted one by one from its start (TensorAccess)
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
    """Return the columns of padding to the left of a call's first window; negative if the window begins in the
    image."""
    return padding if site.piece is None else f"{padding} - {site.piece.first} * {stride}"


def conv_row_call(
    kernel: Kernel, op: Op, site: CallSite, *more: Expr,
    arrays: tuple[str, ...] = ("weights", "channels"), rows: tuple[str, ...] | None = None,
) -> tuple[Statement, ...]:  # fmt: skip
    """Return the call of a kernel that computes a row of a (depthwise) convolution, or several rows.

    Its arguments are the parameters, the input, the output row's number, pointers to the output (`rows`, the row's own
    by default), the constants named `arrays`, and then `more`.
    """
    constants = map(site.constant, arrays)
    to = rows or (piece_pointer(site.output.pointer, site, op.output.shape[3]),)
    args = ("&p", site.input(0).pointer, site.output_row, *to, *constants, *more)
    return conv_params(op, site), Call(kernel.name, args)


def orders_by_pixels(op: Op, pixels: int = 1, buffered: bool = False) -> dict[int, AccessOrder]:
    """Return the access order of input 0 for a call that computes a row by blocks of `pixels`, from left to right.

    `buffered`: a block's windows are copied to scratch before its outputs are written. The dict is empty if the output
    has more pixels than the input's blocks contain, because an output would then overwrite unread inputs.
    """
    g = geometry(op)
    if -(-g.in_w // (pixels * g.stride_w)) * pixels < g.out_w:
        return {}
    pixel, made = (ITEM_BYTES[tensor.dtype] * tensor.shape[3] for tensor in (op.input, op.output))
    rereads = max(0, g.pad_left) * pixel
    return {0: AccessOrder(pixels * g.stride_w * pixel, pixels * made, buffered, rereads)}


# --- Helium (runtime_c/tinyfuse_matmul_2x4_mve.h) ----------------------------------------------------


def orders_by_two_pixels(op: Op) -> dict[int, AccessOrder]:
    """Return the access order of input 0: two pixels an iteration, read again for every four channels."""
    size, (out_c, *_, in_c) = ITEM_BYTES[op.input.dtype], op.operand(1).shape
    return {0: AccessOrder(2 * size * in_c, 2 * size * out_c, buffered=False)}


def rectified(op: Op) -> bool:
    """Return whether the clamp is the whole int8 range and the output's zero point is -128, as after a RELU.

    Saturation then does all of the clamping, and the rounding of negative halves does not matter.
    """
    return op.output.zero_point == -128 and clamp_range(op) == RANGE["int8"]


def channels4(op: Op, order: Array | list[list[int]]) -> Constant:
    """Return the constant "channels", int32 [quads][3][4]: folded biases, multipliers and shifts of four channels each,
    in `order`. Layers of FLOAT_HALF_EVEN have float32 bits of scales instead of multipliers, and shifts of 0. Indexes
    beyond the last channel give zeros."""
    scales = channel_multipliers(op)
    if rounds_by(op, FLOAT_HALF_EVEN):
        scales = scale_bits(op), np.zeros(op.output.shape[-1], np.int64)
    fields = [np.append(field, 0) for field in (layer_facts(op).bias, *scales)]
    out_c = len(fields[0]) - 1
    quads = np.minimum(order, out_c)
    data = np.stack([field[quads] for field in fields], axis=1).astype(np.int32)
    return Constant("channels", data.reshape(-1), "int32_t")


def matmul_2x4_constants(op: Op, shared: bool = False) -> tuple[Constant, ...]:
    """Return the constants "weights" and "channels" of runtime_c/tinyfuse_matmul_2x4_mve.h; one scale for all if
    `shared`."""
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
    """Return int8 weights [channels, depth] in one dimension, grouped by four channels.

    A group is [depth / 16][4][16] and then [4][depth % 16]. `channels` is a multiple of 4.
    """
    depth = weights.shape[1]
    groups, blocks = len(weights) // 4, depth // 16
    quads = weights.reshape(groups, 4, depth)
    whole, rest = quads[:, :, : 16 * blocks], quads[:, :, 16 * blocks :]
    parts = whole.reshape(groups, 4, blocks, 16).swapaxes(1, 2).reshape(groups, -1), rest.reshape(groups, -1)
    found: Array = np.concatenate(parts, axis=1).reshape(-1)
    return found


def pointwise_input(op: Op, site: CallSite) -> tuple[str, int]:
    """Return (C pointer to the first input pixel, number of pixels) of a call for one row or for the whole image."""
    g, source = geometry(op), site.input(0)
    if site.row is None:
        return source.pointer, g.out_h * g.out_w
    return row_pointer(source, site.row), g.out_w


def input_pixels(op: Op, site: CallSite) -> tuple[str, Expr]:
    """Return (C pointer to the first input pixel, pixels) of a call that may compute a part of the pixels."""
    pointer, pixels = pointwise_input(op, site)
    return piece_pointer(pointer, site, op.input.shape[3]), site.piece.count if site.piece else pixels


def pointwise_call(
    kernel: Kernel, op: Op, site: CallSite, struct: str, fields: Mapping[str, Any], *more: Expr,
    arrays: tuple[str, ...] = ("weights", "channels"),
) -> tuple[Statement, ...]:  # fmt: skip
    """Return the call of a kernel that computes a pointwise layer, or a part of its pixels.

    Its arguments are the parameters (`fields` of the C's `struct`), the input, the number of pixels, the output, the
    constants named `arrays`, and then `more`.
    """
    output = piece_pointer(site.output.pointer, site, op.output.shape[3])
    constants = map(site.constant, arrays)
    return Let(struct, "p", fields), Call(kernel.name, ("&p", *input_pixels(op, site), output, *constants, *more))


def divide_by_pixels(op: Op, by_row: bool, together: int) -> Division:
    """Return how a pixel-by-pixel call is cut into calls of a multiple of `together` pixels."""
    g = geometry(op)
    return Division(g.out_w if by_row else g.out_h * g.out_w, together)


#: layout of the C struct tinyfuse_dense_scale
SCALE = np.dtype([("multiplier", "<i4"), ("shift", "<i4")])


def divide_by_channels(op: Op, by_row: bool, together: int) -> Division | None:
    """Return how a fully connected layer is cut into calls: by output channels, a multiple of `together` a call.

    None for a layer of several batches: its outputs of some channels do not lie side by side.
    """
    channels, rows = op.operand(1).shape[0], op.output.shape[1] if by_row else 1
    return Division(channels, together, along=False) if op.output.elements == channels * rows else None


def scale_constants(channels: Array) -> tuple[Constant, Constant]:
    """Return the constants "biases", int32 [out_c], and "scales", tinyfuse_dense_scale [out_c] or [1].

    `channels` are tinyfuse_requant [out_c]. One scale is kept where all channels have the same.
    """
    scales = channels[:1] if has_one_scale(channels["multiplier"], channels["shift"]) else channels
    return (
        Constant("biases", np.ascontiguousarray(channels["bias"]), "int32_t"),
        Constant("scales", scales[["multiplier", "shift"]].astype(SCALE), "tinyfuse_dense_scale"),
    )


def fully_connected_params(op: Op, site: CallSite, batches: int) -> Let:
    """Return the declaration `const tinyfuse_fully_connected p`, sizes and quantization of the layer."""
    out_c, in_c = op.operand(1).shape
    zero_points = op.operand(1).quantization.zero_point
    return Let("tinyfuse_fully_connected", "p", {
        "batches": batches, "in_c": in_c, "out_c": site.piece.count if site.piece else out_c,
        "in_zero_point": op.input.zero_point, "weights_zero_point": zero_points[0],
    } | output_fields(op))  # fmt: skip


def orders_by_batches(op: Op, buffered: bool) -> dict[int, AccessOrder]:
    """Return the access order of input 0 for a call that computes one batch after another.

    `buffered` says that a batch is copied to scratch before its outputs are written.
    """
    read, written = op.operand(1).shape[1], op.output.shape[-1]
    size = ITEM_BYTES[op.output.dtype]
    return {0: AccessOrder(read * size, written * size, buffered)}
