"""Depthwise convolutions with palettized weights (`--weights compressed`).

Every call expands all weights in scratch (runtime_c/tinyfuse_palette.h) and then runs a kernel of packed weights. A
table serves the channels that are packed together, or all channels.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from tinyfuse.ir import Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite, Constant, Kernel, require_proven
from tinyfuse.kernels.core.statements import Call, Statement
from tinyfuse.kernels.core.wrapper import Wrapper
from tinyfuse.kernels.counts.common import Counts
from tinyfuse.kernels.counts.depthwise import palettized_depthwise_counts
from tinyfuse.kernels.layers.common.params import conv_params
from tinyfuse.kernels.layers.int8_dsp.depthwise import Depthwise3x3Row, PackedDepthwiseRow, form_argument
from tinyfuse.kernels.layers.int8_helium.conv_2x4 import MveDepthwiseRow, single_form
from tinyfuse.kernels.layers.palettized.dsp import PalettizedKernel, saves_flash
from tinyfuse.kernels.layers.palettized.palette import UNIT, VECTOR, Palettized, palettize
from tinyfuse.ops.core.convolution import geometry
from tinyfuse.targets import Target


class PalettizedDepthwise(PalettizedKernel, Wrapper):
    """Wrapper of `kernel`, a depthwise convolution, for palettized weights in groups of `channels` channels.

    A call for row y reads only the input rows of y's own window (from RowWindow.first(y) on), and
    writes only its output row.
    """

    columns = 0  # each part of a row would expand all weights

    def __init__(self, kernel: Kernel, channels: int):
        name = kernel.name.replace("_row_s8", "_palettized_row_s8")
        headers = tuple(header.removesuffix(".h") + "_palettized.h" for header in kernel.headers)
        super().__init__(kernel, name=name, costs_as=kernel.name, headers=headers)
        self.channels = channels

    def accepts(self, op: Op, context: Context) -> bool:
        fits = self.wanted(context) and op.operand(1).dtype == "int8" and self.kernel.accepts(op, context)
        return fits and self._palettized(op, context) is not None

    def _palettized(self, op: Op, context: Context) -> Palettized | None:
        return _palettize_kernel(self.kernel, op, context.target, self._groups(op), self._group_bytes(op))

    def _groups(self, op: Op) -> int:
        return -(-op.output.shape[3] // self.channels)

    def _group_bytes(self, op: Op) -> int:
        g = geometry(op)
        taps = g.kernel_h * g.kernel_w
        return self.channels * (taps if isinstance(self.kernel, Depthwise3x3Row) else taps + taps % 2)

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return *require_proven(self._palettized(op, context)).constants, *self.kernel.constants(op, context)[1:]

    def scratch(self, op: Op, context: Context) -> int:
        expanded = -(-self._groups(op) * self._group_bytes(op) // 16) * 16
        return expanded + self.kernel.scratch(op, context)

    def counts(self, op: Op, by_row: bool) -> Counts:
        step = VECTOR if self.channels == VECTOR else 4
        plain = self.kernel.counts(op, by_row)
        return palettized_depthwise_counts(plain, op, by_row, self._groups(op), self._group_bytes(op), step)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        arguments = (
            "&p", site.input(0).pointer, site.output_row, site.output.pointer, "&w", site.constant("channels"),
            site.scratch, self._groups(op), single_form(op) if self.channels == VECTOR else form_argument(op),
        )  # fmt: skip
        weights = self.declared(site, require_proven(self._palettized(op, context)), False, self.channels)
        return weights, conv_params(op, site), Call(self.name, arguments)


@lru_cache(maxsize=512)
def _palettize_kernel(kernel: Kernel, op: Op, target: Target, groups: int, group_bytes: int) -> Palettized | None:
    """Return the kernel's weights as indexes; None where they have too many values or no flash is saved."""
    weights = kernel.constants(op, Context(target))[0].data
    filled = np.pad(weights, (0, groups * group_bytes - weights.size), mode="edge").reshape(groups, group_bytes)
    palettized = palettize(filled, VECTOR if isinstance(kernel, MveDepthwiseRow) else UNIT)
    return palettized if palettized is not None and saves_flash(weights.size, palettized) else None


#: kernels in order of preference
PALETTIZED_DEPTHWISE: tuple[Kernel, ...] = (
    PalettizedDepthwise(MveDepthwiseRow(), VECTOR),
    PalettizedDepthwise(Depthwise3x3Row(), 4),
    PalettizedDepthwise(PackedDepthwiseRow(), 4),
)
