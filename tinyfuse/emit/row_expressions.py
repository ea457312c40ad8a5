"""C expressions of a group's loop over rows: which stage may run, and which rows are still needed."""

from __future__ import annotations

from collections.abc import Mapping

from tinyfuse.ir import Tensor
from tinyfuse.kernels.core.kernel import rows_after
from tinyfuse.kernels.program.feed_rows import BEFORE
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.core.family import SAME_ROW
from tinyfuse.plan import Group, Stage
from tinyfuse.plan.rows import height, readers


class RowExpressions:
    """C expressions for the row loop of a group; `rows` maps tensors to C variables with the number of rows made."""

    def __init__(self, group: Group, rows: Mapping[Tensor, str]):
        self._group, self._rows = group, rows

    def oldest_needed(self, tensor: Tensor, ran: Stage | None = None, beside: Stage | None = None) -> str:
        """C expression for the oldest existing row that a reader still needs; the number of rows made if none is
        needed.

        ran     stage that counts as having run once more
        beside  reader to be ignored
        """
        rows, passed = [], self.leaves_rows_out(tensor)
        for use in readers(self._group.stages, tensor):
            if self._group.stages[use.stage] is beside:
                continue
            reader = self._group.stages[use.stage]
            row = self._rows[reader.op.output]
            row = f"({row} + 1)" if reader is ran else row
            window = reader.window(use.input)
            rows.append(f"({row} < {height(reader.op.output)} ? {window.first_c(row)} : {self._rows[tensor]})")
            # a window may lie entirely in the padding below
            passed = passed or window.first(height(reader.op.output) - 1) > height(tensor)
        # a window may begin behind all existing rows
        several = len(rows) > 1 or passed
        oldest = self._rows[tensor] if several else rows[0]
        for row in rows if several else ():
            oldest = f"tinyfuse_min({row}, {oldest})"
        return oldest

    def leaves_rows_out(self, tensor: Tensor) -> bool:
        """Tells whether some rows of the tensor may lie between the windows of a reader, so that it never reads
        them."""
        uses = readers(self._group.stages, tensor)
        return any(self._group.stages[use.stage].window(use.input).leaves_rows_out for use in uses)

    def run_conditions(self, stage: Stage) -> list[str]:
        """C conditions under which the stage runs: it has rows left, a reader wants one, and its inputs exist."""
        row = self._rows[stage.op.output]
        source = FAMILIES[stage.op.kind].source
        conditions = [f"{row} < {BEFORE} + count" if source else f"{row} < {height(stage.op.output)}"]
        if stage.op.output not in self._group.outputs:
            wanted = []
            for use in readers(self._group.stages, stage.op.output):
                reader = self._group.stages[use.stage]
                count = self._rows[reader.op.output]
                unfinished = f"{count} < {height(reader.op.output)}"
                lacks = f"{row} < {self._needed(reader, use.input)}"
                # a reader that has finished the same row has read all of these rows
                same_row = self._reads_same_row(reader, use.input)
                wanted.append(lacks if same_row else f"({unfinished} && {lacks})")
            if self._group.stages.index(stage) in self._group.eager:
                wanted.append(f"({self._is_eager(stage)})")
            conditions.append(wanted[0] if len(wanted) == 1 else f"({' || '.join(wanted)})")
        for i, tensor in enumerate(stage.op.inputs):
            if tensor is not None and tensor in self._rows:
                conditions.append(f"{self._rows[tensor]} >= {self._needed(stage, i)}")
        return conditions

    def _is_eager(self, stage: Stage) -> str:
        """C condition under which an eager stage makes a row before a reader needs it.

        A reader must need that row for the row after its next one, and no other stage may still need the first row that
        this stage reads.
        """
        (source,), row = stage.op.activations, self._rows[stage.op.output]
        lacks = []
        for use in readers(self._group.stages, stage.op.output):
            reader = self._group.stages[use.stage]
            following = f"({self._rows[reader.op.output]} + 1)"
            needed = reader.window(use.input).needed_c(following, height(stage.op.output))
            lacks.append(f"{following} < {height(reader.op.output)} && {row} < {needed}")
        lacking = lacks[0] if len(lacks) == 1 else " || ".join(f"({each})" for each in lacks)
        lacking = lacking if len(lacks) == 1 else f"({lacking})"
        reads = stage.window(stage.op.inputs.index(source))
        others = self.oldest_needed(source, beside=stage)
        return f"{lacking} && {others} > {reads.first_c(row)}"

    def _needed(self, stage: Stage, i: int) -> str:
        """C expression for RowWindow.needed: input rows that must exist before the stage's next row."""
        window, row = stage.window(i), self._rows[stage.op.output]
        if stage.kernel.rows_a_call > 1:
            row = f"({self.rows_after_call(stage)} - 1)"
        if self._reads_same_row(stage, i):
            return f"{row} + 1"
        return window.needed_c(row, height(stage.op.operand(i)))

    def rows_after_call(self, stage: Stage) -> str:
        """C expression for the number of rows made after the stage's next call."""
        return rows_after(self._rows[stage.op.output], stage.kernel, height(stage.op.output))

    def count_rows(self, stage: Stage) -> str:
        """C statement that counts the rows of a call."""
        row = self._rows[stage.op.output]
        return f"++{row};" if stage.kernel.rows_a_call == 1 else f"{row} = {self.rows_after_call(stage)};"

    def _reads_same_row(self, stage: Stage, i: int) -> bool:
        """Tells whether each output row needs only the input row of the same number, and that row always exists. (A 1x1
        convolution with padding has more rows than its input.)"""
        rows_exist = height(stage.op.operand(i)) >= height(stage.op.output)
        return stage.windows[i] == SAME_ROW and rows_exist
