"""RING_ROWS: an operator of ours, made by tinyfuse/slide alone."""

from __future__ import annotations

from dataclasses import dataclass

from tinyfuse.ir import Array, Op, all_given
from tinyfuse.ops.base import OpFamily


@dataclass(frozen=True)
class RingRows:
    """first: the ring's oldest row is 0."""

    first: int


class RingRowsOperator(OpFamily):
    """Inputs: the cursor of a ring, the ring [1, H, W, C]; output [1, n, W, C]: a copy of n of its rows, in order.

    The reference finds a ring's rows in order, as RING_PUSH's keeps them.
    """

    kind = "RING_ROWS"
    summary = "a copy of some rows of a ring"
    in_files = False
    reads = (0, 1)

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        _, ring = all_given(inputs)
        first = op.attributes_as(RingRows).first
        return (ring[:, first : first + op.output.shape[1]].copy(),)
