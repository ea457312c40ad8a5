"""EMBEDDING_LOOKUP: selects rows of a table by indexes."""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import Array, Op, Tensor, given
from tinyfuse.ops.core.family import OpFamily, Rule
from tinyfuse.ops.core.movement import ends

#: dtypes of the table and of the output
LOOKUPS = (("float32", "float32"), ("int8", "int8"), ("int8", "float32"))


def _bad_scale(op: Op) -> Tensor | None:
    table = op.operand(1)
    if table.dtype == op.output.dtype:
        return None
    quant = table.quant
    return None if quant is not None and not quant.per_channel and quant.zero_point == (0,) else table


def _bad_index(op: Op) -> Tensor | None:
    indexes, rows = op.operand(0), op.operand(1).shape[0]
    inside = not indexes.is_constant or ((indexes.values >= 0) & (indexes.values < rows)).all()
    return None if inside else indexes


class EmbeddingLookupFamily(OpFamily):
    """EMBEDDING_LOOKUP. Inputs: indexes int32 [n], and a table [rows, ..]. From an int8 table to a float32 output, each
    value is multiplied by the table's scale. An index outside the table that is computed at run time ends the run with
    an error."""

    kind = "EMBEDDING_LOOKUP"
    summary = "rows of a table, picked by indexes; int8 ones dequantized where floats are asked for"
    rules = (
        ends(2),
        Rule(
            "the table is float32, as the output is; or int8, and the output int8 or float32",
            lambda op: op.operand(1) if (op.operand(1).dtype, op.output.dtype) not in LOOKUPS else None,
            "TensorFlow Lite Micro has no kernel for others",
        ),
        Rule(
            "the indexes are an int32 vector",
            lambda op: op.input if op.input.dtype != "int32" or len(op.input.shape) != 1 else None,
        ),
        Rule("the table has rank 2 or more", lambda op: op.operand(1) if len(op.operand(1).shape) < 2 else None),
        Rule(
            "the output has an entry per index, of the table's other dimensions",
            lambda op: op.output if op.output.shape != (*op.input.shape, *op.operand(1).shape[1:]) else None,
        ),
        Rule("an int8 table of which floats are asked has one scale, and zero point 0", _bad_scale),
        Rule("constant indexes are inside the table", _bad_index),
    )

    def indexes(self, op: Op, index: int) -> tuple[int, int] | None:
        return (0, op.operand(1).shape[0] - 1) if index == 0 else None

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        rows = given(inputs[1])[given(inputs[0])]
        if rows.dtype == op.output.dtype:
            return (rows,)
        return (rows.astype(np.float32) * np.float32(op.operand(1).scale),)
