"""RING_ROWS: copies rows of a ring. Only tinyfuse/slide makes it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tinyfuse.ir import Array, Op, all_given
from tinyfuse.ops.core.family import OpFamily


@dataclass(frozen=True)
class RingRows:
    """Attributes of RING_ROWS. first: index of the first row that is copied; the ring's oldest row is 0. If the rows
    lie in several places, `left` of them are in the first place, `pushed` in each of the others, and `between` rows
    that are not copied lie between two places; otherwise `left` is 0."""

    first: int
    left: int = 0
    pushed: int = 0
    between: int = 0

    def rows(self, count: int) -> list[int]:
        """Rows of the ring that are the first `count` rows of the output."""
        if not self.left:
            return list(range(self.first, self.first + count))
        ahead = (max(0, -(-(row + 1 - self.left) // self.pushed)) for row in range(count))
        return [self.first + row + places * self.between for row, places in enumerate(ahead)]


class RingRowsFamily(OpFamily):
    """RING_ROWS. Inputs: the cursor of a ring, and the ring [1, H, W, C]; output [1, n, W, C]: a copy of n of its rows,
    in order.

    The reference expects a ring's rows in order, as the reference of RING_PUSH keeps them.
    """

    kind = "RING_ROWS"
    summary = "a copy of some rows of a ring"
    in_files = False
    reads = (0, 1)

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        _, ring = all_given(inputs)
        return (np.ascontiguousarray(ring[:, op.attributes_as(RingRows).rows(op.output.shape[1])]),)
