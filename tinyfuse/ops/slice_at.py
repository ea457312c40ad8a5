"""SLICE_AT: a SLICE that begins where a run says; an operator of ours, made by rewrite/computed_operands.py alone."""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import Array, Op, Tensor, all_given
from tinyfuse.ops.base import OpFamily


def last_begins(data: Tensor, output: Tensor) -> list[int]:
    """The greatest index of each dimension at which a slice of the output's shape may begin."""
    return [whole - part for whole, part in zip(data.shape, output.shape, strict=True)]


class SliceAtOperator(OpFamily):
    """Inputs: data, and where the slice begins, int32 or int64 [rank]; it has the output's shape. A slice that is not
    inside the data ends the run with an error; TFLM reads what lies there."""

    kind = "SLICE_AT"
    summary = "a slice that begins where a run says"
    in_files = False

    def indexes(self, op: Op, index: int) -> tuple[int, int] | None:
        return (0, min(last_begins(op.input, op.output))) if index == 1 else None

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        data, begins = all_given(inputs)
        ends = begins + np.array(op.output.shape)
        return (np.ascontiguousarray(data[tuple(map(slice, begins.tolist(), ends.tolist()))]),)
