"""Layers with palettized weights (`--weights compressed`): flash holds indexes into tables of values.

Each call expands the weights of some channels into scratch (runtime_c/tinyfuse_palette.h), then computes these channels
as the kernel of packed weights does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tinyfuse.ir import Array, Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import AccessOrder, CallSite, Constant, Kernel, require_proven
from tinyfuse.kernels.core.rows import output_rows
from tinyfuse.kernels.core.statements import Call, Expr, Let, Statement
from tinyfuse.kernels.counts.common import Counts
from tinyfuse.kernels.counts.layers import palettized_counts
from tinyfuse.kernels.layers.common.params import conv_params, output_fields, pointwise_input, scale_constants
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
from tinyfuse.kernels.layers.palettized.palette import Palettized, palettize
from tinyfuse.kernels.requantize.single_rounding import single_rounding
from tinyfuse.kernels.requantize.two_roundings import bounded, has_one_scale
from tinyfuse.ops.core.convolution import geometry
from tinyfuse.targets import Target

#: the most bytes of weights that are expanded together, unless two channels have more
STRIP_BYTES = 6144

#: forms with two weights to a lane
_IN_LANES = (LANES, SINGLE_ROUNDING)

#: the fewest bytes of flash that a layer must save, as many as the code that expands takes
_LEAST_BYTES_SAVED = 64


@dataclass(frozen=True, eq=False)
class PalettizedLayer(Matmul):
    """Layer of int8 in a form of runtime_c/tinyfuse_matmul.h, with palettized weights.

    weights     int8 [out_c, depth], one to a byte even where the form has them in lanes
    palettized  the weights as indexes, a group per output channel
    channels    as in `Matmul`
    """

    palettized: Palettized


@lru_cache(maxsize=1024)
def palettized_layer(op: Op, target: Target, dense: bool) -> PalettizedLayer | None:
    """Return a layer, fully connected if `dense`, else a convolution, with palettized weights.

    None where the kernel of packed weights has no form for it, where weights have too many values for a table per
    channel and for one table, or where no flash is saved.
    """
    found = (dense_layer if dense else matmul_layer)(op, Context(target))
    if found is None or op.operand(1).dtype != "int8":
        return None
    on_single_rounding = found.form in (SINGLE_ROUNDING, BYTES_SINGLE_ROUNDING)
    plain = require_proven(single_rounding(op)).weights if on_single_rounding else require_proven(bounded(op)).weights
    plain = in_columns(op, plain) if target.dsp and not dense else plain
    depth = matmul_depth(op)
    weights = _filled(plain, depth)
    palettized = palettize(weights)
    if palettized is None or not saves_flash(weights.size, palettized):
        return None
    channels = found.channels
    if found.form in _IN_LANES:
        # biases include the correction of `weights_in_lanes` for zero padding: replace it by that for `weights`
        zeros = np.pad(plain, ((0, 0), (0, depth - plain.shape[1])))
        (lanes, filled), (_, padded) = weights_in_lanes(weights), weights_in_lanes(zeros)
        if lanes is None:
            return None
        channels = channels.copy()
        channels["bias"] = (channels["bias"].astype(np.int64) + filled - padded).astype(np.int32)
    return PalettizedLayer(found.form, lambda: (weights, channels), palettized)


def _filled(weights: Array, depth: int) -> Array:
    """Return weights [out_c, terms] padded to [out_c, depth] with each channel's weight nearest to 0.

    Padding multiplies inputs of zero. A repeated weight adds no value to a channel's table.
    """
    nearest = np.abs(weights.astype(np.int64)).argmin(axis=1)
    least = np.take_along_axis(weights, nearest[:, None], axis=1)
    return np.concatenate([weights, np.repeat(least, depth - weights.shape[1], axis=1)], axis=1)


def saves_flash(packed_bytes: int, palettized: Palettized) -> bool:
    """Return whether indexes and tables take at least _LEAST_BYTES_SAVED bytes fewer than `packed_bytes` of weights."""
    return packed_bytes - palettized.nbytes >= _LEAST_BYTES_SAVED


def strip_channels(out_c: int, depth: int) -> int:
    """Return the channels that are expanded together: an even number, or all `out_c`."""
    strip = max(2, STRIP_BYTES // depth // 2 * 2)
    return out_c if strip >= out_c else strip


class PalettizedKernel(Kernel):
    """Base of kernels with palettized weights; `costs_as` names the kernel with packed weights whose costs apply."""

    weights = "compressed"
    costs_with = "tinyfuse_expand_palette"

    def wanted(self, context: Context) -> bool:
        return context.weights == "compressed" and not context.target.mve

    def declared(self, site: CallSite, palettized: Palettized, lanes: bool, strip: int) -> Let:
        return palettized.declared(site.constant("weights"), site.constant("tables"), lanes, strip)


class _PalettizedMatmul(PalettizedKernel):
    """Base of convolutions with palettized weights by runtime_c/tinyfuse_matmul.h, one strip of channels after
    another."""

    def layer(self, op: Op, context: Context) -> PalettizedLayer | None:
        return palettized_layer(op, context.target, dense=False) if self.wanted(context) else None

    def form(self, op: Op, context: Context) -> str:
        return require_proven(self.layer(op, context)).form

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        layer = require_proven(self.layer(op, context))
        return *layer.palettized.constants, layer.constant

    def _strip(self, op: Op) -> int:
        return strip_channels(op.output.shape[3], matmul_depth(op))

    def _strip_bytes(self, op: Op) -> int:
        strip = self._strip(op)
        return strip * matmul_depth(op) + (3 * strip if strip < op.output.shape[3] else 0)

    def _weights(self, op: Op, site: CallSite, context: Context) -> Let:
        layer = require_proven(self.layer(op, context))
        return self.declared(site, layer.palettized, layer.form in _IN_LANES, self._strip(op))

    def counts(self, op: Op, by_row: bool) -> Counts:
        return palettized_counts(super().counts(op, by_row), op, by_row, self._strip(op), rows=self.rows_a_call)


class PalettizedConvRow(_PalettizedMatmul, PackedConvRow):
    """Convolution without groups, with palettized weights, by im2col and tinyfuse_matmul.h.

    A call for row y reads only the input rows of y's own window (from RowWindow.first(y) on), and
    writes only its output row, which must not overlap them.
    """

    indivisible = True
    name = "tinyfuse_conv_palettized_row_s8"
    costs_as = PackedConvRow.name
    own = False
    headers = ("tinyfuse_conv_palettized.h",)

    def row_access_orders(self, op: Op) -> Mapping[int, AccessOrder]:
        return super().row_access_orders(op) if self._strip(op) == op.output.shape[3] else {}

    def scratch(self, op: Op, context: Context) -> int:
        return super().scratch(op, context) + self._strip_bytes(op)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        arguments: tuple[Expr, ...] = (
            "&p", site.input(0).pointer, site.output_row, *output_rows(self, op, site), "&w",
            site.constant("channels"), site.scratch, self.block(op, context), self.form(op, context),
        )  # fmt: skip
        return self._weights(op, site, context), conv_params(op, site), Call(self.name, arguments)


class PalettizedConvRows(PalettizedConvRow):
    """Convolution without groups, with palettized weights; a call computes two output rows, which share the expanded
    weights.

    A call for row y reads only the input rows of the windows of y and y + 1, and writes only these two rows, which must
    not overlap the input rows.
    """

    name = "tinyfuse_conv_palettized_rows_s8"
    rows_a_call = 2

    def accepts(self, op: Op, context: Context) -> bool:
        # two rows a call make rings a row longer
        wanted = context.optimize != "ram" and op.output.shape[1] > 1 and not op.reads_ring
        return wanted and super().accepts(op, context)


class PalettizedPointwise(_PalettizedMatmul, Pointwise):
    """1x1 convolution with stride 1 and palettized weights by runtime_c/tinyfuse_matmul.h.

    A block of pixels is converted to int16 in scratch before its outputs are written.
    """

    indivisible = True
    name = "tinyfuse_pointwise_palettized_s8"
    costs_as = Pointwise.name
    headers = ("tinyfuse_conv_palettized.h",)

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


class PalettizedPointwiseRow(PalettizedPointwise):
    """1x1 convolution with palettized weights; a call computes one output row.

    It reads only the input row of the same number, and writes only its output row.
    """

    by_row, whole, rings = True, False, True


class PalettizedDense(PalettizedKernel, Dense):
    """Fully connected layer with palettized weights that have no zero point.

    Four outputs of all batches are computed at a time, requantized in the bounded form.
    """

    indivisible = True
    name = "tinyfuse_dense_palettized_s8"
    costs_as = Dense.name
    headers = ("tinyfuse_dense_palettized.h",)
    by_row, rings = False, False  # each row would expand all weights

    def accepts(self, op: Op, context: Context) -> bool:
        wanted = self.wanted(context) and not any(op.operand(1).quantization.zero_point)
        return wanted and bounded(op) is not None and palettized_layer(op, context.target, dense=True) is not None

    def access_orders(self, op: Op) -> Mapping[int, AccessOrder]:
        return {}

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        layer = require_proven(palettized_layer(op, context.target, dense=True))
        return *layer.palettized.constants, *scale_constants(layer.channels)

    def scratch(self, op: Op, context: Context) -> int:
        depth = matmul_depth(op)
        return 4 * depth + (column_bytes(context) * depth if op.operand(1).shape[1] % 4 else 0)

    def counts(self, op: Op, by_row: bool) -> Counts:
        return palettized_counts(super().counts(op, by_row), op, by_row, 4)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        layer = require_proven(palettized_layer(op, context.target, dense=True))
        out_c, in_c = op.operand(1).shape
        shared = has_one_scale(layer.channels["multiplier"], layer.channels["shift"])
        fields = {"batches": op.output.elements // out_c, "in_c": in_c, "out_c": out_c, "scale_step": 1 - shared}
        arguments = (
            "&p", site.input(0).pointer, site.output.pointer, "&w", site.constant("biases"), site.constant("scales"),
            layer.form, site.scratch,
        )  # fmt: skip
        return (
            self.declared(site, layer.palettized, layer.form in _IN_LANES, 4),
            Let("tinyfuse_dense", "p", fields | output_fields(op)),
            Call(self.name, arguments),
        )
