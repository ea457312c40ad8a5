"""Helium kernels of int8 layers that compute tiles of two pixels by four channels, and of depthwise convolutions.

Their C is runtime_c/tinyfuse_matmul_2x4_mve.h, tinyfuse_conv_2x4_mve.h and tinyfuse_depthwise_mve.h. They are exact for
every bias and every shift.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tinyfuse.ir import Op
from tinyfuse.ir.fixedpoint import RANGE
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import AccessOrder, CallSite, Constant, Division, Kernel, RowKernel
from tinyfuse.kernels.core.methods import always, of_calls, of_operator
from tinyfuse.kernels.core.rows import piece_pointer, vectors
from tinyfuse.kernels.core.statements import Call, Let, Statement
from tinyfuse.kernels.counts.common import ceil_div
from tinyfuse.kernels.counts.helium_2x4 import (
    conv_2x4_counts,
    dense_one_batch_counts,
    depthwise_by_16_counts,
    tile_2x4_counts,
)
from tinyfuse.kernels.layers.common import params
from tinyfuse.kernels.layers.common.taps import LISTS_OF_TAPS, orders_by_columns, taps_scratch
from tinyfuse.kernels.requantize.half_even import half_even
from tinyfuse.kernels.requantize.layer_facts import layer_facts
from tinyfuse.kernels.requantize.two_roundings import has_one_scale
from tinyfuse.ops.core.convolution import TWO_ROUNDINGS, clamp_range, geometry, is_plain_pointwise, rounds_by
from tinyfuse.ops.weight_sums import channel_weights

#: name of the code that copies a window. Two kernels share it; if a single layer calls it, compilers specialize it
COPIED_WINDOWS = "copied windows"


class MveConvRow(RowKernel):
    """Convolution of int8 without groups, for Helium, by im2col of two pixels."""

    name = "tinyfuse_conv_2x4_mve_row_s8"
    headers = ("tinyfuse_conv_2x4_mve.h",)
    columns = 2
    constants = of_operator(params.matmul_2x4_constants)
    counts = of_calls(conv_2x4_counts)
    calls_too, windows_by = always((COPIED_WINDOWS,)), always(COPIED_WINDOWS)

    def accepts(self, op: Op, context: Context) -> bool:
        return context.target.mve and geometry(op).groups == 1 and _supports_rounding(op, context) and _two_fit(op)

    def row_access_orders(self, op: Op) -> Mapping[int, AccessOrder]:
        return params.orders_by_pixels(op, self.columns)

    def scratch(self, op: Op, context: Context) -> int:
        rows, depth = op.operand(1).shape[1], int(channel_weights(op).shape[1])
        return rows * params.POINTER_BYTES + 2 * depth

    def path(self, op: Op, by_row: bool, context: Context) -> str:
        return _path(_form(op))

    def copy_of_code(self, op: Op, context: Context) -> str:
        return f"{self.name} {self.path(op, True, context)}"

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        return params.conv_row_call(self, op, site, site.scratch, _form(op))


class MvePointwise(Kernel):
    """1x1 convolution of int8 with stride 1, for Helium, two pixels times four channels at a time."""

    name = "tinyfuse_pointwise_2x4_mve_s8"
    headers = ("tinyfuse_matmul_2x4_mve.h",)
    by_row, rings = True, True
    constants = of_operator(params.matmul_2x4_constants)
    counts = of_calls(tile_2x4_counts)
    division = of_calls(params.divide_by_pixels, 2)
    access_orders = of_operator(params.orders_by_two_pixels)

    def accepts(self, op: Op, context: Context) -> bool:
        return context.target.mve and is_plain_pointwise(op) and _supports_rounding(op, context) and _two_fit(op)

    def path(self, op: Op, by_row: bool, context: Context) -> str:
        return _path(_form(op))

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        g = geometry(op)
        fields = {"depth": g.in_c, "out_c": g.out_c} | params.output_fields(op)
        return params.pointwise_call(self, op, site, "tinyfuse_matmul_2x4_mve", fields, _form(op))


#: the fewest pixels for which a copy of two of them is a small part of the input
_MANY_PIXELS = 8


class MveBufferedPointwise(MvePointwise):
    """1x1 convolution of a whole int8 image, for Helium, that copies two pixels to scratch before it writes their
    outputs.

    Outputs may then overwrite inputs that were just read. The copy does not pay where a pixel's outputs are fewer than
    its inputs, nor where speed alone counts.
    """

    name = "tinyfuse_pointwise_2x4_buffered_mve_s8"
    costs_as = MvePointwise.name
    by_row = False

    def accepts(self, op: Op, context: Context) -> bool:
        out_c, in_c = op.operand(1).shape[::3]
        many = op.input.elements >= _MANY_PIXELS * in_c
        return many and out_c >= in_c and not context.speed_alone and super().accepts(op, context)

    def access_orders(self, op: Op) -> Mapping[int, AccessOrder]:
        return {0: replace(super().access_orders(op)[0], buffered=True)}

    def scratch(self, op: Op, context: Context) -> int:
        in_c: int = op.operand(1).shape[3]
        return 2 * in_c

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        fields, call = super().call(op, site, context)
        assert isinstance(call, Call)
        *args, form = call.args
        return fields, Call(self.name, (*args, site.scratch, form))


def _is_dense(op: Op, context: Context) -> bool:
    """Return whether Helium's fully connected kernels compute a layer: its weights have no zero point."""
    no_zero_point = not any(op.operand(1).quantization.zero_point)
    return context.target.mve and no_zero_point and _supports_rounding(op, context) and _two_fit(op)


def _leaves_outputs(op: Op, context: Context) -> bool:
    """Return whether a layer of one batch has outputs after its last group of four. `MveDenseOneVector` is for
    these."""
    out_c = op.output.shape[-1]
    of_one = out_c % 4 > 0 and op.output.elements == out_c
    by_shifts = rounds_by(op, TWO_ROUNDINGS)
    return of_one and by_shifts and not context.divided and not _one_scale_pays(op, context)


class MveDense(MvePointwise):
    """Fully connected layer of int8 whose weights have no zero point, for Helium, computed as a pointwise convolution
    of batches."""

    def accepts(self, op: Op, context: Context) -> bool:
        return _is_dense(op, context) and not _leaves_outputs(op, context)

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return params.matmul_2x4_constants(op, _one_scale_pays(op, context))

    def path(self, op: Op, by_row: bool, context: Context) -> str:
        return _path(_dense_form(op, context))

    def code_path(self, op: Op, by_row: bool, context: Context) -> str:
        one = op.output.elements == op.output.shape[-1]
        return self.path(op, by_row, context) + " of one vector" * one

    def division(self, op: Op, by_row: bool, context: Context) -> Division | None:
        return None if _one_scale_pays(op, context) else params.divide_by_channels(op, by_row, 4)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        out_c, depth = op.operand(1).shape
        fields = {"depth": depth, "out_c": site.piece.count if site.piece else out_c} | params.output_fields(op)
        args = (
            "&p", *vectors(op, site), piece_pointer(site.output.pointer, site),
            piece_pointer(site.constant("weights"), site, depth), piece_pointer(site.constant("channels"), site, 3),
            _dense_form(op, context),
        )  # fmt: skip
        return Let("tinyfuse_matmul_2x4_mve", "p", fields), Call(self.name, args)


class MveDenseOneVector(MveDense):
    """Fully connected layer of int8 with one batch, for Helium. It computes four outputs at a time, then the last ones
    one by one."""

    name = "tinyfuse_dense_one_vector_mve_s8"
    counts = of_calls(dense_one_batch_counts)
    indivisible = True

    def accepts(self, op: Op, context: Context) -> bool:
        return _is_dense(op, context) and _leaves_outputs(op, context)

    def path(self, op: Op, by_row: bool, context: Context) -> str:
        return "shifted" if layer_facts(op).shifts_left else ""

    def code_path(self, op: Op, by_row: bool, context: Context) -> str:
        return self.path(op, by_row, context)

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        weights, whole = channel_weights(op), op.output.shape[-1] // 4 * 4
        parts, channels = [weights[whole:].reshape(-1)], params.channels4(op, np.arange(whole).reshape(-1, 4)).data
        if whole:
            grouped = params.grouped_by_four(weights[:whole])
            # the C reads sixteen bytes after the groups of four
            parts = [grouped, *parts, np.zeros(max(0, 16 - parts[0].size), np.int8)]
        rest = layer_facts(op).channels[whole:]
        return (
            Constant("weights", np.concatenate(parts), "int8_t"),
            Constant("channels", np.concatenate([channels, rest.reshape(-1)]), "int32_t"),
        )

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        out_c, depth = op.operand(1).shape
        pointer, _ = vectors(op, site)
        fields = {"depth": depth, "out_c": out_c} | params.output_fields(op)
        args = (
            "&p",
            pointer,
            site.output.pointer,
            site.constant("weights"),
            site.constant("channels"),
            single_form(op),
        )
        return Let("tinyfuse_matmul_2x4_mve", "p", fields), Call(self.name, args)


class MveDepthwiseRow(RowKernel):
    """Depthwise convolution of int8 with depth multiplier 1, for Helium, sixteen channels at a time."""

    name = "tinyfuse_depthwise_mve_row_s8"
    headers = ("tinyfuse_depthwise_mve.h",)
    columns = 1
    access_orders = of_operator(orders_by_columns)
    scratch = of_operator(taps_scratch)
    counts = of_calls(depthwise_by_16_counts)
    calls_too = always((LISTS_OF_TAPS,))
    windows_by = always(LISTS_OF_TAPS)

    def accepts(self, op: Op, context: Context) -> bool:
        g = geometry(op)
        small_weights = op.operand(1).values.min() > -128
        return context.target.mve and g.in_c == g.out_c and small_weights and _supports_rounding(op, context)

    def row_access_orders(self, op: Op) -> Mapping[int, AccessOrder]:
        return self.access_orders(op) or params.orders_by_pixels(op)

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        weights = channel_weights(op)
        channels, taps = weights.shape
        padded = np.pad(weights, ((0, -channels % 16), (0, taps % 2)))
        parts, order = [], []
        for first in range(0, channels, 16):
            width = 16 if channels - first > 8 else 8
            parts.append(padded[first : first + width].T.reshape(-1))
            remainders = (0, 2, 1, 3) if width == 16 else (0, 1)
            order += [range(first + r, first + width, len(remainders)) for r in remainders]
        return (
            Constant("weights", np.ascontiguousarray(np.concatenate(parts)), "int8_t"),
            params.channels4(op, [list(four) for four in order]),
        )

    def path(self, op: Op, by_row: bool, context: Context) -> str:
        return "shifted" if layer_facts(op).shifts_left else ""

    def copy_of_code(self, op: Op, context: Context) -> str:
        return f"{self.name} {self.path(op, True, context)}"

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        return params.conv_row_call(self, op, site, site.scratch, single_form(op))


def _supports_rounding(op: Op, context: Context) -> bool:
    """Tell whether the C rounds as the layer requires: twice, or half to even if the core has float32 vectors."""
    if rounds_by(op, TWO_ROUNDINGS):
        return layer_facts(op).biases_fit
    return context.target.fpu and half_even(op, 1) is not None


def _form(op: Op) -> str:
    """Return the C's argument `form` for a layer whose channels have a scale each."""
    if not rounds_by(op, TWO_ROUNDINGS):
        saturated = clamp_range(op) == RANGE["int8"]
        return "TINYFUSE_MVE_HALF_EVEN_SATURATED" if saturated else "TINYFUSE_MVE_HALF_EVEN"
    if layer_facts(op).shifts_left:
        return "TINYFUSE_MVE_SHIFTED"
    return "TINYFUSE_MVE_RECTIFIED" if params.rectified(op) else "TINYFUSE_MVE_EACH"


def single_form(op: Op) -> str:
    """Return the C's argument `form` for C that has no separate forms for a clamp to the whole int8 range."""
    return _form(op).replace("RECTIFIED", "EACH").removesuffix("_SATURATED")


def _dense_form(op: Op, context: Context) -> str:
    """Return the C's argument `form` for a fully connected layer."""
    if not _one_scale_pays(op, context):
        return _form(op)
    return "TINYFUSE_MVE_ONE_SCALE" if rounds_by(op, TWO_ROUNDINGS) else "TINYFUSE_MVE_ONE_SCALE_HALF_EVEN"


def _path(form: str) -> str:
    """Return the cost path of a form."""
    name = form.removeprefix("TINYFUSE_MVE_").lower()
    return (name if name.startswith("half_even") else name.removesuffix("_half_even")).replace("_", " ")


def _two_fit(op: Op) -> bool:
    """Return whether 16 bits hold the offsets of two pixels' output channels."""
    return bool(op.output.shape[-1] <= 2**16 - 4)


def _one_scale_pays(op: Op, context: Context) -> bool:
    """Return whether a fully connected layer of one vector stores one scale for all outputs.

    That saves 8 bytes per output, and its code takes about 700 bytes, so it pays from 64 outputs on. It needs
    an even number of groups of four outputs, and calls that are not divided into pieces.
    """
    out_c = op.output.shape[-1]
    one_vector = op.output.elements == out_c
    pays = one_vector and out_c >= 64 and ceil_div(out_c, 4) % 2 == 0 and not context.divided
    facts = layer_facts(op)
    return pays and has_one_scale(facts.multipliers, facts.shifts) and not facts.shifts_left
