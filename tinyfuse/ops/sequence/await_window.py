"""AWAIT_WINDOW and AWAIT_ROWS: operators of ours, made by tinyfuse/slide alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tinyfuse.ir import Array, Op, given
from tinyfuse.ops.core.family import OpFamily


class AwaitWindowFamily(OpFamily):
    """Input: a state, int32 [1]: how many steps are still to come up to the first that has a result, that one counted.
    What stands before this operator runs in every step; it ends those that have none."""

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
    """Input: a state, int32 [1]: how many rows are still to come of a step's frames, that of this run counted; at first
    all of them. What stands before this operator runs for each row, what stands behind it for a step's last one."""

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
