"""Where the rows of a tensor lie that stay from one step to the next.

A window's rows move by `shift` rows every `phases` steps. Where that is one step, the ring holds the rows of a window
one after the other. Else the rows that a step makes belong to its own phase, one of `phases` that take turns; a step
pushes these `shift` rows all the same, so that in the ring the rows of all phases lie in the order of the steps:

    shift 2, phases 3      .. a a b b c c A A B B C C      a step reads C C, c c, ..: its own phase's rows
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

#: rows from the first to before the second
Span = tuple[int, int]


@dataclass(frozen=True)
class Ring:
    """rows: those of a window that stay, the newest `shift` of them, which a step pushes, at their end; leaving:
    whether the ring still has, before they are pushed, the `shift` rows that leave the window."""

    rows: Span
    shift: int
    phases: int = 1
    leaving: bool = False

    @property
    def height(self) -> int:
        """Rows of its memory."""
        first, _ = self.rows
        most = self._from_end(first)
        return max(most, self._from_end(first - self.shift) - self.shift) if self.leaving else most

    def place(self, row: int) -> int:
        """Where the window's row lies, counted from the ring's oldest row, once the new rows are pushed."""
        return self.height - self._from_end(row)

    @property
    def between(self) -> int:
        """Rows of other phases between the rows of two steps of one."""
        return (self.phases - 1) * self.shift

    def pieces(self, span: Span) -> Iterator[Span]:
        """The span in pieces each of which lies in one place."""
        start, end = span
        while start < end:
            after = end if self.phases == 1 else min(end, start + self._left_of_step(start))
            yield start, after
            start = after

    def _left_of_step(self, row: int) -> int:
        """How many rows, from that one on, a step pushed."""
        return (self.rows[1] - row - 1) % self.shift + 1

    def _from_end(self, row: int) -> int:
        steps, rest = divmod(self.rows[1] - row - 1, self.shift)
        return steps * self.phases * self.shift + rest + 1
