"""Kernels of int8 DEPTHWISE_CONV_2D (runtime_c/tinyfuse_depthwise.h, tinyfuse_depthwise_packed.h,
tinyfuse_depthwise_3x3.h, tinyfuse_depthwise_weight_stationary.h)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tinyfuse.ir import Array, Op
from tinyfuse.kernels.core.c_constants import c_constant
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import AccessOrder, CallSite, Constant, RowKernel, require_proven
from tinyfuse.kernels.core.methods import always, of_calls, of_operator
from tinyfuse.kernels.core.statements import Call, Statement
from tinyfuse.kernels.counts.common import Counts
from tinyfuse.kernels.counts.depthwise import depthwise_counts
from tinyfuse.kernels.counts.im2col import packed_depthwise_counts
from tinyfuse.kernels.counts.windows import inner_window_counts
from tinyfuse.kernels.layers.common import params
from tinyfuse.kernels.layers.common.taps import LISTS_OF_TAPS, orders_by_columns, packed_taps, quads_of, taps_scratch
from tinyfuse.kernels.layers.int8_dsp.conv import ConvRow
from tinyfuse.kernels.requantize.half_even import half_even, share_of_single_rounding, single_or_half_even
from tinyfuse.kernels.requantize.single_rounding import any_single_rounding
from tinyfuse.kernels.requantize.two_roundings import Bounded, Shifted, bounded, shifted
from tinyfuse.ops.core.convolution import FLOAT_HALF_EVEN, geometry, rounds_by


class DepthwiseRow(ConvRow):
    """Depthwise convolution of int8 of any kernel size, stride, dilation, padding and multiplier, in portable C."""

    name = "tinyfuse_depthwise_row_s8"
    headers = ("tinyfuse_depthwise.h",)
    access_orders = of_operator(orders_by_columns)
    counts = of_calls(inner_window_counts)

    def row_access_orders(self, op: Op) -> Mapping[int, AccessOrder]:
        return self.access_orders(op) or params.orders_by_pixels(op)


def form_of(op: Op) -> str:
    """Return the fastest form in which the layer is proven exact, as runtime_c/tinyfuse_requantize.h names it."""
    found = any_single_rounding(op)
    if found is not None:
        return "single_rounding" if found.shift is None else "own_shifts"
    if rounds_by(op, FLOAT_HALF_EVEN):
        return "half_even"
    return "bounded" if bounded(op) is not None else "shifted"


def _twice_rounded(op: Op) -> Bounded | Shifted:
    """Return the layer in its fastest form with two roundings. Requires that it is proven exact in one."""
    found = bounded(op)
    return found if found is not None else require_proven(shifted(op))


def cost_path(op: Op, context: Context) -> str:
    """Name of the form whose cost entry applies to a layer. Half to even costs no more than two roundings, except in C
    without an FPU, where other forms have assembly. If most groups of channels have a single rounding, its entry
    applies."""
    form, target = form_of(op), context.target
    if form != "half_even" or (target.dsp and not target.fpu):
        return form
    return "single_rounding" if target.dsp and share_of_single_rounding(op, 4) > 0.5 else "bounded"


def form_argument(op: Op) -> str:
    """Return the C argument `form`: the name of a constant of runtime_c/tinyfuse_requantize.h."""
    return f"TINYFUSE_{form_of(op).upper()}_FORM"


def layer_weights(op: Op) -> Array:
    """Return the weights int8 [channels, taps] for the form of `form_of`."""
    found = any_single_rounding(op) or half_even(op, 256)
    return found.weights if found is not None else _twice_rounded(op).weights


def channels_constant(op: Op, context: Context) -> Constant:
    """Return the constant "channels" for the form of `form_of`.

    With a single rounding: biases, multipliers, and shifts if there are some, of each group of four channels.
    In a form with two roundings: tinyfuse_requant [channels].
    """
    found = any_single_rounding(op)
    quads = quads_of(op.output.shape[3])
    if found is not None:
        each = found.channels()[quads]
    elif rounds_by(op, FLOAT_HALF_EVEN):
        by_assembly = context.target.dsp and context.target.fpu
        each = single_or_half_even(op, quads) if by_assembly else single_or_half_even(op, quads[..., None])[..., 0]
    else:
        return Constant("channels", _twice_rounded(op).channels, "tinyfuse_requant")
    fours = np.stack([each[field] for field in require_proven(each.dtype.names)], axis=1)
    return Constant("channels", fours.reshape(-1), "int32_t")


def has_form(op: Op) -> bool:
    """Tell whether the layer is proven exact in one of these forms."""
    once = any_single_rounding(op) is not None or half_even(op, 256) is not None
    return once or bounded(op) is not None or shifted(op) is not None


class PackedDepthwiseRow(RowKernel):
    """Depthwise convolution of int8 with depth multiplier 1 and at least four channels; two taps are multiplied at
    once."""

    name = "tinyfuse_depthwise_packed_row_s8"
    headers = ("tinyfuse_depthwise_packed.h",)
    columns = 1
    scratch = of_operator(taps_scratch)
    counts = of_calls(packed_depthwise_counts)
    copy_of_code = always(LISTS_OF_TAPS)

    def accepts(self, op: Op, context: Context) -> bool:
        g = geometry(op)
        return g.in_c == g.out_c >= 4 and has_form(op)

    def access_orders(self, op: Op) -> Mapping[int, AccessOrder]:
        # the last group of four channels overlaps the one before unless the channels are a multiple of four
        return orders_by_columns(op) if op.output.shape[3] % 4 == 0 else {}

    def row_access_orders(self, op: Op) -> Mapping[int, AccessOrder]:
        return self.access_orders(op) or params.orders_by_pixels(op)

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return Constant("weights", packed_taps(layer_weights(op)), "int8_t"), channels_constant(op, context)

    def path(self, op: Op, by_row: bool, context: Context) -> str:
        return cost_path(op, context)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        return params.conv_row_call(self, op, site, site.scratch, form_argument(op))


_HEADER_3X3 = "tinyfuse_depthwise_3x3.h"
#: bytes of a tinyfuse_quad, and of a column of int16
_QUAD_BYTES = c_constant(_HEADER_3X3, "TINYFUSE_QUAD_BYTES")
_COLUMN_BYTES = 2 * c_constant(_HEADER_3X3, "TINYFUSE_COLUMN")


class Depthwise3x3Row(RowKernel):
    """Depthwise 3x3 convolution of int8 with depth multiplier 1, dilation 1, at least four channels, any stride and
    padding."""

    name = "tinyfuse_depthwise_3x3_row_s8"
    headers = (_HEADER_3X3,)
    counts = of_calls(depthwise_counts)

    def accepts(self, op: Op, context: Context) -> bool:
        g = geometry(op)
        plain = (g.kernel_h, g.kernel_w, g.dilation_h, g.dilation_w) == (3, 3, 1, 1)
        return plain and g.in_c == g.out_c >= 4 and has_form(op)

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        columns = layer_weights(op).reshape(-1, 3, 3).transpose(2, 1, 0)  # [column, row, channel]
        groups = columns[:, :, quads_of(columns.shape[2])]
        # per group and column: for two channels at a time, the upper two rows; then the lower row
        upper = groups[:, :2].reshape(3, 2, -1, 2, 2).transpose(2, 0, 3, 1, 4).reshape(-1, 3, 8)
        weights = np.concatenate([upper, groups[:, 2].swapaxes(0, 1)], axis=2)
        return Constant("weights", weights.reshape(-1), "int8_t"), channels_constant(op, context)

    def scratch(self, op: Op, context: Context) -> int:
        g = geometry(op)
        padding = g.in_w * g.in_c if g.pads_rows else 0
        return _QUAD_BYTES + _COLUMN_BYTES * ((g.out_w - 1) * g.stride_w + 3) + padding

    def path(self, op: Op, by_row: bool, context: Context) -> str:
        return cost_path(op, context)

    def copy_of_code(self, op: Op, context: Context) -> str:
        return f"{self.name} {form_of(op)}"

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        return params.conv_row_call(self, op, site, site.scratch, form_argument(op))


_HEADER_STATIONARY = "tinyfuse_depthwise_weight_stationary.h"
#: bytes of a record: two columns of four channels
_RECORD_BYTES = c_constant(_HEADER_STATIONARY, "TINYFUSE_DW_WEIGHT_STATIONARY_RECORD")


class WeightStationaryDepthwiseRow(RowKernel):
    """Depthwise 3x3 convolution of int8 with depth multiplier 1, dilation 1, stride 1 or 2 along a row, at least four
    channels.

    It is requantized with a single rounding. Any padding; weights are int16 in flash.
    """

    name = "tinyfuse_depthwise_weight_stationary_row_s8"
    headers = (_HEADER_STATIONARY,)
    weights = "unpacked"

    def accepts(self, op: Op, context: Context) -> bool:
        g = geometry(op)
        allowed = context.weights in ("auto", self.weights) and context.target.dsp and not context.target.mve
        plain = (g.kernel_h, g.kernel_w, g.dilation_h, g.dilation_w) == (3, 3, 1, 1) and g.stride_w in (1, 2)
        return allowed and plain and g.in_c == g.out_c >= 4 and any_single_rounding(op) is not None

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        """Return the constant "channels", int32 words of each channel: weights, bias, multiplier, and its shift if it
        has one.

        Weights are multiplied by 256, two to a word: for each column those of rows 0 and 1, then those of row 2 in
        columns 0, 1 and in columns 1, 2.
        """
        found = require_proven(any_single_rounding(op))
        rows = 256 * found.weights.astype("<i2").reshape(-1, 3, 3)
        pairs = np.concatenate([rows[:, :2].transpose(0, 2, 1).reshape(-1, 6), rows[:, 2, [0, 1, 1, 2]]], axis=1)
        line = found.channels()
        words = [
            np.ascontiguousarray(pairs).view("<i4"),
            *(line[name][:, None] for name in require_proven(line.dtype.names)),
        ]
        channels = np.concatenate(words, axis=1).astype("<i4")
        return (Constant("channels", channels[quads_of(len(channels))].reshape(-1), "int32_t"),)

    def scratch(self, op: Op, context: Context) -> int:
        g = geometry(op)
        columns = (g.out_w - 1) * g.stride_w + 3
        return (columns + 1) // 2 * _RECORD_BYTES + (g.in_w * g.in_c if g.pads_rows else 0)

    def path(self, op: Op, by_row: bool, context: Context) -> str:
        own_shifts = " own_shifts" if form_of(op) == "own_shifts" else ""
        return f"stride {geometry(op).stride_w}{own_shifts}"

    def counts(self, op: Op, by_row: bool) -> Counts:
        g, layer = geometry(op), depthwise_counts(op, by_row)
        quads, columns = layer["fours"], (g.out_w - 1) * g.stride_w + 3
        columns_of_image = min(max(columns - g.pad_left, 0), g.in_w)
        odd = g.out_w % 2 if g.stride_w == 1 else 0
        names = ("calls", "fours", "border_taps", "clamped_outputs", "narrowed_outputs")
        return {
            **{name: layer[name] for name in names},
            "records": quads * ((columns_of_image + g.pad_left % 2 + 1) // 2),
            "steps": quads * (g.out_w // (2 if g.stride_w == 1 else 1)),
            "odd_steps": quads * odd,
        }

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        arguments = ("&p", site.input(0).pointer, site.output_row, site.output.pointer, site.constant("channels"))
        return params.conv_params(op, site), Call(self.name, (*arguments, site.scratch, form_argument(op)))
