"""Order in which the stages of a row group run, derived by the checker without plan/loop.py."""

from __future__ import annotations

from bisect import bisect_left

from tinyfuse.ir import Tensor
from tinyfuse.kernels.core.context import Context
from tinyfuse.plan.check.scratch import rows_made
from tinyfuse.plan.plan import Group


class StageOrder:
    """Plays the generated loop: each iteration runs the last stage that can, for as many rows as its kernel makes.

    Stages are numbered as in the group.

    made  rows made so far, per stage
    """

    def __init__(self, group: Group, context: Context):
        self._group, self._stages = group, group.stages
        self.made = [0] * len(group.stages)
        self._heights = [stage.op.output.shape[1] for stage in group.stages]
        #: (stage, input, rows made) -> the input rows that the next call reads
        self._windows: dict[tuple[int, int, int], range] = {}
        self._at_once = [rows_made(stage.op, stage.kernel, context) for stage in group.stages]
        #: tensor -> number of the stage that makes it
        self._maker = {stage.op.output: s for s, stage in enumerate(group.stages)}
        #: per stage, (reader, input index) of each use of its output
        self._readers = [
            [
                (c, i)
                for c, other in enumerate(group.stages)
                for i, t in enumerate(other.op.inputs)
                if t is stage.op.output
            ]
            for stage in group.stages
        ]

    def next_stage(self) -> int | None:
        """Finds the stage that runs next; None at the end."""
        for s in reversed(range(len(self.made))):
            if not self.finished(s) and (self._wanted(s) or self._is_eager(s)) and not self._lacks(s):
                return s
        return None

    def next_rows(self, s: int) -> range:
        """Range of rows that stage `s` makes next."""
        return range(self.made[s], min(self.made[s] + self._at_once[s], self._heights[s]))

    def window(self, s: int, i: int) -> range:
        """Range of rows of input `i` that the next call of stage `s` reads according to the plan, as the generated loop
        does."""
        key = s, i, self.made[s]
        if key not in self._windows:
            wanted, height = self._stages[s].window(i), self._stages[s].op.operand(i).shape[1]
            made = self.next_rows(s) or range(self.made[s], self.made[s] + 1)
            first = made[0] * wanted.stride - wanted.pad_top
            last = made[-1] * wanted.stride - wanted.pad_top + wanted.kernel
            places = range(0, height * wanted.spread, wanted.spread)
            self._windows[key] = range(bisect_left(places, first), bisect_left(places, last))
        return self._windows[key]

    def finished(self, s: int) -> bool:
        """Tells whether stage `s` has made all rows."""
        return self.made[s] == self._heights[s]

    def rows_of(self, tensor: Tensor) -> int:
        """Number of rows of a tensor made so far."""
        return self.made[self._maker[tensor]]

    def oldest(self, tensor: Tensor) -> int:
        """First row that readers of a ring still need, or its next row if none do; 0 for outputs of the group."""
        if tensor in self._group.outputs:
            return 0
        maker = self._maker[tensor]
        waiting = [self.window(c, i).start for c, i in self._readers[maker] if not self.finished(c)]
        return min([self.made[maker], *waiting])

    def _lacks(self, s: int) -> bool:
        """Tells whether stage `s` must wait for rows of its inputs."""
        return any(
            maker is not None and self.window(s, i).stop > self.made[maker]
            for i, tensor in enumerate(self._stages[s].op.inputs)
            if tensor is not None and (maker := self._maker.get(tensor)) is not None
        )

    def _wanted(self, s: int) -> bool:
        """Tells whether a reader waits for the next row of stage `s`. Outputs of the group are always wanted."""
        return self._stages[s].op.output in self._group.outputs or any(
            not self.finished(c) and self.window(c, i).stop > self.made[s] for c, i in self._readers[s]
        )

    def _is_eager(self, s: int) -> bool:
        """Tells whether stage `s` makes its next row now, although no reader waits for it.

        It does if a reader needs that row for the row after its next one, and no other stage still needs the first row
        that `s` reads.
        """
        op, readers = self._stages[s].op, self._readers
        if s not in self._group.eager or len(op.activations) != 1:
            return False
        source = op.first_activation
        others = [(c, i) for c, i in readers[self._maker[source]] if c != s and not self.finished(c)]
        after = []
        for c, i in readers[s]:
            if self.made[c] + 1 < self._heights[c]:
                self.made[c] += 1
                after.append(self.window(c, i).stop)
                self.made[c] -= 1
        own = self.window(s, op.inputs.index(source)).start
        return max(after, default=0) > self.made[s] and all(self.window(c, i).start > own for c, i in others)
