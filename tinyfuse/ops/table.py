"""TABLE: an operator of ours, any function of one stored int8 value, by its 256 results."""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import Array, Op
from tinyfuse.ops.unary import UnaryOperator


class TableOperator(UnaryOperator):
    """Input 1, int8 [256], holds the results of -128, -127, ... in order."""

    kind = "TABLE"
    summary = "a function of one stored value, given by its results"
    in_files = False

    def function(self, op: Op, values: Array) -> Array:
        results: Array = op.operand(1).values[values.astype(np.int64) + 128]
        return results
