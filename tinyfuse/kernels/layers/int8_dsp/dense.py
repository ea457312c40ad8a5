"""Kernels of int8 FULLY_CONNECTED (runtime_c/tinyfuse_dense.h, tinyfuse_fully_connected.h), and of uint8 models, whose
sums are multiplied by a real number (runtime_c/tinyfuse_dense_real_scale.h)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import prod
from typing import ClassVar

import numpy as np

from tinyfuse.ir import Array, Op
from tinyfuse.ir.fixedpoint import multiply_by_real, real_scale
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Constant, Kernel, require_proven
from tinyfuse.kernels.core.methods import of_calls, of_operator
from tinyfuse.kernels.core.rows import piece_pointer, vectors
from tinyfuse.kernels.core.statements import Call, Expr, Let, Statement
from tinyfuse.kernels.counts.layers import dense_counts, layer_counts
from tinyfuse.kernels.layers.common import params
from tinyfuse.kernels.layers.int8_dsp import lanes
from tinyfuse.kernels.requantize.two_roundings import has_one_scale
from tinyfuse.ops.core.convolution import bias_values, clamp_range, real_multiplier
from tinyfuse.ops.weight_sums import channel_weights


class FullyConnectedWhole(Kernel):
    """Fully connected layer of int8 data of any size, in portable C."""

    name = "tinyfuse_fully_connected_s8"
    headers = ("tinyfuse_fully_connected.h",)
    by_row, rings = True, True
    access_orders = of_operator(params.orders_by_batches, buffered=False)
    counts = of_calls(layer_counts)
    division = of_calls(params.divide_by_channels, 1)

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return params.plain_weights(op), params.general_channels(op)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        in_c, (pointer, batches) = op.operand(1).shape[1], vectors(op, site)
        return params.fully_connected_params(op, site, batches), Call(
            self.name,
            ("&p", pointer, piece_pointer(site.output.pointer, site),
             piece_pointer(site.constant("weights"), site, in_c), piece_pointer(site.constant("channels"), site)),
        )  # fmt: skip


def _layer(op: Op, context: Context) -> lanes.Matmul | None:
    """Return the layer in the fastest form that is proven exact; None where there is none."""
    dsp, found = context.target.dsp, lanes.dense_layer(op, context)
    return found or lanes.half_even_layer(op, dsp, dense=True) or lanes.shifting_layer(op, dsp, dense=True)


class Dense(Kernel):
    """Fully connected layer of int8 whose weights have no zero point, four outputs at a time, requantized with two
    roundings.

    Inputs are read as bytes, a multiple of four of them.
    """

    name = "tinyfuse_dense_s8"
    headers = ("tinyfuse_dense.h",)
    by_row, rings = True, True
    access_orders = of_operator(params.orders_by_batches, buffered=False)
    counts = of_calls(dense_counts)
    division = of_calls(params.divide_by_channels, 4)

    def accepts(self, op: Op, context: Context) -> bool:
        whole_words = op.operand(1).values[0].size % 4 == 0
        no_zero_point = not any(op.operand(1).quantization.zero_point)
        return whole_words and no_zero_point and _layer(op, context) is not None

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        layer = require_proven(_layer(op, context))
        out_c, depth = layer.weights.shape
        quads, rest = np.split(layer.weights, [out_c // 4 * 4])
        quads = quads.reshape(-1, 4, depth // 4, 4).transpose(0, 2, 1, 3)
        weights = np.concatenate([quads.reshape(-1), rest.reshape(-1)])
        return Constant("weights", weights, "int8_t"), *params.scale_constants(layer.channels)

    def path(self, op: Op, by_row: bool, context: Context) -> str:
        return lanes.cost_path(require_proven(_layer(op, context)).form, context.target.fpu)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        return dense_call(self, op, site, context, *vectors(op, site))


class DenseWide(Dense):
    """Fully connected layer of int8 that converts its inputs to int16 in scratch first.

    Each input is then converted once and not for every four outputs. Layers with more than `few_inputs` inputs are
    accepted only if these are no multiple of four.
    """

    name = "tinyfuse_dense_wide_s8"
    #: the most inputs that are converted, by --optimize
    few_inputs: ClassVar[Mapping[str, int]] = {"speed": 1024, "balanced": 256, "ram": 0}
    access_orders = of_operator(params.orders_by_batches, buffered=True)
    indivisible = True  # the output may overwrite inputs that were copied to scratch

    def accepts(self, op: Op, context: Context) -> bool:
        in_c = op.operand(1).values[0].size
        pays = in_c <= self.few_inputs[context.optimize] and context.target.dsp and not context.divided
        no_zero_point = not any(op.operand(1).quantization.zero_point)
        return (pays or in_c % 4 != 0) and no_zero_point and _layer(op, context) is not None

    def scratch(self, op: Op, context: Context) -> int:
        return lanes.column_bytes(context) * lanes.matmul_depth(op)


def _shares_scale(layer: lanes.Matmul) -> bool:
    """Return whether all outputs have the same multiplier and shift."""
    return has_one_scale(layer.channels["multiplier"], layer.channels["shift"])


def dense_call(
    kernel: Kernel, op: Op, site: CallSite, context: Context, pointer: str, batches: int
) -> tuple[Statement, ...]:
    """Return the call of a `Dense` kernel on `batches` input vectors that lie side by side from `pointer` on."""
    layer, (out_c, *terms) = require_proven(_layer(op, context)), op.operand(1).shape
    in_c = prod(terms)
    fields = {
        "batches": batches, "in_c": in_c, "out_c": site.piece.count if site.piece else out_c,
        "scale_step": 1 - _shares_scale(layer),
    } | params.output_fields(op)  # fmt: skip
    scales = site.constant("scales")
    arguments: tuple[Expr, ...] = (
        "&p", pointer, piece_pointer(site.output.pointer, site),
        piece_pointer(site.constant("weights"), site, layer.weights.shape[1]),
        piece_pointer(site.constant("biases"), site),
        scales if _shares_scale(layer) else piece_pointer(scales, site), layer.form,
    )  # fmt: skip
    if site.scratch != "NULL":
        arguments += (site.scratch,)
    return Let("tinyfuse_dense", "p", fields), Call(kernel.name, arguments)


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
        return (
            params.fully_connected_params(op, site, batches),
            Let("tinyfuse_real_scale", "scale", scale),
            Call(self.name, arguments),
        )


class DenseReal(FullyConnectedReal):
    """Fully connected layer of a uint8 model with a real scale and constant weights.

    The products with zero points are folded into the biases, or computed once per input vector.
    """

    name = "tinyfuse_dense_real_scale_s8"
    costs_as = None
    values = "biases"

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return params.plain_weights(op), Constant("biases", _folded_biases(op), "int32_t")


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
