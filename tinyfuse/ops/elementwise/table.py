"""TABLE and CHANNEL_TABLES: operators of ours, made by rewrite/tabulate.py alone.

What operators compute of one int8 value has 256 results, which their references give when the model is compiled.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tinyfuse.ir import Array, Op, given
from tinyfuse.ops.core.family import SAME_ROW, OpFamily, RowWindow
from tinyfuse.ops.core.permute import Order

#: all int8 values in the order of a table's entries: an entry's index is the value's byte, read as uint8
TABLE_VALUES = np.arange(256, dtype=np.uint8).view(np.int8)
TABLE_VALUES.setflags(write=False)

#: the most bytes of flash that an operator's tables, one per channel, may take
MOST_CHANNEL_BYTES = 1 << 14


@dataclass(frozen=True)
class Table:
    """Attributes of TABLE: the kinds of the operators that the table replaces, in their order."""

    kinds: tuple[str, ...]


class TableFamily(OpFamily):
    """Family of table lookups. Input 0: int8; input 1: a constant [256] of the output's dtype, the results for
    TABLE_VALUES in order; output: int8 or int16, of input 0's shape."""

    kind = "TABLE"
    elementwise = True
    summary = "a function of one int8 value, as the table of its results"
    in_files = False

    def function(self, op: Op, values: Array) -> Array:
        """Return the results for stored int8 values."""
        return np.asarray(op.operand(1).values[values.view(np.uint8)])

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        return (self.function(op, given(inputs[0])),)

    def row_window(self, op: Op, index: int) -> RowWindow | None:
        return SAME_ROW if op.output.is_image else None

    def permuted(self, op: Op, order: Order) -> Op | None:
        return op


class ChannelTablesFamily(OpFamily):
    """CHANNEL_TABLES: int8 [..., C] -> int8 or int16 of the same shape. Input 1 is a constant [C, 256] of the output's
    dtype: the results for TABLE_VALUES, for each channel."""

    kind = "CHANNEL_TABLES"
    channel_constant = 1
    summary = "a function of one int8 value per channel, as tables of its results"
    in_files = False

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        tables = op.operand(1).values
        return (np.asarray(tables[np.arange(len(tables)), given(inputs[0]).view(np.uint8)]),)

    def row_window(self, op: Op, index: int) -> RowWindow | None:
        return SAME_ROW if op.output.is_image else None
