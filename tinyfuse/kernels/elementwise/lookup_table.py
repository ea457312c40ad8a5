"""Kernels of functions of one int8 value (runtime_c/tinyfuse_activation.h).

An int8 activation is a function of 256 values, so its reference gives all its results at compile time. If they are a
clamp of the stored value, no table is needed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tinyfuse.ir import Array, Op
from tinyfuse.kernels.core.c_types import CTYPE, SUFFIX
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.element import Element
from tinyfuse.kernels.core.kernel import CallSite, Constant, Kernel, require_proven
from tinyfuse.kernels.core.rows import input_pointer
from tinyfuse.kernels.core.statements import Call, Statement
from tinyfuse.kernels.counts.common import Counts, count_calls
from tinyfuse.kernels.elementwise.unary import ElementByElement, places
from tinyfuse.ops.elementwise.table import TABLE_VALUES


class _Tabled(ElementByElement):
    """Base of kernels of a function of one stored value. `function(op, values)` is its reference."""

    headers = ("tinyfuse_activation.h",)

    def __init__(self, function: Callable[[Op, Array], Array]):
        self._function = function

    def table(self, op: Op) -> Array:
        """Results for TABLE_VALUES, int8 [256] or int16 [256]."""
        return self._function(op, TABLE_VALUES)


class Clamp(_Tabled):
    """RELU6, and RELU if input and output have the same quantization."""

    name = "tinyfuse_activation_clamp_s8"

    def accepts(self, op: Op, context: Context) -> bool:
        return self._limits(op) is not None

    def _limits(self, op: Op) -> tuple[int, int] | None:
        """Least and largest result if the function is a clamp; otherwise None."""
        if not op.input.dtype == op.output.dtype == "int8":
            return None
        table = self.table(op)
        clamps = np.array_equal(table, np.clip(TABLE_VALUES, table.min(), table.max()))
        return (int(table.min()), int(table.max())) if clamps else None

    def element(self, op: Op) -> Element | None:
        limits = self._limits(op)
        return None if limits is None else Element("clamp", "choices", numbers=limits)

    def parameters(self, op: Op) -> tuple[int, int]:
        return require_proven(self._limits(op))


class Lookup(_Tabled):
    """Kernel of a function of one int8 value, by a table of 256 results of dtype `result`."""

    def __init__(self, function: Callable[[Op, Array], Array], result: str = "int8"):
        super().__init__(function)
        self.result = result
        self.name = f"tinyfuse_activation_lookup_s8{'' if result == 'int8' else '_' + SUFFIX[result]}"

    def accepts(self, op: Op, context: Context) -> bool:
        return op.input.dtype == "int8" and op.output.dtype == self.result

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return (Constant("table", self.table(op), CTYPE[self.result]),)

    def element(self, op: Op) -> Element | None:
        if not op.input.dtype == op.output.dtype == self.result == "int8":
            return None
        return Element("look_up", "lookups", table=self.table(op))

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        return (Call(self.name, (site.constant("table"), *places(op, site))),)


class ChannelLookup(Kernel):
    """Kernel of a function of one int8 value that differs by channel, by a table for each channel."""

    headers = ("tinyfuse_activation.h",)
    by_row, rings = True, True
    in_place = (0,)

    def __init__(self, result: str):
        self.dtype = result
        self.name = f"tinyfuse_channel_lookup_s8{'' if result == 'int8' else '_' + SUFFIX[result]}"

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return (Constant("tables", op.operand(1).values, CTYPE[self.dtype]),)

    def element(self, op: Op) -> Element | None:
        if not op.output.dtype == self.dtype == "int8":
            return None
        return Element("look_up_channel", "channel_lookups", table=op.operand(1).values)

    def counts(self, op: Op, by_row: bool) -> Counts:
        channels = op.output.shape[-1]
        pixels = op.output.elements // channels
        return {
            "calls": count_calls(op, by_row),
            "rows": pixels,
            "words": pixels * (channels // 4),
            "rests": pixels * (channels % 4),
            "row_vectors": pixels * -(-channels // 8),
        }

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        channels = op.output.shape[-1]
        pixels = op.output.elements // (channels if site.row is None else channels * op.output.shape[1])
        args = (site.constant("tables"), input_pointer(site, 0), site.output.pointer, pixels, channels)
        return (Call(self.name, args),)
