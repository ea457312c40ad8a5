"""FULLY_CONNECTED of uint8 models, whose sums are multiplied by a real number
(runtime_c/tinyfuse_dense_real_scale.h)."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from tinyfuse.ir import Array, Op
from tinyfuse.ir.fixedpoint import multiply_by_real, real_scale
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Constant
from tinyfuse.kernels.core.rows import piece_pointer, vectors
from tinyfuse.kernels.core.statements import Call, Let, Statement
from tinyfuse.kernels.layers.common.batches import fully_connected_params
from tinyfuse.kernels.layers.common.params import plain_weights
from tinyfuse.kernels.layers.int8_dsp.dense import FullyConnectedWhole
from tinyfuse.ops.core.convolution import bias_values, clamp_range, real_multiplier
from tinyfuse.ops.weight_sums import channel_weights


class FullyConnectedReal(FullyConnectedWhole):
    """Fully connected layer of a uint8 model with a real scale, and constant or computed weights, in portable C."""

    name = "tinyfuse_fully_connected_real_scale_s8"
    costs_as: str | None = "tinyfuse_fully_connected_s8"
    headers = ("tinyfuse_dense_real_scale.h",)
    values = "channels"

    def accepts(self, op: Op, context: Context) -> bool:
        return rounds_as_double(op)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        in_c, (pointer, batches) = op.operand(1).shape[1], vectors(op, site)
        high, low, shift = real_scale(real_multiplier(op))
        scale = {"high": f"{high}u", "low": f"{low}u", "shift": shift}
        arguments = (
            "&p", "&scale", pointer, piece_pointer(site.output.pointer, site),
            piece_pointer(site.constant("weights"), site, in_c), piece_pointer(site.constant(self.values), site),
        )  # fmt: skip
        params = fully_connected_params(op, site, batches)
        return params, Let("tinyfuse_real_scale", "scale", scale), Call(self.name, arguments)


class DenseReal(FullyConnectedReal):
    """Fully connected layer of a uint8 model with a real scale and constant weights.

    The products with zero points are folded into the biases, or computed once per input vector.
    """

    name = "tinyfuse_dense_real_scale_s8"
    costs_as = None
    values = "biases"

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return plain_weights(op), Constant("biases", _folded_biases(op), "int32_t")


def _folded_biases(op: Op) -> Array:
    """Return int32 [out_c]: bias - input zero point * sum of (weights - their zero point), wrapping as sums do."""
    sums = (channel_weights(op).astype(np.int64) - op.operand(1).zero_point).sum(axis=1)
    folded: Array = (bias_values(op) - op.input.zero_point * sums).astype(np.int32)
    return folded


@lru_cache(maxsize=512)
def rounds_as_double(op: Op) -> bool:
    """Return whether integer arithmetic rounds every int32 sum times the layer's scale as LiteRT's double does.

    Rounding to double can only lift a product that lies below a half up to that half. So it is enough to try the last
    sum below the threshold of each output value.
    """
    real, (low, high) = real_multiplier(op), clamp_range(op)
    high_part, low_part, shift = real_scale(real)
    factor, half = high_part * 2**32 + low_part, 2 ** (31 + shift)
    for level in range(max(abs(low - op.output.zero_point), abs(high - op.output.zero_point)) + 1):
        least = -(-(2 * level + 1) * half // max(factor, 1))  # the first sum whose product reaches level + 1/2
        if least <= 2**31 and int(multiply_by_real(least - 1, real)) > level:
            return False
    return True
