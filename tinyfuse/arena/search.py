"""What both exact searches share: a budget of work, and what they report."""

from __future__ import annotations

from dataclasses import dataclass


class Budget:
    """Work that a search may still do, in elementary operations: about a microsecond each. Counted,
    never timed: the result is the same on every machine."""

    def __init__(self, work: int):
        self.left = work

    @property
    def spent(self) -> bool:
        return self.left <= 0


@dataclass(frozen=True)
class Found:
    """order  an order of the buffers that gives an arena below the asked-for limit, the smallest
           found; None: none was found
    bound  no arena is smaller: the found one's size (or the limit) where nothing was left out
    """

    order: list[int] | None
    bound: int
