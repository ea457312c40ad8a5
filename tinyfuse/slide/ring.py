"""Ring of the rows of a tensor that stay from one step to the next.

A window's rows move by `shift` rows every `phases` steps. With one phase, the ring holds the rows of a window one after
the other. With several, the rows that a step makes belong to its own phase, and phases take turns. A step pushes its
`shift` rows in either case, so the ring holds the rows of all phases in the order of the steps:

    shift 2, phases 3      .. a a b b c c A A B B C C      a step reads C C, c c, ..: the rows of its own phase
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

#: rows from the first to before the second
Span = tuple[int, int]


@dataclass(frozen=True)
class Ring:
    """Rows of a window that stay from step to step.

    rows     span in the window; its last `shift` rows are those that a step pushes
    leaving  before the push, the ring also still has the `shift` rows that leave the window
    """

    rows: Span
    shift: int
    phases: int = 1
    leaving: bool = False

    @property
    def height(self) -> int:
        """Number of rows in the ring's memory."""
        first, _ = self.rows
        most = self._from_end(first)
        return max(most, self._from_end(first - self.shift) - self.shift) if self.leaving else most

    def place(self, row: int) -> int:
        """Position of a window's row, counted from the ring's oldest row, after the push."""
        return self.height - self._from_end(row)

    @property
    def between(self) -> int:
        """Rows of other phases between the rows of two steps of one phase."""
        return (self.phases - 1) * self.shift

    def pieces(self, span: Span) -> Iterator[Span]:
        """Yields the span in pieces that are contiguous in the ring."""
        start, end = span
        while start < end:
            after = end if self.phases == 1 else min(end, start + self._left_of_step(start))
            yield start, after
            start = after

    def _left_of_step(self, row: int) -> int:
        """Number of rows from `row` on that the same step pushed."""
        return (self.rows[1] - row - 1) % self.shift + 1

    def _from_end(self, row: int) -> int:
        steps, rest = divmod(self.rows[1] - row - 1, self.shift)
        return steps * self.phases * self.shift + rest + 1
