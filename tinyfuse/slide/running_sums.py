"""Keeps means, sums and average pools over all rows as a running sum: rows that enter the window are added, rows that
leave it are subtracted.

before   %m[1,1,1,C] = MEAN(%x[1,H,W,C])
after    %s = MOVE_SUM(%before, new rows of %x, rows of %x that leave the window), which is kept for later steps
         %t = MOVE_SUM(%s, rows of %x that see padding);  %m = MEAN_OF_SUM(%t)

Sums of integers are exact, so rows can be added and subtracted in any order; sums of floats are not. The rows that
leave are still in the ring of the tensor's rows. With several phases (ring.py), a step continues from the last sum of
its own phase: the sums lie in a ring, whose oldest entry is that sum.
"""

from __future__ import annotations

from tinyfuse.ir import ITEM_BYTES, Op, Tensor
from tinyfuse.ops import FAMILIES
from tinyfuse.slide.ring import Ring


def sums_rows(op: Op) -> bool:
    """Tells whether an operator adds up all rows of its only computed input."""
    return FAMILIES[op.kind].of_sums(op, op.output, op.output) is not None if op.outputs else False


def sum_bytes(op: Op, ring: Ring) -> int:
    """Bytes for keeping an operator's sums, besides the ring of the rows that it adds up."""
    return ITEM_BYTES["int32"] * op.output.elements * ring.phases


def sums_of(op: Op, name: str, rows: int = 1) -> Tensor:
    """Tensor for `rows` sets of an operator's sums."""
    return Tensor(f"{op.output.name} ({name})", (1, rows, 1, op.output.elements), "int32")
