"""AWAIT_WINDOW and AWAIT_ROWS: operators of ours, made by tinyfuse/slide alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyfuse.ir import Array, Op, given
from tinyfuse.ops.core.family import OpFamily


class AwaitWindowFamily(OpFamily):
    """AWAIT_WINDOW. Input: a state, int32 [1]: the number of steps up to and including the first one with a result.
    Operators before this one run in every step, operators after it only in the steps that have a result."""

    kind = "AWAIT_WINDOW"
    summary = "ends the run until a window is full"
    in_files = False
    updates = (0,)

    def awaits(self, op: Op) -> bool:
        return True

    def ends_run(self, op: Op, results: Sequence[Array]) -> bool:
        return int(results[0][0]) > 0

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        return (np.maximum(given(inputs[0]) - 1, 0).astype(np.int32),)


class AwaitRowsFamily(OpFamily):
    """AWAIT_ROWS. Input: a state, int32 [1]: the number of rows of a step's frames that are still missing, this run's
    row included. Operators before this one run for each row, operators after it only for a step's last row."""

    kind = "AWAIT_ROWS"
    summary = "ends the run until the rows of a step are there"
    in_files = False
    updates = (0,)
    divides = True

    def awaits(self, op: Op) -> bool:
        return True

    def ends_run(self, op: Op, results: Sequence[Array]) -> bool:
        return int(results[0][0]) < int(op.input.initial_values[0])

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        left = given(inputs[0]) - 1
        return (np.where(left > 0, left, op.input.initial_values).astype(np.int32),)
