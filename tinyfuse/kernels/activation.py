"""Our kernels of int8 functions of one value (runtime_c/tinyfuse_activation.h).

An int8 activation is a function of 256 values, so its exact reference gives the whole of it at
compile time. Where that function is a clamp of the stored value, nothing else is needed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tinyfuse.ir import Array, Op
from tinyfuse.kernels.base import Call, CallSite, Constant, Context, Kernel, Statement
from tinyfuse.kernels.rows import element_count, input_pointer

#: every stored value, in the order of the table
ALL_VALUES = np.arange(-128, 128, dtype=np.int8)


class _Tabled(Kernel):
    """A function of one stored value: `function(op, values)` is its reference."""

    def __init__(self, function: Callable[[Op, Array], Array]):
        self._function = function

    def accepts(self, op: Op, context: Context) -> bool:
        return op.input.dtype == "int8"

    def table(self, op: Op) -> Array:
        """The result of each stored value, int8[256]."""
        return self._function(op, ALL_VALUES)


class Clamp(_Tabled):
    """RELU6, and RELU where input and output have one quantization."""

    name = "tinyfuse_activation_clamp_s8"
    headers = ("tinyfuse_activation.h",)
    by_row, rings = True, True
    in_place = (0,)

    def accepts(self, op: Op, context: Context) -> bool:
        if not super().accepts(op, context):
            return False
        table = self.table(op)
        return np.array_equal(table, np.clip(ALL_VALUES, table[0], table[-1]))

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        table = self.table(op)
        pointers = (input_pointer(site, 0), site.output.pointer)
        return (Call(self.name, (*pointers, element_count(op.output, site), int(table[0]), int(table[-1]))),)


class Lookup(_Tabled):
    """Any function of one stored value."""

    name = "tinyfuse_activation_lookup_s8"
    headers = ("tinyfuse_activation.h",)
    by_row, rings = True, True
    in_place = (0,)

    def constants(self, op: Op, context: Context) -> tuple[Constant, ...]:
        return (Constant("table", self.table(op), "int8_t"),)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        pointers = (input_pointer(site, 0), site.output.pointer)
        return (Call(self.name, (site.constant("table"), *pointers, element_count(op.output, site))),)
