"""Forms of layers for runtime_c/tinyfuse_matmul.h, and the constants that it takes.

A lane is half of a 32-bit word. Two int8 weights share a lane, so that one of them needs no widening.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from tinyfuse.ir import Array, Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import Constant, require_proven
from tinyfuse.kernels.counts.common import ceil_div
from tinyfuse.kernels.requantize.half_even import each_alone, half_even, single_or_half_even
from tinyfuse.kernels.requantize.signed_rounding import SignedRounding
from tinyfuse.kernels.requantize.single_rounding import SingleRounding, single_rounding
from tinyfuse.kernels.requantize.two_roundings import REQUANT, bounded, shifted
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.weight_sums import channel_weights

#: forms of a layer, values of the C's enum tinyfuse_form
WIDE, LANES, SINGLE_ROUNDING = "TINYFUSE_WIDE", "TINYFUSE_LANES", "TINYFUSE_SINGLE_ROUNDING"
BYTES, BYTES_SINGLE_ROUNDING = "TINYFUSE_BYTES", "TINYFUSE_BYTES_SINGLE_ROUNDING"
#: forms for channels that need left shifts: scales of 1/2 and more
SHIFTED, BYTES_SHIFTED = "TINYFUSE_SHIFTED", "TINYFUSE_BYTES_SHIFTED"
#: forms of layers that round half to even
HALF_EVEN, HALF_EVEN_WIDE = "TINYFUSE_HALF_EVEN", "TINYFUSE_HALF_EVEN_WIDE"
BYTES_HALF_EVEN = "TINYFUSE_BYTES_HALF_EVEN"
#: C struct tinyfuse_half_even
HALF_EVEN_CHANNEL = np.dtype([("bias", "<i4"), ("scale", "<i4")])
#: forms of weights of int4
INT4_WIDE, INT4_SINGLE_ROUNDING = "TINYFUSE_INT4", "TINYFUSE_INT4_SINGLE_ROUNDING"
#: form with sign-dependent rounding, for layers with a fused activation LUT
SIGNED_ROUNDING = "TINYFUSE_SIGNED_ROUNDING"

#: form -> C struct of its channels; tinyfuse_requant for forms that are not listed
_CHANNELS = dict.fromkeys((SINGLE_ROUNDING, BYTES_SINGLE_ROUNDING, INT4_SINGLE_ROUNDING), "tinyfuse_single_rounding")
_CHANNELS |= dict.fromkeys((HALF_EVEN, HALF_EVEN_WIDE, BYTES_HALF_EVEN), "tinyfuse_half_even")
_CHANNELS[SIGNED_ROUNDING] = "tinyfuse_signed_rounding"


@dataclass(frozen=True, eq=False)
class Matmul:
    """Constants that a layer passes to runtime_c/tinyfuse_matmul.h, and the form in which it is computed.

    weights   int8 [out_c, depth], two to a lane in LANES and in forms with one rounding.
    channels  tinyfuse_single_rounding or tinyfuse_signed_rounding [out_c] in forms with one rounding, else
              tinyfuse_requant [out_c] of the bounded form

    `pack` makes both when one of them is first used: comparing kernels needs the form alone.
    """

    form: str
    pack: Callable[[], tuple[Array, Array]]

    @cached_property
    def _packed(self) -> tuple[Array, Array]:
        return self.pack()

    @property
    def weights(self) -> Array:
        return self._packed[0]

    @property
    def channels(self) -> Array:
        return self._packed[1]

    @property
    def constant(self) -> Constant:
        return Constant("channels", self.channels, _CHANNELS.get(self.form, "tinyfuse_requant"))


def form_name(form: str) -> str:
    """Return the form's name in cost paths, such as "wide", "lanes" or "single_rounding"."""
    return form.removeprefix("TINYFUSE_").lower()


def cost_path(form: str, fpu: bool = True, lines: float = 0.0) -> str:
    """Return the cost path of a form. With an FPU, a form that rounds half to even takes the path of the bounded form,
    whose instructions differ by less than 1 % (BYTES_HALF_EVEN: 3 %, in integers). Without one, C code multiplies, so
    HALF_EVEN and HALF_EVEN_WIDE have paths of their own. `lines`: share of the pairs of channels that have a single
    rounding."""
    name = form_name(form)
    if name == "half_even" and fpu and lines > 0.5:
        return "single_rounding"
    return name if name in ("half_even", "half_even_wide") and not fpu else _COSTS_OF.get(name, name)


_COSTS_OF = {"half_even": "lanes", "half_even_wide": "wide", "bytes_half_even": "bytes"}
_COSTS_OF |= {"int4": "wide", "int4_single_rounding": "single_rounding"}


def matmul_depth(op: Op) -> int:
    """Return the products that an output sums, rounded up to a multiple of 4."""
    terms: int = channel_weights(op).shape[1]
    return -(-terms // 4) * 4


def column_bytes(context: Context) -> int:
    """Return the bytes that an input takes in a column of scratch, at most."""
    return 2 if context.target.dsp else 1


def matmul_layer(op: Op, context: Context) -> Matmul | None:
    """Return the convolution with the fastest requantization of the target that is proven exact; None if there is
    none."""
    return _layer(op, context.target.dsp, dense=False)


def dense_layer(op: Op, context: Context) -> Matmul | None:
    """Return the fully connected layer in the target's fastest form that is proven exact; None if there is none.

    It is requantized with two roundings, because it has few outputs per multiplication. Weights keep the tensor's
    order, because inputs are not arranged in columns.
    """
    return _layer(op, context.target.dsp, dense=True)


@lru_cache(maxsize=2048)
def _layer(op: Op, dsp: bool, dense: bool) -> Matmul | None:
    found = None if dense else single_rounding_layer(op, single_rounding(op), dsp)
    if found is not None:
        return found
    layer = bounded(op)
    if layer is None:
        return None
    if not dsp:
        return Matmul(BYTES, lambda: (padded(op, layer.weights), layer.channels))

    def weights() -> Array:
        return padded(op, layer.weights if dense else in_columns(op, layer.weights))

    def lanes() -> tuple[Array, Array]:
        in_lanes, extra = weights_in_lanes(weights())
        return require_proven(in_lanes), in_256ths(layer.channels, extra)

    # lanes make sums in 256ths, which the requantization must take
    if layer.fits_lanes and _fit_lanes(op, weights):
        return Matmul(LANES, lanes)
    return Matmul(WIDE, lambda: (weights(), layer.channels))


@lru_cache(maxsize=2048)
def shifting_layer(op: Op, dsp: bool, dense: bool) -> Matmul | None:
    """Return a layer that has no other form with channels that shift left or right.

    None where sums or weights are too large for lanes.
    """
    layer = shifted(op)
    if layer is None:
        return None
    if not dsp:
        return Matmul(BYTES_SHIFTED, lambda: (padded(op, layer.weights), layer.channels))

    def weights() -> Array:
        return padded(op, layer.weights if dense else in_columns(op, layer.weights))

    def lanes() -> tuple[Array, Array]:
        in_lanes, extra = weights_in_lanes(weights())
        channels = layer.channels.copy()
        channels["bias"] = (channels["bias"].astype(np.int64) * 256 + extra).astype(np.int32)
        return require_proven(in_lanes), channels

    return Matmul(SHIFTED, lanes) if _fit_lanes(op, weights) else None


@lru_cache(maxsize=2048)
def half_even_layer(op: Op, dsp: bool, dense: bool) -> Matmul | None:
    """Return a layer of FLOAT_HALF_EVEN whose channels are multiplied in float32. None for layers with another
    rounding, and for sums or products that are too large."""
    plain, lanes = half_even(op, 1), half_even(op, 256)
    if plain is None:
        return None
    out_c = len(plain.bias)
    if not dsp:

        def bytes_and_channels() -> tuple[Array, Array]:
            channels = _scaled(plain, 0, dense) if dense else single_or_half_even(op, each_alone(out_c), unit=1)
            return padded(op, plain.weights), channels if dense else _half_even_channels(channels)

        return Matmul(BYTES_HALF_EVEN, bytes_and_channels)

    def in_order(weights: Array) -> Array:
        return padded(op, weights if dense else in_columns(op, weights))

    if lanes is None or weights_in_lanes(in_order(lanes.weights))[0] is None:
        return Matmul(HALF_EVEN_WIDE, lambda: (in_order(plain.weights), _scaled(plain, 0, dense)))

    def pack() -> tuple[Array, Array]:
        found, extra = weights_in_lanes(in_order(lanes.weights))
        if dense:
            return require_proven(found), _scaled(lanes, extra, dense)
        pairs = np.minimum(np.arange(ceil_div(out_c, 2) * 2), out_c - 1).reshape(-1, 2)
        return require_proven(found), _half_even_channels(single_or_half_even(op, pairs, extra))[:out_c]

    return Matmul(HALF_EVEN, pack)


def _half_even_channels(groups: Array) -> Array:
    """Array of the C type tinyfuse_half_even: single-rounding parameters of groups of channels."""
    return np.ascontiguousarray(groups.reshape(-1)).view(HALF_EVEN_CHANNEL)


def _scaled(layer: SingleRounding, extra: Array | int, dense: bool) -> Array:
    """Return the channels' constants: tinyfuse_half_even [out_c] or, for dense layers, tinyfuse_requant [out_c] with
    shifts of 0. `extra` is added to each bias."""
    channels = layer.channels(extra)
    if not dense:
        return channels.view(HALF_EVEN_CHANNEL)
    found = np.zeros(len(channels), REQUANT)
    found["bias"], found["multiplier"] = channels["bias"], channels["multiplier"]
    return found


def in_256ths(channels: Array, extra: Array | int) -> Array:
    """Return tinyfuse_requant [out_c] of the bounded form for sums in 256ths.

    `extra` [out_c] is added to the biases, in 256ths.
    """
    of_256ths = channels.copy()
    bias, multiplier = (channels[field].astype(np.int64) for field in ("bias", "multiplier"))
    whole = multiplier == 0  # a scale of 1 has no multiplier: the sum is doubled, then halved
    of_256ths["bias"] = (np.where(whole, 2 * bias, bias) * 256 + extra).astype(np.int32)
    of_256ths["multiplier"] = np.where(whole, 2**30, (multiplier + 2**32) // 2)
    return of_256ths


def single_rounding_layer(op: Op, rounding: SingleRounding | None, dsp: bool) -> Matmul | None:
    """Return the layer requantized by `rounding`; None if that is None or weights don't fit lanes."""
    if rounding is None:
        return None
    if not dsp:
        return Matmul(BYTES_SINGLE_ROUNDING, lambda: (padded(op, rounding.weights), rounding.channels()))
    return _in_lanes(op, rounding, SINGLE_ROUNDING)


def signed_rounding_layer(op: Op, rounding: SignedRounding | None) -> Matmul | None:
    """Return the layer requantized by `rounding`, for the DSP extension; None if that is None or weights don't fit
    lanes."""
    return None if rounding is None else _in_lanes(op, rounding, SIGNED_ROUNDING)


def _in_lanes(op: Op, rounding: SingleRounding | SignedRounding, form: str) -> Matmul | None:
    def weights() -> Array:
        return padded(op, in_columns(op, rounding.weights))

    def lanes() -> tuple[Array, Array]:
        in_lanes, extra = weights_in_lanes(weights())
        return require_proven(in_lanes), rounding.channels(extra)

    return Matmul(form, lanes) if _fit_lanes(op, weights) else None


def padded(op: Op, weights: Array) -> Array:
    """Return weights [out_c, terms] padded with zeros to [out_c, `matmul_depth`].

    The caller must not change the result: it may be `weights` itself.
    """
    if weights.shape[1] == matmul_depth(op):
        return weights
    to_depth = np.zeros((weights.shape[0], matmul_depth(op)), weights.dtype)
    to_depth[:, : weights.shape[1]] = weights
    return to_depth


def in_columns(op: Op, weights: Array) -> Array:
    """Return weights [out_c, terms] in the order of a column's inputs in runtime_c/tinyfuse_conv_packed.h (DSP
    extension)."""
    shape = op.operand(1).shape
    if FAMILIES[op.kind].convolution and shape[3] % 4 != 0 and shape[2] * shape[3] >= 4:
        return np.take(weights, _column_order(shape[1], shape[2] * shape[3]), axis=1)
    return weights


def _column_order(rows: int, run: int) -> list[int]:
    """Return the terms of a window, `rows` of `run`, in the order of a column.

    Each kernel row gives words of four terms. Terms that are left over are collected, and follow in reverse order as
    soon as there are four.
    """
    words = run // 4 * 4
    order: list[int] = []
    left: list[int] = []
    for row in range(0, rows * run, run):
        order += range(row, row + words)
        for term in range(row + words, row + run):
            left = [term, *left]
            if len(left) == 4:
                order, left = order + left, []
    return order + left


def weights_in_lanes(weights: Array) -> tuple[Array | None, Array | int]:
    """Return (lanes, correction) of int8 weights [out_c, depth]; (None, 0) where a weight of -128 doesn't fit.

    lanes       int8 [out_c, depth], two weights in 16 bits
    correction  int64 [out_c], to be added to each sum in 256ths

    The lane of weights v, w of inputs x, y holds w - 256 * v. Inputs are stored as 256 * y + x + 128
    and as 127 - x. The first times w plus the second times the lane is
    256 * (v * x + w * y) + 255 * w - 256 * 127 * v.
    """
    pairs = np.ascontiguousarray(weights).view("<i2")
    even, odd = pairs << 8, pairs >> 8  # 256 * v, and w
    if (even == -(2**15)).any():
        return None, 0
    ones = np.ones(pairs.shape[1])  # float64 holds these sums exactly, and numpy adds it up faster
    of_even, of_odd = ((lane.astype(np.float64) @ ones).astype(np.int64) for lane in (even, odd))
    return (odd - even).astype("<i2").view(np.int8), 127 * of_even - 255 * of_odd


def _fit_lanes(op: Op, weights: Callable[[], Array]) -> bool:
    """Return whether a layer's `weights` fit two to a lane: none is -128 in a lane's upper half."""
    return bool(op.operand(1).values.min() > -128) or weights_in_lanes(weights())[0] is not None


def block_pixels(context: Context) -> int:
    """Return the pixels that are computed together: a third one costs scratch and saves some instructions."""
    return 2 if context.optimize == "ram" else 3


def split_even_odd(weights: Array) -> Array:
    """Return int16 weights [out_c, depth] as [out_c, depth / 4, 2, 2]: inputs 0 2, then 1 3 of each four."""
    out_c, depth = weights.shape
    return weights.reshape(out_c, depth // 4, 2, 2).transpose(0, 1, 3, 2)


def matmul_constants(layer: Matmul) -> tuple[Constant, ...]:
    """Return the constants "weights" and "channels".

    Weights of two channels alternate by four inputs; an odd last channel follows.
    """
    out_c, depth = layer.weights.shape
    even = out_c // 2 * 2
    pairs = layer.weights[:even].reshape(-1, 2, depth // 4, 4).transpose(0, 2, 1, 3)
    weights = np.concatenate([pairs.reshape(-1), layer.weights[even:].reshape(-1)])
    return Constant("weights", weights.view(np.int8), "int8_t"), layer.constant
