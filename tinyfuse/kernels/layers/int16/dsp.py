"""Kernels of int16 layers whose sums are proven to stay within int32 (runtime_c/tinyfuse_matmul_s16.h)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tinyfuse.ir import Array, Int64s, Op
from tinyfuse.ir.fixedpoint import reduced_multiplier
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import AccessOrder, CallSite, Constant, Kernel, RowKernel, require_proven
from tinyfuse.kernels.core.methods import of_calls, of_operator
from tinyfuse.kernels.core.rows import vectors
from tinyfuse.kernels.core.statements import Call, Let, Statement
from tinyfuse.kernels.counts.depthwise import depthwise_counts
from tinyfuse.kernels.counts.layers import layer_counts
from tinyfuse.kernels.layers.common import params
from tinyfuse.kernels.layers.common.taps import group_starts, orders_by_columns, taps_scratch
from tinyfuse.kernels.layers.int8_dsp.lanes import block_pixels, form_name, matmul_depth
from tinyfuse.kernels.requantize.two_roundings import REQUANT
from tinyfuse.ops.core import convolution
from tinyfuse.ops.weight_sums import channel_weights

#: layout of the C struct tinyfuse_scale_s16
SCALE_S16 = np.dtype([("bias", "<i4"), ("multiplier", "<i4")])
#: layout of the C struct tinyfuse_pair_3x3_s16
PAIR_3X3_S16 = np.dtype([("biases", "<i4", 2), ("weights", "<i2", (3, 4, 2)), ("multipliers", "<i4", 2)])


@dataclass(frozen=True, eq=False)
class MatmulS16:
    """Constants that a layer passes to runtime_c/tinyfuse_matmul_s16.h, and the form in which it is computed.

    form      name of a constant of the C's enum of forms
    channels  tinyfuse_scale_s16 [out_c] in forms with one rounding, else tinyfuse_requant [out_c] of the bounded form
    """

    form: str
    channels: Array

    @property
    def constant(self) -> Constant:
        once = self.channels.dtype == SCALE_S16
        return Constant("channels", self.channels, "tinyfuse_scale_s16" if once else "tinyfuse_requant")


def greatest_sums(op: Op) -> Int64s:
    """Return the largest magnitude, int64 [out_c], that a partial sum can reach for any int16 inputs, bias included."""
    sums: Int64s = 2**15 * np.abs(channel_weights(op).astype(np.int64)).sum(1)
    return sums + np.abs(convolution.bias_values(op))


@lru_cache(maxsize=512)
def matmul_s16(op: Op) -> MatmulS16 | None:
    """Return the layer in a form that is proven exact; None if there is none."""
    greatest = greatest_sums(op)
    if (greatest >= 2**31).any():
        return None
    channels = _rounded_once(op, greatest) if convolution.accumulator(op) == "int64" else _rounded_twice(op, greatest)
    form = "TINYFUSE_ONCE" if convolution.accumulator(op) == "int64" else "TINYFUSE_TWICE"
    positive = "_POSITIVE" if convolution.clamp_range(op)[0] >= 0 else ""
    return None if channels is None else MatmulS16(form + positive, channels)


def _rounded_once(op: Op, greatest: Int64s) -> Array | None:
    """Return tinyfuse_scale_s16 [out_c] for one rounding; None where a multiplier leaves int32.

    sum * multiplier / 2^right, with a multiplier of 15 bits, is sum * (multiplier * 2^(32 - right)) / 2^32. A channel
    whose scaled sums all lie below a half is multiplied by 0.
    """
    multipliers, shifts = convolution.channel_multipliers(op)
    reduced, right = reduced_multiplier(multipliers), 15 - shifts
    nothing = greatest * reduced < np.int64(1) << (right - 1)
    if not (nothing | (right >= 16) & (right <= 32)).all():
        return None
    channels = np.zeros(len(reduced), SCALE_S16)
    channels["bias"] = convolution.bias_values(op)
    channels["multiplier"] = np.where(nothing, 0, reduced << np.where(nothing, 0, 32 - right))
    return channels


def _rounded_twice(op: Op, greatest: Int64s) -> Array | None:
    """Return tinyfuse_requant [out_c] of the bounded form; None where the added half leaves int32."""
    multipliers, shifts = convolution.channel_multipliers(op)
    right = -shifts
    if not ((multipliers > 0) & (right >= 1) & (greatest + (np.int64(1) << np.maximum(right - 1, 0)) < 2**31)).all():
        return None
    channels = np.zeros(len(multipliers), REQUANT)
    channels["bias"] = convolution.bias_values(op)
    channels["multiplier"], channels["shift"] = 2 * multipliers - 2**32, right - 1
    return channels


def packed_s16(weights: Array) -> Array:
    """int8 weights [out_c, terms] as the C takes them, in one dimension: pairs of channels interleaved by four inputs,
    then an odd last one."""
    (out_c, terms), even = weights.shape, len(weights) // 2 * 2
    depth = -(-terms // 4) * 4
    padded = np.zeros((out_c, depth), np.int8)
    padded[:, :terms] = weights
    quads = padded.reshape(out_c, depth // 4, 2, 2).transpose(0, 1, 3, 2).reshape(out_c, depth // 4, 4)  # 0 2 1 3
    pairs = quads[:even].reshape(-1, 2, depth // 4, 4).transpose(0, 2, 1, 3)
    return np.concatenate([pairs.reshape(-1), quads[even:].reshape(-1)])


def matmul_s16_constants(op: Op, groups: int = 1) -> tuple[Constant, ...]:
    """Constants of an int16 layer: weights, arranged for each group of channels separately, and the channels' biases
    and multipliers."""
    packed = np.concatenate([packed_s16(part) for part in np.split(channel_weights(op), groups)])
    return Constant("weights", packed, "int8_t"), require_proven(matmul_s16(op)).constant


def form_s16(op: Op) -> str:
    """Return the C's argument `form` of a layer that `matmul_s16` proves exact."""
    return require_proven(matmul_s16(op)).form


def path_s16(op: Op) -> str:
    """Return the cost path of a layer that `matmul_s16` proves exact."""
    return form_name(form_s16(op))


class PackedConvRowS16(RowKernel):
    """Convolution of int16 data of any kernel size, stride, padding and groups, by im2col of each group.

    A call for row y reads only the input rows of y's own window (from RowWindow.first(y) on), and
    writes only its output row; a block of pixels is copied before its outputs are written.
    """

    name = "tinyfuse_conv_packed_row_s16"
    headers = ("tinyfuse_conv_packed_s16.h",)
    path = of_operator(path_s16)
    counts = of_calls(layer_counts)

    def accepts(self, op: Op, context: Context) -> bool:
        return matmul_s16(op) is not None

    def access_orders(self, op: Op) -> Mapping[int, AccessOrder]:
        g = convolution.geometry(op)
        return {0: AccessOrder(2 * g.in_c, 2 * g.out_c)} if convolution.is_plain_pointwise(op) else {}

    def row_access_orders(self, op: Op) -> Mapping[int, AccessOrder]:
        return params.orders_by_pixels(op, buffered=True) if convolution.geometry(op).groups == 1 else {}

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return matmul_s16_constants(op, convolution.geometry(op).groups)

    def scratch(self, op: Op, context: Context) -> int:
        by_one = op.input.shape[3] % 4 != 0 or convolution.geometry(op).groups > 1
        rows = op.operand(1).shape[1] * params.POINTER_BYTES
        return 2 * matmul_depth(op) * (block_pixels(context) + by_one) + rows

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        return params.conv_row_call(self, op, site, site.scratch, block_pixels(context), form_s16(op))


class DenseS16(Kernel):
    """Fully connected layer of int16 data without zero points, as a matrix product of batches."""

    name = "tinyfuse_dense_s16"
    headers = ("tinyfuse_dense_s16.h",)
    path = of_operator(path_s16)
    by_row, rings = True, True
    access_orders = of_operator(params.orders_by_batches, buffered=True)
    constants = of_operator(matmul_s16_constants)
    counts = of_calls(layer_counts)

    def accepts(self, op: Op, context: Context) -> bool:
        return not has_zero_points(op) and matmul_s16(op) is not None

    def scratch(self, op: Op, context: Context) -> int:
        return 2 * min(_batches(op), 3) * matmul_depth(op)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        out_c, in_c = op.operand(1).shape
        low, high = convolution.clamp_range(op)
        pointer, batches = vectors(op, site)
        fields = {"batches": batches, "in_c": in_c, "out_c": out_c, "act_min": low, "act_max": high}
        constants = site.constant("weights"), site.constant("channels")
        args = ("&p", pointer, site.output.pointer, *constants, site.scratch, form_s16(op))
        return Let("tinyfuse_dense_of_s16", "p", fields), Call(self.name, args)


class PackedDepthwiseRowS16(RowKernel):
    """Depthwise convolution of int16 data with depth multiplier 1, at least four channels, four at a time."""

    name = "tinyfuse_depthwise_packed_row_s16"
    headers = ("tinyfuse_depthwise_packed_s16.h",)
    scratch = of_operator(taps_scratch, 2)
    path = of_operator(path_s16)
    counts = of_calls(depthwise_counts)

    def accepts(self, op: Op, context: Context) -> bool:
        g = convolution.geometry(op)
        return g.in_c == g.out_c >= 4 and matmul_s16(op) is not None

    def access_orders(self, op: Op) -> Mapping[int, AccessOrder]:
        # the last group of four channels overlaps the one before unless the channels are a multiple of four
        orders = orders_by_columns(op) if op.output.shape[3] % 4 == 0 else {}
        return {index: AccessOrder(2 * order.read, 2 * order.written) for index, order in orders.items()}

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        channels, taps = channel_weights(op).shape
        weights = np.zeros((channels, taps + taps % 2), "<i2")
        weights[:, :taps] = channel_weights(op)
        starts, scales = group_starts(channels, 4), require_proven(matmul_s16(op)).channels
        packed = np.array([weights[start : start + 4].T for start in starts])
        quads = np.array([[scales[field][start : start + 4] for field in ("bias", "multiplier")] for start in starts])
        return Constant("weights", packed.reshape(-1), "int16_t"), Constant("channels", quads.reshape(-1), "int32_t")

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        return params.conv_row_call(self, op, site, site.scratch, form_s16(op))


class Depthwise3x3RowS16(RowKernel):
    """Depthwise 3x3 convolution of int16 data with depth multiplier 1, at least two channels, two at a time."""

    name = "tinyfuse_depthwise_3x3_row_s16"
    headers = ("tinyfuse_depthwise_3x3_s16.h",)
    path = of_operator(path_s16)
    counts = of_calls(depthwise_counts)

    def accepts(self, op: Op, context: Context) -> bool:
        g = convolution.geometry(op)
        fits = g.in_c == g.out_c >= 2 and (g.kernel_h, g.kernel_w, g.dilation_w) == (3, 3, 1)
        return fits and g.out_w > 1 and matmul_s16(op) is not None

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        weights, scales = channel_weights(op).reshape(-1, 3, 3), require_proven(matmul_s16(op)).channels
        starts = group_starts(len(weights), 2)
        pairs = np.zeros(len(starts), PAIR_3X3_S16)
        for pair, start in zip(pairs, starts, strict=True):
            two = slice(start, start + 2)
            pair["biases"], pair["multipliers"] = scales["bias"][two], scales["multiplier"][two]
            # [channel, row, column] -> [column, channel, row]
            pair["weights"][:, :2] = weights[two, :2].transpose(2, 0, 1)
            pair["weights"][:, 2:, 0] = weights[two, 2].T
        return (Constant("pairs", pairs.view(np.int32), "int32_t"),)

    def scratch(self, op: Op, context: Context) -> int:
        g = convolution.geometry(op)
        return 16 * ((g.out_w - 1) * g.stride_w + 3) + (2 * g.in_w * g.in_c if g.pads_rows else 0)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        pairs = f"(const tinyfuse_pair_3x3_s16 *)(const void *){site.constant('pairs')}"
        row = site.input(0).pointer, site.output_row, site.output.pointer
        return params.conv_params(op, site), Call(self.name, ("&p", *row, pairs, site.scratch, form_s16(op)))


def has_zero_points(op: Op) -> bool:
    """Return whether a zero point of the layer's input, output or weights is not 0."""
    return any((op.input.zero_point, op.output.zero_point, *op.operand(1).quantization.zero_point))


def _batches(op: Op) -> int:
    return op.output.elements // op.output.shape[-1]
