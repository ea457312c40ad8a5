"""SLICE_AT: a SLICE whose start indexes are computed at run time. Only rewrite/computed_operands.py makes it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tinyfuse.ir import Array, Op, Tensor, all_given
from tinyfuse.ops.core.family import OpFamily


@dataclass(frozen=True)
class SliceAt:
    """Attributes of SLICE_AT: `to_end` tells for each dimension whether the slice goes to its end."""

    to_end: tuple[bool, ...]


def last_begins(data: Tensor, output: Tensor) -> list[int]:
    """Largest index in each dimension at which a slice with the output's shape may begin."""
    return [whole - part for whole, part in zip(data.shape, output.shape, strict=True)]


def first_begins(op: Op) -> list[int]:
    """Smallest index in each dimension at which a SLICE_AT may begin."""
    to_end = op.attributes_as(SliceAt).to_end
    return [last if end else 0 for last, end in zip(last_begins(op.input, op.output), to_end, strict=True)]


class SliceAtFamily(OpFamily):
    """SLICE_AT. Inputs: data, and the start indexes of the slice, int32 or int64 [rank]; the slice has the output's
    shape. A slice that is not inside the data ends the run with an error; TFLM reads whatever is there."""

    kind = "SLICE_AT"
    summary = "a slice that begins where a run says"
    in_files = False

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        data, begins = all_given(inputs)
        ends = begins + np.array(op.output.shape)
        return (np.ascontiguousarray(data[tuple(map(slice, begins.tolist(), ends.tolist()))]),)
