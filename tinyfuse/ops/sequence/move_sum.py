"""MOVE_SUM: adds rows to sums, or subtracts them. Only tinyfuse/slide makes it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tinyfuse.ir import Array, Op, all_given
from tinyfuse.ops.core.family import OpFamily


@dataclass(frozen=True)
class MoveSum:
    """Attributes of MOVE_SUM: the `added` inputs after the first are added, the others subtracted."""

    added: int


class MoveSumFamily(OpFamily):
    """MOVE_SUM. Inputs: sums, int32 [1, 1, 1, n], then rows, int8 or int16 [1, h, W, C], which are added or subtracted.
    Output: the new sums. Element i of a row belongs to sum i modulo n."""

    kind = "MOVE_SUM"
    summary = "sums of rows, some more of which are added, or taken off"
    in_files = False

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        sums, *rows = all_given(inputs)
        added, total = op.attributes_as(MoveSum).added, sums.astype(np.int64)
        for i, some in enumerate(rows):
            of_some = some.reshape(-1, sums.size).sum(axis=0, dtype=np.int64).reshape(sums.shape)
            total += of_some if i < added else -of_some
        return (total.astype(np.int32),)
