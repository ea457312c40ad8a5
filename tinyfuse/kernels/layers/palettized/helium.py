"""Helium kernels of layers with palettized weights (`--weights compressed`, runtime_c/tinyfuse_conv_palettized_mve.h).

Weights of a strip of output channels are expanded into scratch, sixteen per instruction.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from tinyfuse.ir import Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import AccessOrder, CallSite, Constant, require_proven
from tinyfuse.kernels.core.statements import Call, Let, Statement
from tinyfuse.kernels.counts.common import Counts
from tinyfuse.kernels.counts.layers import palettized_counts
from tinyfuse.kernels.layers.common.params import conv_params, matmul_2x4_constants, output_fields, pointwise_input
from tinyfuse.kernels.layers.int8_helium.conv_2x4 import MveConvRow, MveDense, MvePointwise
from tinyfuse.kernels.layers.palettized.dsp import PalettizedKernel, saves_flash, strip_channels
from tinyfuse.kernels.layers.palettized.palette import VECTOR, Palettized, palettize
from tinyfuse.kernels.requantize.layer_facts import layer_facts
from tinyfuse.ops.weight_sums import channel_weights


@lru_cache(maxsize=1024)
def _palettized(op: Op) -> Palettized | None:
    """Return the weights as indexes, a group per channel; None where they have too many values or no flash is saved."""
    if op.operand(1).dtype != "int8":
        return None
    weights = channel_weights(op)
    palettized = palettize(weights, VECTOR)
    return palettized if palettized is not None and saves_flash(weights.size, palettized) else None


class _PalettizedMve(PalettizedKernel):
    """Base of Helium layers with palettized weights (runtime_c/tinyfuse_matmul_2x4_mve.h)."""

    headers = ("tinyfuse_conv_palettized_mve.h",)

    def accepts(self, op: Op, context: Context) -> bool:
        return (
            self.wanted(context)
            and layer_facts(op).shifts_right
            and super().accepts(op, context)
            and _palettized(op) is not None
        )

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return *require_proven(_palettized(op)).constants, matmul_2x4_constants(op)[1]

    def counts(self, op: Op, by_row: bool) -> Counts:
        return palettized_counts(super().counts(op, by_row), op, by_row, self._strip(op), VECTOR)

    def _strip(self, op: Op) -> int:
        out_c, depth = channel_weights(op).shape
        return strip_channels(out_c, depth, 4)

    def _strip_bytes(self, op: Op) -> int:
        """Return the scratch bytes of a strip: whole groups of four channels, and 16 bytes after them that the C
        reads."""
        return -(-self._strip(op) // 4) * 4 * int(channel_weights(op).shape[1]) + 16

    def _weights(self, op: Op, site: CallSite) -> Let:
        return self.declared(site, require_proven(_palettized(op)), False, self._strip(op))


class PalettizedMveConvRow(_PalettizedMve, MveConvRow):
    """Convolution without groups, with palettized weights, for Helium, by im2col of two pixels.

    A call for row y reads only the input rows of y's own window (from RowWindow.first(y) on), and
    writes only its output row, which must not overlap them.
    """

    indivisible = True
    name = "tinyfuse_conv_palettized_mve_row_s8"
    costs_as = MveConvRow.name

    def row_access_orders(self, op: Op) -> Mapping[int, AccessOrder]:
        return super().row_access_orders(op) if self._strip(op) == op.output.shape[3] else {}

    def scratch(self, op: Op, context: Context) -> int:
        return super().scratch(op, context) + self._strip_bytes(op)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        arguments = (
            "&p", site.input(0).pointer, site.output_row, site.output.pointer, "&w", site.constant("channels"),
            site.scratch,
        )  # fmt: skip
        return self._weights(op, site), conv_params(op, site), Call(self.name, arguments)


class _PalettizedPixels(_PalettizedMve):
    """Palettized layer over pixels or batches that are contiguous in memory, two at a time."""

    name = "tinyfuse_pointwise_palettized_mve_s8"
    costs_as = MvePointwise.name

    def access_orders(self, op: Op) -> Mapping[int, AccessOrder]:
        return super().access_orders(op) if self._strip(op) == op.output.shape[-1] else {}

    def scratch(self, op: Op, context: Context) -> int:
        return self._strip_bytes(op)

    def _call(self, op: Op, site: CallSite, pointer: str, pixels: int) -> tuple[Statement, ...]:
        out_c, depth = channel_weights(op).shape
        arguments = ("&p", pointer, pixels, site.output.pointer, "&w", site.constant("channels"), site.scratch)
        fields = {"depth": depth, "out_c": out_c} | output_fields(op)
        return self._weights(op, site), Let("tinyfuse_matmul_2x4_mve", "p", fields), Call(self.name, arguments)


class PalettizedMvePointwise(_PalettizedPixels, MvePointwise):
    """1x1 convolution with palettized weights and stride 1, for Helium, two pixels at a time.

    A call for row y reads only input row y, and writes only its output row.
    """

    indivisible = True

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        return self._call(op, site, *pointwise_input(op, site))


class PalettizedMveDense(_PalettizedPixels, MveDense):
    """Fully connected layer with palettized weights, for Helium, computed as a pointwise convolution of batches."""

    by_row, rings = False, False  # each row would expand all weights
    indivisible = True

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        return self._call(op, site, site.input(0).pointer, op.output.elements // op.output.shape[-1])
