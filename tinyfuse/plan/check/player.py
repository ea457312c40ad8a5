"""Independent checker of plans: it shares no code with the scheduler or the planner.

It plays the whole plan on a byte map of the arena. Every byte is stamped with the value (tensor and byte) that was last
written to it. Before a stage reads a row, each byte of that row must still carry its stamp. This one rule covers
placement, lifetimes, rings, overlaps and scratch, whatever formula they came from.

For an operator without code (RESHAPE, a view), the bytes of its outputs must carry the stamps of its inputs. The
operator's reference tells which: it is run on element numbers, so nothing is taken from where the plan stores the
tensors. The rows that a stage reads and the scratch that its kernel writes are also derived independently, in
plan/check/rows.py and plan/check/scratch.py.

The checker does not see the C that is printed from the plan; `verify` does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from tinyfuse.arena.check import check_placement
from tinyfuse.errors import InternalFault
from tinyfuse.ir import ITEM_BYTES, Op, Tensor
from tinyfuse.kernels.core.kernel import AccessOrder
from tinyfuse.ops import FAMILIES
from tinyfuse.plan import FEED_STATE, Group, Plan, Stage
from tinyfuse.plan.check.byte_runs import PART, Run, breaks, part_of, stamps
from tinyfuse.plan.check.memory import begin_copies, check_memory, keep_copies
from tinyfuse.plan.check.rows import access_orders_of, rows_read
from tinyfuse.plan.check.scratch import scratch_needed
from tinyfuse.plan.check.stack_player import StackPlayer
from tinyfuse.plan.check.stage_order import StageOrder
from tinyfuse.plan.check.state import check_border, check_feed, check_states

#: stamp of scratch bytes; differs from all values' numbers and from the stamps of feed states
_SCRATCH = -9


def verify_plan(plan: Plan) -> None:
    """Raises InternalFault, naming the tensor, if any value is overwritten before its last use."""
    check_placement(plan.buffers, plan.overlaps, plan.placement)
    check_memory(plan)
    check_states(plan)
    check_border(plan)
    check_feed(plan)
    _Player(plan).play()


def find_overwritten_iteration(access_order: AccessOrder, read: range, written: range) -> int | None:
    """Finds the first iteration whose input was overwritten before it was read, None if there is none.

    The call reads the bytes `read` and writes the bytes `written`, both of them in `access_order`.
    """
    count = -(-len(read) // access_order.read)
    for first in range(0, count, PART):
        iterations = np.arange(first, min(first + PART, count))
        unread = (iterations + access_order.buffered) * access_order.read - access_order.rereads
        unread = read.start + np.maximum(unread, 0)
        begin = written.start + iterations * access_order.written
        after = np.minimum(begin + access_order.written, written.stop)
        intact = (after <= unread) | (begin >= read.stop) | (unread >= read.stop)
        if not intact.all():
            return int(iterations[~intact][0]) + access_order.buffered
    return None


class _Player:
    """Simulated arena: an int64 array with the number of a value for each byte; 0 is undefined."""

    def __init__(self, plan: Plan):
        self.plan = plan
        self.bytes = np.zeros(plan.arena_bytes, np.int64)
        self.contents: dict[Tensor, tuple[Run, ...]] = {}
        self.stamps: dict[Tensor, np.ndarray] = {}  # only for tensors in planes
        self.oldest: dict[Tensor, int] = {}  # the first row in each sliding ring
        self.size = {buffer.name: buffer.bytes for buffer in plan.buffers}
        self.stack: StackPlayer | None = None  # set while a group with a stack is played

    def play(self) -> None:
        self._name_values()
        for tensor in self.plan.graph.inputs:
            self._write_whole(tensor)
        for group in self.plan.groups:
            self.stack = StackPlayer(self.plan, group, self.bytes, self.size) if group.stack else None
            self._check_scratch(group)
            begin_copies(self.plan, group.index, self.bytes)
            self._play_feed_state(group, start=group is self.plan.fed_group)
            if group.stages[0].by_row:
                self._play_rows(group)
            else:
                self._play_call(group)
            self._play_feed_state(group)
            keep_copies(self.plan, group.index, self.bytes)
        for tensor in self.plan.graph.outputs:
            self._read_whole(tensor, "the caller")

    def _name_values(self) -> None:
        """Names the contents of every tensor: a new value, or moved bytes of other values where no code runs."""
        scheduled = {op for group in self.plan.groups for op in group.ops}
        for tensor in self.plan.graph.inputs:
            self._name_computed(tensor)
        for op in self.plan.graph.ops:
            if op in scheduled:
                for tensor in op.outputs:
                    self._name_computed(tensor)
            else:
                self._name_moved(op)

    def _name_computed(self, tensor: Tensor) -> None:
        self.contents[tensor] = (Run(len(self.contents) + 1, 0, tensor.bytes),)

    def _name_moved(self, op: Op) -> None:
        """Names the outputs of an operator that only moves elements, by running its reference on element numbers."""
        begins: dict[Tensor, int] = {}
        end = 0
        for tensor in op.activations:
            begins[tensor], end = end, end + tensor.elements
        numbers = [
            np.arange(begins[t], begins[t] + t.elements, dtype=np.int32).reshape(t.shape)
            if t in begins
            else None
            if t is None
            else t.data
            for t in op.inputs
        ]
        runs = [run for tensor in op.activations for run in self.contents[tensor]]
        for output, moved in zip(op.outputs, FAMILIES[op.kind].reference(op, *numbers), strict=True):
            moved, item = moved.reshape(-1), ITEM_BYTES[output.dtype]
            if moved.size != output.elements:
                raise _fault(f"{op}: {output} has elements of nowhere")
            cuts = [0, *breaks(moved), moved.size]
            self.contents[output] = tuple(
                run
                for first, after in pairwise(cuts)
                for run in part_of(runs, int(moved[first]) * item, (after - first) * item)
            )

    def _rows(self, tensor: Tensor) -> int:
        """Number of rows into which the checker divides a tensor: the height of an image [1, H, W, C], else 1."""
        return tensor.shape[1] if len(tensor.shape) == 4 and tensor.shape[0] == 1 else 1

    def _span(self, tensor: Tensor, row: int) -> slice:
        if self.stack is not None and tensor in self.stack:
            return self.stack.span(tensor, row)
        storage = self.plan.storage[tensor]
        rows = self._rows(tensor)
        size = tensor.bytes // rows
        slot = 0
        if storage.slides:
            slot = row - self.oldest.get(tensor, 0)
            if not 0 <= slot < storage.ring_rows:
                raise _fault(f"{tensor}: row {row} is outside its sliding ring")
        elif rows > 1:
            slot = row % storage.ring_rows
        begin = storage.offset + slot * size
        if not 0 <= begin <= self.size[storage.buffer] - size:
            raise _fault(f"{tensor}: row {row} outside its buffer")
        start = self.plan.placement.offsets[storage.buffer] + begin
        return slice(start, start + size)

    def _write(self, tensor: Tensor, row: int) -> None:
        start = int(self._in_planes(tensor, row)[0]) if tensor.planes > 1 else self._span(tensor, row).start
        if start % ITEM_BYTES[tensor.dtype]:
            raise _fault(f"{tensor} at {start} is not aligned")
        for part, stamp in self._stamps(tensor, row):
            self.bytes[part] = stamp

    def _read(self, tensor: Tensor, row: int, reader: str) -> None:
        for part, stamp in self._stamps(tensor, row):
            if (self.bytes[part] != stamp).any():
                raise _fault(f"{reader} reads row {row} of {tensor}: overwritten, or not made yet")

    def _stamps(self, tensor: Tensor, row: int) -> Iterator[tuple[slice | np.ndarray, np.ndarray]]:
        """Yields (place in the arena, expected stamps) for the bytes of a row, in parts of bounded size."""
        size = tensor.bytes // self._rows(tensor)
        if tensor.planes > 1:
            if tensor not in self.stamps:
                self.stamps[tensor] = stamps(self.contents[tensor])
            yield self._in_planes(tensor, row), self.stamps[tensor][row * size : row * size + size]
            return
        at = self._span(tensor, row).start
        for run in part_of(self.contents[tensor], row * size, size):
            base = run.value * (1 << 32) + run.start
            for start in range(0, run.bytes, PART):
                end = min(start + PART, run.bytes)
                yield slice(at + start, at + end), np.arange(base + start, base + end)
            at += run.bytes

    def _in_planes(self, tensor: Tensor, row: int) -> np.ndarray:
        """Finds the arena addresses of a row's bytes in a tensor of planes, where the row has one line per plane."""
        storage, (_, height, planes, _) = self.plan.storage[tensor], tensor.shape
        if storage.slides or storage.ring_rows != height:
            raise _fault(f"{tensor}: planes are no ring")
        if not 0 <= storage.offset <= self.size[storage.buffer] - tensor.bytes:
            raise _fault(f"{tensor}: its planes lie outside its buffer")
        line = tensor.bytes // height // planes
        lines = self.plan.offset(tensor) + row * line + height * line * np.arange(planes)
        found: np.ndarray = np.add.outer(lines, np.arange(line)).ravel()
        return found

    def _write_whole(self, tensor: Tensor) -> None:
        for row in range(self._rows(tensor)):
            self._write(tensor, row)

    def _read_whole(self, tensor: Tensor, reader: str) -> None:
        for row in range(self._rows(tensor)):
            self._read(tensor, row, reader)

    def _check_scratch(self, group: Group) -> None:
        for stage, name in zip(group.stages, group.scratch, strict=True):
            if self.stack is not None:
                continue  # it is on top of the stack of rings, and the stack's player checks it
            needed = scratch_needed(stage.op, stage.kernel, stage.by_row, self.plan.context)
            there = self.size[name] if name else 0
            if there < needed:
                raise _fault(f"{stage.op}: {stage.kernel.name} needs {needed} bytes of scratch and has {there}")
            if name and self.plan.placement.offsets[name] % 16:
                raise _fault(f"{stage.op}: its scratch is not aligned to 16")

    def _scratch_of(self, group: Group, stage: int) -> slice:
        """Finds where the scratch of a stage lies while it runs."""
        name, runs = group.scratch[stage], group.stages[stage]
        if self.stack is not None:
            return self.stack.scratch(scratch_needed(runs.op, runs.kernel, True, self.plan.context))
        start = self.plan.placement.offsets[name] if name else 0
        return slice(start, start + (self.size[name] if name else 0))

    def _scribble_scratch(self, group: Group, stage: int) -> None:
        self.bytes[self._scratch_of(group, stage)] = _SCRATCH

    def _keep_scratch(self, group: Group, stage: int) -> None:
        """Checks that the call's output did not overwrite the call's scratch, which a kernel may read until it
        returns."""
        if (self.bytes[self._scratch_of(group, stage)] != _SCRATCH).any():
            raise _fault(f"{group.stages[stage].op}: its output is written over its scratch")

    def _play_feed_state(self, group: Group, start: bool = False) -> None:
        """Checks that nothing overwrote the data that row-feeding calls keep between them; with `start`, writes these
        data first.

        The fed group keeps its counters; the inference's state lives from that group to the end.
        """
        fed = self.plan.fed_group
        if fed is None or fed.counters is None or group.index < fed.index:
            return
        for number, name in enumerate((FEED_STATE, fed.counters)):
            if name == FEED_STATE or group is fed:
                offset = self.plan.placement.offsets[name]
                found = self.bytes[offset : offset + self.size[name]]
                if start:
                    found[:] = -1 - number
                if (found != -1 - number).any():
                    raise _fault(f"group {group.index}: {name} was overwritten")

    def _play_call(self, group: Group) -> None:
        (stage,) = group.stages
        self._scribble_scratch(group, 0)
        for tensor in stage.op.activations:
            self._read_whole(tensor, str(stage.op))
        access_orders = access_orders_of(stage, self.plan.context)
        for output in stage.op.outputs:
            self._write_whole(output)
        self._keep_scratch(group, 0)
        for i, source in enumerate(stage.op.inputs):
            if source is None or source not in stage.op.activations:
                continue
            if i in access_orders:
                spans = self._bytes_of(source), self._bytes_of(stage.op.output)
                self._check_access_order(stage.op, source, access_orders[i], *spans)
            else:
                # a kernel without an access order may read any input byte at any time
                self._read_whole(source, f"{stage.op} (in no known order)")

    def _bytes_of(self, tensor: Tensor) -> range:
        """Finds the arena bytes of a whole tensor."""
        return range(self.plan.offset(tensor), self.plan.offset(tensor) + tensor.bytes)

    def _check_access_order(
        self, op: Op, source: Tensor, access_order: AccessOrder, read: range, written: range
    ) -> None:
        """Checks that no iteration overwrites source bytes that it or a later iteration still reads.

        The call reads the bytes `read` of `source` and writes the bytes `written`, in `access_order`.
        """
        if -(-len(read) // access_order.read) * access_order.written < len(written):
            raise _fault(f"{op}: its access order ends before the output does")
        iteration = find_overwritten_iteration(access_order, read, written)
        if iteration is not None:
            raise _fault(f"{op} overwrites {source} before iteration {iteration} has read it")

    def _play_rows(self, group: Group) -> None:
        """Plays the group's loop: each stage makes its next rows, then used-up rows leave rings and stack."""
        order = StageOrder(group, self.plan.context)
        reads = [self._reads(stage) for stage in group.stages]
        while (s := order.next_stage()) is not None:
            output, made = group.stages[s].op.output, order.next_rows(s)
            windows = {
                tensor: order.window(s, i) if rows is None else _hull([rows[y] for y in made])
                for tensor, (i, rows) in reads[s].items()
            }
            if self.stack is not None:
                order.made[s] = made.stop
                self._open_stack(group.stages[s].op, made, {t: order.oldest(t) for t in windows if t in self.stack})
                order.made[s] = made.start
            self._play_call_of_rows(group, s, made, windows)
            self._play_feed_state(group)
            order.made[s] = made.stop
            for tensor in dict.fromkeys((*windows, output)):
                if self.stack is not None and tensor in self.stack:
                    self.stack.close(tensor, order.oldest(tensor))
                elif tensor in windows and self.plan.storage[tensor].slides:
                    self._slide(tensor, order.oldest(tensor), order.rows_of(tensor))
        for s, stage in enumerate(group.stages):
            if stage.op.output in group.outputs and not order.finished(s):
                raise _fault(f"{stage.op}: rows missing")
        if self.stack is not None and group.resident_output is not None:
            moved, self.stack = self.stack.leave(group.resident_output), None
            for row, found in enumerate(moved):
                self.bytes[self._span(group.resident_output, row)] = found

    @staticmethod
    def _reads(stage: Stage) -> dict[Tensor, tuple[int, tuple[range, ...] | None]]:
        """Maps each tensor to (input index, rows read per output row). The rows are None where only the plan knows
        them."""
        return {
            tensor: (i, rows_read(stage.op, i))
            for i, tensor in enumerate(stage.op.inputs)
            if tensor in stage.op.activations
        }

    def _open_stack(self, op: Op, made: range, oldest: dict[Tensor, int]) -> None:
        """Makes room in the stack for the rows that `op` makes.

        Where the plan says so, they overwrite the first row of an input that is not needed afterwards. `oldest` maps
        each input in the stack to the first row that is still needed after the call.
        """
        assert self.stack is not None, "asked of a group with one"
        if op.output in self.stack:
            over = [t for t, row in oldest.items() if self.stack.may_take(op.output, t) and self.stack.loses(t, row)]
            if over and len(made) != 1:
                raise _fault(f"{op}: several rows over one of {over[0]}")
            self.stack.open(op.output, len(made), over[0] if over else None)

    def _slide(self, tensor: Tensor, oldest: int, made: int) -> None:
        """Moves the rows from `oldest` on down, so that row `oldest` lies at the ring's start."""
        if oldest > self.oldest.get(tensor, 0):
            rows = [self.bytes[self._span(tensor, row)].copy() for row in range(oldest, made)]
            self.oldest[tensor] = oldest
            for row, found in enumerate(rows, oldest):
                self.bytes[self._span(tensor, row)] = found

    def _play_call_of_rows(self, group: Group, s: int, made: range, windows: dict[Tensor, range]) -> None:
        """Plays stage `s` making the rows `made` from `windows`, and checks that the windows survived.

        The first row of a window may be overwritten if the kernel reads it in a known access order.
        """
        stage = group.stages[s]
        self._scribble_scratch(group, s)
        if stage.kernel.accumulates and made.start > 0:
            self._read(stage.op.output, made.start - 1, f"{stage.op} (its own last row)")
        reader, access_orders = str(stage.op), access_orders_of(stage, self.plan.context)
        for tensor, rows in windows.items():
            for r in rows:
                self._read(tensor, r, reader)
        for row in made:
            self._write(stage.op.output, row)
        for row in made:
            self._read(stage.op.output, row, f"{reader} (its own output)")
        self._keep_scratch(group, s)
        for tensor, rows in windows.items():
            uses = [i for i, other in enumerate(stage.op.inputs) if other is tensor]
            access_order = access_orders.get(uses[0]) if len(uses) == 1 else None
            for r in rows:
                if access_order is not None and r == rows.start:
                    spans = self._span(tensor, r), self._span(stage.op.output, made.start)
                    self._check_access_order(
                        stage.op, tensor, access_order, *(range(span.start, span.stop) for span in spans)
                    )
                else:
                    self._read(tensor, r, f"{reader} (while it writes)")


def _hull(rows: Sequence[range]) -> range:
    """Range from the first of all these rows to the last."""
    there = [each for each in rows if each]
    return range(min((r.start for r in there), default=0), max((r.stop for r in there), default=0))


def _fault(what: str) -> InternalFault:
    return InternalFault("the checker of plans", what)
