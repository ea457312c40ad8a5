"""Means, sums and average pools over all rows: a sum that moves with the window.

before   %m[1,1,1,C] = MEAN(%x[1,H,W,C])
after    %s = MOVE_SUM(%before, new rows of %x, rows of %x that leave the window), which is kept for later steps
         %t = MOVE_SUM(%s, rows of %x that see padding);  %m = MEAN_OF_SUM(%t)

Sums of integers are exact, so that rows may be added and taken off in any order; those of floats are not. The clean
rows that leave are still in the ring that keeps the tensor's rows. A step of one phase of several (ring.py) goes on
from the sum of its own phase: the sums lie in a ring too, the oldest of which is the one.
"""

from __future__ import annotations

from tinyfuse.ir import ITEM_BYTES, Op, Tensor
from tinyfuse.ops import FAMILIES
from tinyfuse.slide.ring import Ring


def sums_rows(op: Op) -> bool:
    """Whether an operator adds up all rows of its only input that is computed."""
    return FAMILIES[op.kind].of_sums(op, op.output, op.output) is not None if op.outputs else False


def sum_bytes(op: Op, ring: Ring) -> int:
    """What keeping an operator's sums takes, beside the ring of the rows that it adds up."""
    return ITEM_BYTES["int32"] * op.output.elements * ring.phases


def sums_of(op: Op, name: str, rows: int = 1) -> Tensor:
    """A tensor for an operator's sums, or for so many of them."""
    return Tensor(f"{op.output.name} ({name})", (1, rows, 1, op.output.elements), "int32")
