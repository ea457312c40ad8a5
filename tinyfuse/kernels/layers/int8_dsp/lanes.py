"""Constants of runtime_c/tinyfuse_matmul.h, and in which form a layer is computed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tinyfuse.ir import Array, Op
from tinyfuse.kernels.core.kernel import Constant, Context, require_proven
from tinyfuse.kernels.requantize.half_even import half_even
from tinyfuse.kernels.requantize.signed_rounding import SignedRounding
from tinyfuse.kernels.requantize.single_rounding import SingleRounding, single_rounding
from tinyfuse.kernels.requantize.two_roundings import REQUANT, bounded, shifted
from tinyfuse.once import cached_property
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.weight_sums import channel_weights

#: forms of a layer, as enum tinyfuse_form names them
WIDE, LANES, SINGLE_ROUNDING = "TINYFUSE_WIDE", "TINYFUSE_LANES", "TINYFUSE_SINGLE_ROUNDING"
BYTES, BYTES_SINGLE_ROUNDING = "TINYFUSE_BYTES", "TINYFUSE_BYTES_SINGLE_ROUNDING"
#: where scales of 1/2 and more need left shifts
SHIFTED, BYTES_SHIFTED = "TINYFUSE_SHIFTED", "TINYFUSE_BYTES_SHIFTED"
#: of layers that round half to even
HALF_EVEN, HALF_EVEN_WIDE = "TINYFUSE_HALF_EVEN", "TINYFUSE_HALF_EVEN_WIDE"
BYTES_HALF_EVEN = "TINYFUSE_BYTES_HALF_EVEN"
#: tinyfuse_half_even
HALF_EVEN_CHANNEL = np.dtype([("bias", "<i4"), ("scale", "<i4")])
#: of those whose outputs are looked up
SIGNED_ROUNDING, SIGNED_ROUNDING_WIDE, SIGNED_ROUNDING_ONE = (
    "TINYFUSE_SIGNED_ROUNDING",
    "TINYFUSE_SIGNED_ROUNDING_WIDE",
    "TINYFUSE_SIGNED_ROUNDING_ONE",
)

#: the type of a form's channels
_CHANNELS = {SINGLE_ROUNDING: "tinyfuse_single_rounding", BYTES_SINGLE_ROUNDING: "tinyfuse_single_rounding"}
_CHANNELS |= dict.fromkeys((HALF_EVEN, HALF_EVEN_WIDE, BYTES_HALF_EVEN), "tinyfuse_half_even")
_CHANNELS |= dict.fromkeys((SIGNED_ROUNDING, SIGNED_ROUNDING_WIDE, SIGNED_ROUNDING_ONE), "tinyfuse_signed_rounding")


@dataclass(frozen=True, eq=False)
class Matmul:
    """form; weights int8 [out_c, depth], two to a lane for LANES and lines; channels tinyfuse_single_rounding or
    tinyfuse_signed_rounding [out_c] for the forms on a line, else tinyfuse_requant [out_c] in the bounded form.

    Weights and channels are packed once they are asked for: who compares kernels asks for the form alone."""

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
    """ "wide", "lanes" or "single_rounding"."""
    return form.removeprefix("TINYFUSE_").lower()


def matmul_depth(op: Op) -> int:
    """Terms of an output, rounded up to a multiple of 4."""
    terms: int = channel_weights(op).shape[1]
    return -(-terms // 4) * 4


def column_bytes(context: Context) -> int:
    """Bytes of an input in a column, at most."""
    return 2 if context.target.dsp else 1


def matmul_layer(op: Op, context: Context) -> Matmul | None:
    """The layer in the target's fastest form that is proven exact; None where there is none."""
    return _layer(op, context.target.dsp, dense=False)


def dense_layer(op: Op, context: Context) -> Matmul | None:
    """The same without step lines, for kernels whose outputs are few beside their multiplications, and of inputs that
    lie as in the tensor: a layer of one pixel has no columns."""
    return _layer(op, context.target.dsp, dense=True)


@lru_cache(maxsize=2048)
def _layer(op: Op, dsp: bool, dense: bool) -> Matmul | None:
    found = None if dense else on_line(op, single_rounding(op), dsp)
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

    # sums are in 256ths and must come back from them
    if layer.fits_lanes and _fit_lanes(op, weights):
        return Matmul(LANES, lanes)
    return Matmul(WIDE, lambda: (weights(), layer.channels))


@lru_cache(maxsize=2048)
def shifting_layer(op: Op, dsp: bool, dense: bool) -> Matmul | None:
    """Return the layer with channels that shift either way, for one that has no other form; None where sums or weights
    are too large for lanes."""
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
    """Return a layer of FLOAT_HALF_EVEN with channels that are multiplied in float32; None for layers of other rules,
    and where sums or products are too large."""
    plain, lanes = half_even(op, 1), half_even(op, 256)
    if plain is None:
        return None
    if not dsp:
        return Matmul(BYTES_HALF_EVEN, lambda: (padded(op, plain.weights), _scaled(plain, 0, dense)))

    def in_order(weights: Array) -> Array:
        return padded(op, weights if dense else in_columns(op, weights))

    if lanes is None or weights_in_lanes(in_order(lanes.weights))[0] is None:
        return Matmul(HALF_EVEN_WIDE, lambda: (in_order(plain.weights), _scaled(plain, 0, dense)))

    def pack() -> tuple[Array, Array]:
        found, extra = weights_in_lanes(in_order(lanes.weights))
        return require_proven(found), _scaled(lanes, extra, dense)

    return Matmul(HALF_EVEN, pack)


def _scaled(layer: SingleRounding, extra: Array | int, dense: bool) -> Array:
    """tinyfuse_half_even [out_c], or of dense layers tinyfuse_requant [out_c] with shifts of 0; `extra` is added to
    each bias."""
    channels = layer.channels(extra)
    if not dense:
        return channels.view(HALF_EVEN_CHANNEL)
    found = np.zeros(len(channels), REQUANT)
    found["bias"], found["multiplier"] = channels["bias"], channels["multiplier"]
    return found


def in_256ths(channels: Array, extra: Array | int) -> Array:
    """tinyfuse_requant in the bounded form as sums in 256ths want it, to which `extra` is added."""
    of_256ths = channels.copy()
    bias, multiplier = (channels[field].astype(np.int64) for field in ("bias", "multiplier"))
    whole = multiplier == 0  # by 1, which no multiplier is: by 1/2, twice as much
    of_256ths["bias"] = (np.where(whole, 2 * bias, bias) * 256 + extra).astype(np.int32)
    of_256ths["multiplier"] = np.where(whole, 2**30, (multiplier + 2**32) // 2)
    return of_256ths


def on_line(op: Op, line: SingleRounding | None, dsp: bool) -> Matmul | None:
    """The layer along that line; None where there is none, or where weights don't fit lanes."""
    if line is None:
        return None
    if not dsp:
        return Matmul(BYTES_SINGLE_ROUNDING, lambda: (padded(op, line.weights), line.channels()))
    return _in_lanes(op, line, SINGLE_ROUNDING)


def on_signed_rounding(op: Op, line: SignedRounding | None) -> Matmul | None:
    """The layer along that line, on cores with the DSP extension; None where there is none, or where weights don't fit
    lanes."""
    if line is None:
        return None
    form = SIGNED_ROUNDING if line.bits == 8 else SIGNED_ROUNDING_WIDE
    return _in_lanes(op, line, SIGNED_ROUNDING_ONE if line.tables.ndim == 1 else form)


def _in_lanes(op: Op, line: SingleRounding | SignedRounding, form: str) -> Matmul | None:
    def weights() -> Array:
        return padded(op, in_columns(op, line.weights))

    def lanes() -> tuple[Array, Array]:
        in_lanes, extra = weights_in_lanes(weights())
        return require_proven(in_lanes), line.channels(extra)

    return Matmul(form, lanes) if _fit_lanes(op, weights) else None


def padded(op: Op, weights: Array) -> Array:
    """The weights [out_c, terms] of the operator with zeros up to `matmul_depth`; not to be changed."""
    if weights.shape[1] == matmul_depth(op):
        return weights
    to_depth = np.zeros((weights.shape[0], matmul_depth(op)), weights.dtype)
    to_depth[:, : weights.shape[1]] = weights
    return to_depth


def in_columns(op: Op, weights: Array) -> Array:
    """The weights [out_c, terms] in the order of a column's inputs on cores with DSP extension
    (tinyfuse_conv_packed.h)."""
    shape = op.operand(1).shape
    if FAMILIES[op.kind].convolution and shape[3] % 4 != 0 and shape[2] * shape[3] >= 4:
        return np.take(weights, _column_order(shape[1], shape[2] * shape[3]), axis=1)
    return weights


def _column_order(rows: int, run: int) -> list[int]:
    """Terms of a window in the order of a column: words of four of each kernel row, and what is left of rows as soon as
    that is four, backward."""
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
    """(int8 [out_c, depth], int64 [out_c]): weights [out_c, depth] two to a 16-bit lane, and what must
    be added to each sum in 256ths. None where a weight of -128 doesn't fit.

    The lane of weights v, w of inputs x, y holds w - 256 * v. With the inputs as 256 * y + x + 128 and
    127 - x, the sum of the first times w and the second times the lane is
    256 * (v * x + w * y) + 255 * w - 256 * 127 * v.
    """
    pairs = np.ascontiguousarray(weights).view("<i2")
    even, odd = pairs << 8, pairs >> 8  # 256 * v, and w
    if (even == -(2**15)).any():
        return None, 0
    ones = np.ones(pairs.shape[1])  # real numbers hold these sums, and are added up faster
    of_even, of_odd = ((lane.astype(np.float64) @ ones).astype(np.int64) for lane in (even, odd))
    return (odd - even).astype("<i2").view(np.int8), 127 * of_even - 255 * of_odd


def _fit_lanes(op: Op, weights: Callable[[], Array]) -> bool:
    """Whether a layer's `weights` fit two to a lane: none of the file's is -128, as in most layers, or none of these in
    the upper half of a lane."""
    return bool(op.operand(1).values.min() > -128) or weights_in_lanes(weights())[0] is not None


def block_pixels(context: Context) -> int:
    """Pixels that are computed together: a third costs scratch and saves some instructions."""
    return 2 if context.optimize == "ram" else 3


def halves(weights: Array) -> Array:
    """int16 [out_c, depth / 4, 2, 2] of int16 [out_c, depth]: of each four inputs 0 2, then 1 3."""
    out_c, depth = weights.shape
    return weights.reshape(out_c, depth // 4, 2, 2).transpose(0, 1, 3, 2)


def matmul_constants(layer: Matmul) -> tuple[Constant, ...]:
    """Weights and channels: pairs of channels interleaved by four inputs, then an odd last one."""
    out_c, depth = layer.weights.shape
    even = out_c // 2 * 2
    pairs = layer.weights[:even].reshape(-1, 2, depth // 4, 4).transpose(0, 2, 1, 3)
    weights = np.concatenate([pairs.reshape(-1), layer.weights[even:].reshape(-1)])
    return Constant("weights", weights.view(np.int8), "int8_t"), layer.constant
