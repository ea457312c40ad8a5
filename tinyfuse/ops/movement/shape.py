"""SHAPE: the dimensions of its input. They are known when the model is compiled."""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import Array, Op
from tinyfuse.ops.core.family import OpFamily, Rule
from tinyfuse.ops.core.movement import ends


class ShapeFamily(OpFamily):
    """SHAPE. It has no kernel: rewrite/fold_constants.py replaces it by a constant."""

    kind = "SHAPE"
    summary = "the dimensions of a tensor, as a constant"
    folded = True
    reads_values = False
    rules = (
        ends(1),
        Rule(
            "the output is int32 and has one element per dimension of the input",
            lambda op: op.output if (op.output.dtype, op.output.shape) != ("int32", (len(op.input.shape),)) else None,
            "TensorFlow Lite Micro gives no other",
        ),
    )

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        return (np.array(op.input.shape, np.int32),)
