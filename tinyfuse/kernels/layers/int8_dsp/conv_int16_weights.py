"""Convolutions of int8 data whose weights are int16 in flash (runtime_c/tinyfuse_int16_weights.h)."""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import Array, Op
from tinyfuse.kernels.core.kernel import Constant, Context, Kernel, require_proven
from tinyfuse.kernels.core.statements import Expr
from tinyfuse.kernels.counts.common import Counts
from tinyfuse.kernels.counts.im2col import packed_counts
from tinyfuse.kernels.counts.layers import layer_counts
from tinyfuse.kernels.layers.int8_dsp.conv import AT_BORDERS, CODE_OF_WINDOWS, has_own_code, kind_of_windows
from tinyfuse.kernels.layers.int8_dsp.im2col_blocks import WidenedConvRow, WidenedPointwise
from tinyfuse.kernels.layers.int8_dsp.lanes import in_columns, padded, split_even_odd
from tinyfuse.kernels.requantize.single_rounding import SingleRounding, single_rounding
from tinyfuse.ops.core.convolution import geometry, is_plain_pointwise


class _Int16Weights(Kernel):
    """A layer with weights of int16 in flash that is exact with single-rounding requantization."""

    weights = "unpacked"
    input_bytes = 2

    def accepts(self, op: Op, context: Context) -> bool:
        asked = context.weights in ("auto", self.weights)
        return asked and context.target.dsp and not context.target.mve and single_rounding(op) is not None

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return (Constant("pairs", _pairs(op, require_proven(single_rounding(op))), "int32_t"),)

    def counts(self, op: Op, by_row: bool) -> Counts:
        return layer_counts(op, by_row)

    def path(self, op: Op, by_row: bool, context: Context) -> str:
        return "loads beside products" if context.target.dual_issue else ""

    def last_arguments(self, op: Op, context: Context) -> tuple[Expr, ...]:
        return ("TINYFUSE_LOADS_BESIDE_PRODUCTS" if context.target.dual_issue else "TINYFUSE_LOADS_AT_ONCE",)


class Int16WeightsConvRow(_Int16Weights, WidenedConvRow):
    """Convolution of one group."""

    name = "tinyfuse_conv_int16_weights_row_s8"
    headers = ("tinyfuse_conv_int16_weights.h",)

    def accepts(self, op: Op, context: Context) -> bool:
        return geometry(op).groups == 1 and super().accepts(op, context)

    def counts(self, op: Op, by_row: bool) -> Counts:
        return packed_counts(op, by_row)

    def path(self, op: Op, by_row: bool, context: Context) -> str:
        return f"{kind_of_windows(op, True)} {super().path(op, by_row, context)}".strip()

    def code_path(self, op: Op, by_row: bool, context: Context) -> str:
        return "of its own" * has_own_code(op)

    def own_code(self, op: Op) -> bool:
        return has_own_code(op)

    def copy_of_code(self, op: Op, context: Context) -> str:
        return AT_BORDERS if self.own_code(op) else super().copy_of_code(op, context)

    def calls_too(self, op: Op) -> tuple[str, ...]:
        return CODE_OF_WINDOWS


class Int16WeightsPointwise(_Int16Weights, WidenedPointwise):
    """1x1 convolution with stride 1."""

    name = "tinyfuse_pointwise_int16_weights_s8"
    headers = ("tinyfuse_pointwise_int16_weights.h",)
    form_of = "tinyfuse_pointwise_s8"

    def accepts(self, op: Op, context: Context) -> bool:
        return is_plain_pointwise(op) and op.input.shape[3] % 4 == 0 and super().accepts(op, context)


class Int16WeightsPointwiseRow(Int16WeightsPointwise):
    """1x1 convolution with stride 1, one output row a call.

    A call for row y reads only input row y, and writes only its output row.
    """

    by_row, whole, rings = True, False, True


def _pairs(op: Op, line: SingleRounding) -> Array:
    """Return int32 words for each pair of output channels: both biases twice, the weights, both multipliers.

    Weights are times 256, two a word. An odd last channel follows alone, with its bias once.
    """
    channels = line.channels()
    weights = split_even_odd(256 * padded(op, in_columns(op, line.weights)).astype("<i2"))
    words = np.ascontiguousarray(weights).view("<i4")[..., 0]  # [out_c, steps, 2]
    even = len(words) // 2 * 2
    biases, multipliers = (channels[field][:even].reshape(-1, 2) for field in ("bias", "multiplier"))
    of_pairs = (
        words[:even].reshape(-1, 2, *words.shape[1:]).transpose(0, 2, 3, 1).reshape(even // 2, 4 * words.shape[1])
    )
    last = [part.reshape(-1) for part in (channels["bias"][even:], words[even:], channels["multiplier"][even:])]
    pairs = np.concatenate([biases, biases, of_pairs, multipliers], axis=1)
    return np.concatenate([pairs.reshape(-1), *last]).astype("<i4")
