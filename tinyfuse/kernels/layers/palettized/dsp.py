"""Our kernels of layers whose weights have few values (`--weights compressed`): in flash are indexes, which each call
looks up in scratch, some channels at a time (runtime_c/tinyfuse_lookup.h), to go on as the kernel of packed weights
does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tinyfuse.ir import Array, Op
from tinyfuse.kernels.core.kernel import AccessOrder, CallSite, Constant, Context, Kernel, require_proven
from tinyfuse.kernels.core.statements import Call, Expr, Let, Statement
from tinyfuse.kernels.counts.common import Counts
from tinyfuse.kernels.counts.layers import palettized_counts
from tinyfuse.kernels.layers.common.batches import scale_constants
from tinyfuse.kernels.layers.common.params import conv_params, output_fields
from tinyfuse.kernels.layers.common.pixels import pointwise_input
from tinyfuse.kernels.layers.int8_dsp.conv import PackedConvRow, Pointwise
from tinyfuse.kernels.layers.int8_dsp.dense import Dense
from tinyfuse.kernels.layers.int8_dsp.lanes import (
    BYTES_SINGLE_ROUNDING,
    LANES,
    SINGLE_ROUNDING,
    Matmul,
    column_bytes,
    dense_layer,
    in_columns,
    matmul_depth,
    matmul_layer,
    weights_in_lanes,
)
from tinyfuse.kernels.layers.palettized.palette import UNIT, Lookup, compressed
from tinyfuse.kernels.requantize.single_rounding import single_rounding
from tinyfuse.kernels.requantize.two_roundings import bounded, has_one_scale
from tinyfuse.ops.core.convolution import geometry
from tinyfuse.targets import Target

#: bytes of weights that are looked up together, at most; and two, with Helium four, channels at least
STRIP_BYTES = 6144

#: forms whose weights share lanes
_IN_LANES = (LANES, SINGLE_ROUNDING)

#: bytes of flash that a layer must spare: the code that looks up takes as many
_LEAST_SPARED = 64


@dataclass(frozen=True, eq=False)
class CompressedLayer(Matmul):
    """A layer in a form of runtime_c/tinyfuse_matmul.h. weights: int8 [out_c, depth], not in lanes; lookup: the same as
    indexes, of a group a channel; channels: for weights in the form."""

    lookup: Lookup


@lru_cache(maxsize=1024)
def compressed_layer(op: Op, target: Target, dense: bool) -> CompressedLayer | None:
    """The layer that the kernel of packed weights computes, `dense` or a convolution; None where there is none, or
    a channel, and the layer, has too many values, or flash is not spared."""
    found = (dense_layer if dense else matmul_layer)(op, Context(target))
    if found is None or op.operand(1).dtype != "int8":
        return None
    on_single_rounding = found.form in (SINGLE_ROUNDING, BYTES_SINGLE_ROUNDING)
    plain = require_proven(single_rounding(op)).weights if on_single_rounding else require_proven(bounded(op)).weights
    plain = in_columns(op, plain) if target.dsp and not dense else plain
    depth = matmul_depth(op)
    weights = _filled(plain, depth)
    lookup = compressed(weights, UNIT)
    if lookup is None or not spares_flash(weights.size, lookup):
        return None
    channels = found.channels
    if found.form in _IN_LANES:
        # the constant of a lane is part of the bias, with zeros after the last weight
        zeros = np.pad(plain, ((0, 0), (0, depth - plain.shape[1])))
        (lanes, filled), (_, padded) = weights_in_lanes(weights), weights_in_lanes(zeros)
        if lanes is None:
            return None
        channels = channels.copy()
        channels["bias"] = (channels["bias"].astype(np.int64) + filled - padded).astype(np.int32)
    return CompressedLayer(found.form, lambda: (weights, channels), lookup)


def _filled(weights: Array, depth: int) -> Array:
    """[out_c, depth]: after each channel's weights, which inputs of zero are multiplied by, one that it has."""
    nearest = np.abs(weights.astype(np.int64)).argmin(axis=1)
    least = np.take_along_axis(weights, nearest[:, None], axis=1)
    return np.concatenate([weights, np.repeat(least, depth - weights.shape[1], axis=1)], axis=1)


def spares_flash(packed_bytes: int, lookup: Lookup) -> bool:
    """Whether indexes and tables are worth it, in the place of so many bytes of weights."""
    return packed_bytes - lookup.nbytes >= _LEAST_SPARED


def strip_of(out_c: int, depth: int, step: int) -> int:
    """Channels that are looked up together: a multiple of `step`, or all."""
    strip = max(step, STRIP_BYTES // depth // step * step)
    return out_c if strip >= out_c else strip


class Compressed(Kernel):
    """What a kernel becomes whose weights are compressed: `costs_as` is that kernel."""

    weights = "compressed"
    costs_with = "tinyfuse_look_up"

    def wanted(self, context: Context) -> bool:
        return context.weights == "compressed"

    def declared(self, site: CallSite, lookup: Lookup, lanes: bool, strip: int) -> Let:
        return lookup.declared(site.constant("weights"), site.constant("tables"), lanes, strip)


class _CompressedMatmul(Compressed):
    """What has strips of channels, of tinyfuse_matmul.h."""

    def layer(self, op: Op, context: Context) -> CompressedLayer | None:
        return compressed_layer(op, context.target, dense=False) if self.wanted(context) else None

    def form(self, op: Op, context: Context) -> str:
        return require_proven(self.layer(op, context)).form

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        layer = require_proven(self.layer(op, context))
        return *layer.lookup.constants, layer.constant

    def _strip(self, op: Op) -> int:
        return strip_of(op.output.shape[3], matmul_depth(op), 2)

    def _strip_bytes(self, op: Op) -> int:
        strip = self._strip(op)
        return strip * matmul_depth(op) + (3 * strip if strip < op.output.shape[3] else 0)

    def _weights(self, op: Op, site: CallSite, context: Context) -> Let:
        layer = require_proven(self.layer(op, context))
        return self.declared(site, layer.lookup, layer.form in _IN_LANES, self._strip(op))

    def counts(self, op: Op, by_row: bool) -> Counts:
        return palettized_counts(super().counts(op, by_row), op, by_row, self._strip(op), rows=self.rows_a_call)


class CompressedConvRow(_CompressedMatmul, PackedConvRow):
    """Convolution of one group by im2col and tinyfuse_matmul.h.

    A call for row y reads only the input rows of y's own window (from RowWindow.first(y) on), and
    writes only its output row, which must not overlap them.
    """

    indivisible = True
    name = "tinyfuse_conv_lut_row_s8"
    costs_as = PackedConvRow.name
    own = False
    headers = ("tinyfuse_conv_lut.h",)

    def row_access_orders(self, op: Op) -> Mapping[int, AccessOrder]:
        return super().row_access_orders(op) if self._strip(op) == op.output.shape[3] else {}

    def scratch(self, op: Op, context: Context) -> int:
        return super().scratch(op, context) + self._strip_bytes(op)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        rows = (site.output.pointer, site.output.next_row)[: self.rows_a_call]
        arguments: tuple[Expr, ...] = (
            "&p", site.input(0).pointer, site.output_row, *rows, "&w", site.constant("channels"), site.scratch,
            self.block(op, context), self.form(op, context),
        )  # fmt: skip
        return self._weights(op, site, context), conv_params(op, site), Call(self.name, arguments)


class CompressedConvRows(CompressedConvRow):
    """The same, two rows a call, which share what is looked up.

    A call for row y reads only the input rows of the windows of y and y + 1, and writes only these two rows, which
    must not overlap them.
    """

    name = "tinyfuse_conv_lut_rows_s8"
    rows_a_call = 2

    def accepts(self, op: Op, context: Context) -> bool:
        # rings hold a row more
        wanted = context.optimize != "ram" and op.output.shape[1] > 1 and not op.reads_ring
        return wanted and super().accepts(op, context)


class CompressedPointwise(_CompressedMatmul, Pointwise):
    """1x1 convolution with stride 1 by tinyfuse_matmul.h. A block of pixels is widened into scratch before
    its outputs are written."""

    indivisible = True
    name = "tinyfuse_pointwise_lut_s8"
    costs_as = Pointwise.name
    headers = ("tinyfuse_conv_lut.h",)

    def access_orders(self, op: Op) -> Mapping[int, AccessOrder]:
        return super().access_orders(op) if self._strip(op) == op.output.shape[3] else {}

    def scratch(self, op: Op, context: Context) -> int:
        return super().scratch(op, context) + self._strip_bytes(op)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        g = geometry(op)
        pointer, pixels = pointwise_input(op, site)
        fields = {"in_c": g.in_c, "out_c": g.out_c} | output_fields(op) | {"block": self.block(op, context)}
        arguments = (
            "&p", pointer, pixels, site.output.pointer, "&w", site.constant("channels"), site.scratch,
            self.form(op, context),
        )  # fmt: skip
        return self._weights(op, site, context), Let("tinyfuse_pointwise", "p", fields), Call(self.name, arguments)


class CompressedPointwiseRow(CompressedPointwise):
    """The same for the pixels of a row.

    A call for row y reads only input row y, and writes only its output row.
    """

    by_row, whole, rings = True, False, True


class CompressedDense(Compressed, Dense):
    """A fully connected layer whose weights have no zero point, four outputs at a time, of all batches; requantized in
    the bounded form."""

    indivisible = True
    name = "tinyfuse_dense_lut_s8"
    costs_as = Dense.name
    headers = ("tinyfuse_fully_connected_lut.h",)
    by_row, rings = False, False  # all weights would be looked up for each row

    def accepts(self, op: Op, context: Context) -> bool:
        wanted = self.wanted(context) and not any(op.operand(1).quantization.zero_point)
        return wanted and bounded(op) is not None and compressed_layer(op, context.target, dense=True) is not None

    def access_orders(self, op: Op) -> Mapping[int, AccessOrder]:
        return {}

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        layer = require_proven(compressed_layer(op, context.target, dense=True))
        return *layer.lookup.constants, *scale_constants(layer.channels)

    def scratch(self, op: Op, context: Context) -> int:
        depth = matmul_depth(op)
        return 4 * depth + (column_bytes(context) * depth if op.operand(1).shape[1] % 4 else 0)

    def counts(self, op: Op, by_row: bool) -> Counts:
        return palettized_counts(super().counts(op, by_row), op, by_row, 4)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        layer = require_proven(compressed_layer(op, context.target, dense=True))
        out_c, in_c = op.operand(1).shape
        shared = has_one_scale(layer.channels["multiplier"], layer.channels["shift"])
        fields = {"batches": op.output.elements // out_c, "in_c": in_c, "out_c": out_c, "scale_step": 1 - shared}
        arguments = (
            "&p", site.input(0).pointer, site.output.pointer, "&w", site.constant("biases"), site.constant("scales"),
            layer.form, site.scratch,
        )  # fmt: skip
        return (
            self.declared(site, layer.lookup, layer.form in _IN_LANES, 4),
            Let("tinyfuse_dense", "p", fields | output_fields(op)),
            Call(self.name, arguments),
        )
