"""WHERE: the indexes of a constant's nonzero elements."""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import Array, Op, Tensor, given
from tinyfuse.ops.core.family import OpFamily, Rule
from tinyfuse.ops.core.movement import ends

_DTYPES = ("bool", "int8", "uint8", "int32", "uint32", "int64", "float32")


def _bad_shape(op: Op) -> Tensor | None:
    shape = (int(np.count_nonzero(op.input.values)), len(op.input.shape))
    return None if (op.output.dtype, op.output.shape) == ("int64", shape) else op.output


class WhereFamily(OpFamily):
    """WHERE of a constant condition: a computed one would make the output's shape depend on the run."""

    kind = "WHERE"
    summary = "the places at which a constant is not zero, as a constant"
    in_tflm = False
    folded = True
    rules = (
        ends(1),
        Rule(
            "the condition is constant",
            lambda op: op.input if not op.input.is_constant else None,
            "how many places there are must be known when the model is compiled; SELECT needs no places",
        ),
        Rule(f"the condition is {', '.join(_DTYPES)}", lambda op: op.input if op.input.dtype not in _DTYPES else None),
        Rule("the output is int64 [places, rank of the condition]", _bad_shape),
    )

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        return (np.ascontiguousarray(np.argwhere(given(inputs[0])), np.int64),)
