"""Constants as our C kernels expect them, and the parameter structs of their calls."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from tinyfuse.ir import ITEM_BYTES, Array, Int64s, Op, Tensor
from tinyfuse.ir.fixedpoint import RANGE, clamp, multiply_by_quantized_multiplier
from tinyfuse.kernels.core.c_constants import c_constant
from tinyfuse.kernels.core.kernel import AccessOrder, CallSite, Constant, Kernel, proven
from tinyfuse.kernels.core.rows import from_piece
from tinyfuse.kernels.core.statements import Call, Expr, Let, Statement
from tinyfuse.once import cached_property
from tinyfuse.ops.core.convolution import bias_values, channel_multipliers, clamp_range, geometry, quantized
from tinyfuse.ops.weight_sums import channel_weights, sums_by_sign

#: tinyfuse_requant
REQUANT = np.dtype([("bias", "<i4"), ("multiplier", "<i4"), ("shift", "<i4")])


#: what a pointer in scratch takes, on every target
POINTER_BYTES = c_constant("tinyfuse_common.h", "TINYFUSE_POINTER_BYTES")


def general_channels(op: Op) -> Constant:
    """Per output channel: bias, multiplier and shift as TensorFlow Lite Micro has them."""
    channels = np.zeros(op.output.shape[-1], REQUANT)
    channels["bias"] = bias_values(op)
    channels["multiplier"], channels["shift"] = channel_multipliers(op)
    return Constant("channels", channels, "tinyfuse_requant")


def one_scale(multipliers: Array, shifts: Array) -> bool:
    """Whether all channels are requantized by the same numbers."""
    return bool((multipliers == multipliers[0]).all() and (shifts == shifts[0]).all())


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
    to = rows or (from_piece(site.output.pointer, site, op.output.shape[3]),)
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


# --- the bounded form (runtime_c/tinyfuse_requantize.h) ----------------------------------------


#: what the sums of weights in lanes stay below (runtime_c/tinyfuse_matmul.h)
LANE_SUMS = 2**23


@dataclass(frozen=True, eq=False)
class Bounded:
    """A layer proven fit for tinyfuse_requantize_bounded. A channel whose output is one constant, whatever the input,
    needs no proof: it gets zero weights and a bias that gives the constant; where that can be, with its own multiplier,
    which may be that of all. What the C takes is made once it is asked for.

    op         the layer
    term       int64 [out_c], what is added to an accumulator, but for its rounding, before it is shifted
    shiftable  bool [out_c], whether multiplier and shift are fit for it
    """

    op: Op
    term: Array
    shiftable: Array

    @cached_property
    def _ends(self) -> Array:
        """int8 [2, out_c]: least and greatest outputs, for requantization is monotone unless its left shift wraps."""
        op = self.op
        scaled = multiply_by_quantized_multiplier(np.array(accumulator_range(op)), *channel_multipliers(op))
        return clamp(scaled + op.output.zero_point, *clamp_range(op))

    @cached_property
    def constant(self) -> Array:
        """bool [out_c], whose output is one constant."""
        at_least, at_most = self._ends
        found: Array = ~wraps(self.op) & (at_least == at_most)
        return found

    @cached_property
    def weights(self) -> Array:
        """int8 [out_c, terms], the terms of an output in the order of the file's weights; zeros of constant ones."""
        return np.where(self.constant[:, None], np.int8(0), channel_weights(self.op))

    @cached_property
    def channels(self) -> Array:
        """tinyfuse_requant [out_c] in the bounded form."""
        op, constant, (at_least, _), (least, most) = self.op, self.constant, self._ends, accumulator_range(self.op)
        multipliers, shifts = channel_multipliers(op)
        # any accumulator of a constant channel will do: the nearest to 0
        accumulator = np.minimum(np.maximum(0, proven(least)), proven(most))
        as_it_is = self.shiftable & (np.abs(accumulator + self.term) < 2**31)
        as_it_is &= np.abs(accumulator) < LANE_SUMS  # else the whole layer would have to do without lanes
        plain = constant & ~as_it_is  # multiplied by 1/2: nothing is lost
        channels = np.zeros(len(constant), REQUANT)
        channels["bias"] = np.where(constant, accumulator, folded_bias(op))
        channels["bias"][plain] = 2 * (at_least.astype(np.int64) - op.output.zero_point)[plain]
        channels["multiplier"] = np.where(plain, 0, 2 * multipliers - 2**32)
        channels["shift"] = np.where(plain, 0, -shifts - 1)
        return channels

    @property
    def fits_lanes(self) -> bool:
        """Whether all sums in lanes stay below LANE_SUMS, those of constant channels always."""
        positive, negative = sums_by_sign(self.op)
        far = np.abs(folded_bias(self.op)) + 128 * (positive - negative) >= LANE_SUMS
        return not far.any() or not (far & ~self.constant).any()


@lru_cache(maxsize=512)
def bounded(op: Op) -> Bounded | None:
    """The layer in the bounded form, or None where the proof fails for some channel."""
    multipliers, shifts = channel_multipliers(op)
    zero_point = op.output.zero_point
    if not -128 <= op.input.zero_point <= 127 or not -128 <= zero_point <= 127:
        return None
    least, most = accumulator_range(op)
    if least is None or most is None:
        return None
    rounding = 2 * zero_point + 1
    term = rounding * 2 ** np.maximum(-shifts - 1, 0)
    # what is shifted lies between the term alone and its sum with the accumulator
    shiftable = (multipliers > 0) & (shifts <= -1) & (np.abs(term) < 2**31)
    fits = shiftable & (least + term > -(2**31)) & (most + term < 2**31)
    layer = Bounded(op, term, shiftable)
    return layer if fits.all() or (fits | layer.constant).all() else None


#: shifts of tinyfuse_requantize_shifted: to the right, to the left
_MOST_RIGHT, _MOST_LEFT = 22, 6


@dataclass(frozen=True, eq=False)
class Shifted:
    """A layer fit for tinyfuse_requantize_shifted, which has channels with scales of 1/2 and more beside smaller ones.

    weights   int8 [out_c, terms], zeros where a channel's output is one constant
    channels  tinyfuse_requant [out_c]: folded bias, multiplier, and both shifts in one number
    """

    weights: Array
    channels: Array


@lru_cache(maxsize=512)
def shifted(op: Op) -> Shifted | None:
    """Return the layer in that form; None where a channel's sums or shifts are too large for it."""
    zero_point = op.output.zero_point
    if not -128 <= op.input.zero_point <= 127 or not -128 <= zero_point <= 127 or accumulator_range(op)[0] is None:
        return None
    multipliers, shifts = channel_multipliers(op)
    plain = Bounded(op, np.zeros(len(shifts)), np.zeros(len(shifts), bool))
    bias, (positive, negative) = folded_bias(op), sums_by_sign(op)
    fits = np.abs(bias) + 128 * (positive - negative) < LANE_SUMS
    fits &= (shifts >= -_MOST_RIGHT) & (shifts <= _MOST_LEFT)
    constant = plain.constant
    if not (fits | constant).all():
        return None
    channels = np.zeros(len(shifts), REQUANT)
    channels["bias"] = np.where(constant, plain.channels["bias"], bias)
    channels["multiplier"] = np.where(constant, 2**30, multipliers)
    channels["shift"] = np.where(constant, 0, np.maximum(-shifts, 0) + 256 * np.maximum(shifts, 0))
    return Shifted(plain.weights, channels)


@lru_cache(maxsize=512)
def accumulator_range(op: Op) -> tuple[Array, Array] | tuple[None, None]:
    """(least, most) accumulator of each channel, bias included, over all int8 inputs (padding is within
    int8, too), not to be changed; None where one may leave int32, there or on its way."""
    bias, (positive, negative) = folded_bias(op), sums_by_sign(op)
    if (np.abs(bias) + 128 * (positive - negative) >= 2**31).any():
        return None, None
    return bias - 128 * positive + 127 * negative, bias + 127 * positive - 128 * negative


def wraps(op: Op) -> Array:
    """bool [out_c]: whether an accumulator of `accumulator_range`, which there is, leaves int32 where it is shifted to
    the left."""
    least, most = accumulator_range(op)
    left = np.minimum(np.maximum(channel_multipliers(op)[1], 0), 31)
    found: Array = np.maximum(-proven(least), proven(most)) << left >= 2**31
    return found


@lru_cache(maxsize=512)
def folded_bias(op: Op) -> Int64s:
    """bias - input zero point * sum of weights, int64, not to be changed; padding then counts as the zero point."""
    positive, negative = sums_by_sign(op)
    return bias_values(op) - op.input.zero_point * (positive + negative)


# --- Helium (runtime_c/tinyfuse_matmul_mve.h) ----------------------------------------------------


@lru_cache(maxsize=512)
def shifts_right(op: Op) -> bool:
    """No channel's requantization shifts left, and no folded bias leaves int32."""
    bias = folded_bias(op)
    return bool((channel_multipliers(op)[1] <= 0).all() and (np.abs(bias) < 2**31).all())


def rectified(op: Op) -> bool:
    """Whether the clamp is all of int8 from the zero point on: then saturating is all of it, and it doesn't matter
    which way negative halves are rounded."""
    return op.output.zero_point == -128 and clamp_range(op) == RANGE["int8"]


def channels4(op: Op, order: Array | list[list[int]]) -> Constant:
    """int32 [fours][3][4]: folded biases, multipliers and shifts of each four channels in `order`; a
    channel that isn't there is zeros."""
    fields = [np.append(field, 0) for field in (folded_bias(op), *channel_multipliers(op))]
    out_c = len(fields[0]) - 1
    fours = np.minimum(order, out_c)
    data = np.stack([field[fours] for field in fields], axis=1).astype(np.int32)
    return Constant("channels", data.reshape(-1), "int32_t")


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
