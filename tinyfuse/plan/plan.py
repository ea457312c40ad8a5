"""The complete result of compilation: what runs, and where everything lies.

A Plan is made once (tinyfuse.compiler) and never changed. `emit` turns it into C, `report` into text or JSON; neither
makes decisions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tinyfuse.arena import Buffer, Overlap, Placement
from tinyfuse.errors import InternalFault
from tinyfuse.ir import ITEM_BYTES, Graph, Op, Tensor
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import AccessOrder, Constant, Kernel
from tinyfuse.limits import Limit
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.core.family import RowWindow
from tinyfuse.ops.program.control_flow import Calls, called_graphs
from tinyfuse.options import Options
from tinyfuse.plan.memory import STAGED_ALIGN, ArenaPart, ConstantKey, Memory


@dataclass(frozen=True, eq=False)
class Stage:
    """One operator inside a group, with the kernel that computes it.

    by_row     the kernel is called once per output row; else once for the whole output
    windows    per operator input: the rows that an output row reads; None for constants and whole calls
    constants  the kernel's packed arrays
    piece      number of units of a call (the kernel's `division`) that one step computes; None: all
    pieces     number of such steps in a call
    """

    op: Op
    kernel: Kernel
    by_row: bool
    windows: tuple[RowWindow | None, ...]
    constants: tuple[Constant, ...]
    scratch_bytes: int
    macs: int
    piece: int | None = None
    pieces: int = 1

    def window(self, i: int) -> RowWindow:
        """Row window of input `i` of a row-wise stage; InternalFault if it has none."""
        window = self.windows[i]
        if window is None:
            raise InternalFault(f"{self.op}", f"input {i} has no row window")
        return window

    def row_access_order(self, source: Tensor) -> tuple[int, AccessOrder] | None:
        """Index of the input that is `source`, and the order in which a row's call reads it.

        None if several inputs are `source`, the kernel has no such order, or calls make several rows.
        """
        uses = [i for i, tensor in enumerate(self.op.inputs) if tensor is source]
        if len(uses) != 1 or self.kernel.rows_a_call > 1:
            return None
        order = self.kernel.row_access_orders(self.op).get(uses[0])
        return None if order is None else (uses[0], order)


@dataclass(frozen=True)
class Storage:
    """Location of a tensor: `ring_rows` rows from byte `offset` of the arena buffer `buffer` on.

    The buffer belongs to the tensor itself, or to the larger tensor of which it is a part. `ring_rows` is the tensor's
    height, unless it exists only as a ring inside a group. Row r lies in slot r % ring_rows; if the ring `slides`, in
    slot r - oldest, where `oldest` is the first row that a reader still needs.
    """

    buffer: str
    ring_rows: int
    slides: bool = False
    offset: int = 0


@dataclass(frozen=True)
class StackedRing:
    """Ring of `tensor` in a group's stack of rings, or the resident output at the bottom.

    The call that makes a row of the ring below writes the last `taken` bytes of that row over this ring's first row,
    provided that no later call reads this first row.
    """

    tensor: Tensor
    taken: int = 0


@dataclass(frozen=True, eq=False)
class Group:
    """A fusion group: operators that become one C function.

    inputs, outputs   activations that cross the group's border
    scratch           per stage: the name of its scratch buffer, or None
    counters          name of the buffer that keeps, between calls, the rows made per stage after the first; None unless
                      the group is fed rows
    stack             rings stacked in one buffer, bottom first; below them the `resident_output`, if any; above them
                      the stages' scratch
    eager             eager stages: they make a row as soon as a reader needs that row for the row after its next one,
                      provided that no other stage still needs the first row that they read
    """

    index: int
    stages: tuple[Stage, ...]
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    scratch: tuple[str | None, ...]
    counters: str | None = None
    stack: tuple[StackedRing, ...] = ()
    eager: frozenset[int] = frozenset()

    @property
    def counter_bytes(self) -> int:
        """Bytes of one of the `counters`: 1, 2 or 4."""
        rows = max(stage.op.output.shape[1] for stage in self.stages)
        return 1 if rows < 1 << 8 else 2 if rows < 1 << 16 else 4

    @property
    def resident_output(self) -> Tensor | None:
        """The output that lies at the bottom of the stack of rings; None without one. All rings move up for each of its
        rows. Once all outputs are made, it is moved to its own storage."""
        lowest = self.stack[0].tensor if self.stack else None
        return lowest if lowest in self.outputs else None

    @property
    def ops(self) -> tuple[Op, ...]:
        return tuple(stage.op for stage in self.stages)

    @property
    def library(self) -> str:
        """Library whose kernels it calls: "tinyfuse", "cmsis-nn" or "both"."""
        libraries = {stage.kernel.library for stage in self.stages}
        return libraries.pop() if len(libraries) == 1 else "both"

    @property
    def states(self) -> tuple[Tensor, ...]:
        """States that its operators read or write, in order of first use."""
        return tuple(dict.fromkeys(tensor for op in self.ops for tensor in op.states))

    @property
    def own_states(self) -> tuple[Tensor, ...]:
        """States that the group's own kernels access; states of called graphs are left out."""
        return tuple(dict.fromkeys(tensor for op in self.ops if not called_graphs(op) for tensor in op.states))

    @property
    def uses_state(self) -> bool:
        """Tells whether its function, or one that it calls, accesses the state's memory."""
        inner = (plan for op in self.ops for plan in subplans(op).values())
        return bool(self.own_states) or any(plan.uses_state for plan in inner)

    @property
    def macs(self) -> int:
        return sum(stage.macs for stage in self.stages)

    @property
    def scratch_bytes(self) -> int:
        return max((stage.scratch_bytes for stage in self.stages), default=0)

    @property
    def traffic_bytes(self) -> int:
        """Bytes of arena tensors that the group reads and writes, without rings."""
        return sum(tensor.bytes for tensor in self.inputs + self.outputs)

    @property
    def unfused_traffic_bytes(self) -> int:
        """Bytes that the group's operators would read and write if each ran alone."""
        return sum(map(operator_traffic, self.ops))


def operator_traffic(op: Op) -> int:
    """Bytes of the tensors that an operator reads and writes, each counted once."""
    return sum(tensor.bytes for tensor in op.activations + op.outputs)


@dataclass(frozen=True)
class Reordering:
    """Cost of running the operators in the file's order: arena bytes, and predicted instructions (None if a kernel was
    not measured)."""

    arena_bytes: int
    instructions: int | None


def _array_bytes(placed: int) -> int:
    return max(ARENA_ALIGN, -(-placed // 4) * 4)


@dataclass(frozen=True, eq=False)
class Plan:
    """Everything that code generation needs. `storage` covers every activation, parts of others included.

    source      the graph as it was read.
    graph       the graph after rewriting, or of a step that takes its frames row by row. Both have the same inputs and
                outputs, but for an input that is fed by rows.
    states      byte offset of every state in the state's memory.
    reordering  set if the operators run in another order than the file's.
    memory      set if banks were named.
    limits      limits that the searches for this plan reached, in addition to `graph.limits` and the placement's.
    """

    source: Graph
    graph: Graph
    context: Context
    options: Options
    groups: tuple[Group, ...]
    storage: dict[Tensor, Storage]
    buffers: tuple[Buffer, ...]
    overlaps: tuple[Overlap, ...]
    placement: Placement
    states: dict[Tensor, int]
    warnings: tuple[str, ...]
    reordering: Reordering | None = None
    memory: Memory | None = None
    limits: tuple[Limit, ...] = ()

    @cached_property
    def arena_bytes(self) -> int:
        """Size of the arena with all its parts, rounded up so that a C array of it keeps the alignment."""
        if self.arena_parts:
            return sum(part.bytes for part in self.arena_parts)
        return _array_bytes(self.placement.arena_bytes)

    @property
    def arena_parts(self) -> tuple[ArenaPart, ...]:
        """Parts of an arena divided between memory banks; empty if it is not divided."""
        return self.memory.parts if self.memory else ()

    def arena_bytes_in(self, bank: str) -> int:
        """Bytes of the arena that lie in a memory bank."""
        if self.memory and self.memory.arena == bank:
            return self.arena_bytes
        return sum(part.bytes for part in self.arena_parts if part.bank == bank)

    @property
    def arena_align(self) -> int:
        """Alignment of the arena's start."""
        return STAGED_ALIGN if self.memory and self.memory.staged else ARENA_ALIGN

    @cached_property
    def arena_lower_bound(self) -> int:
        """Bytes: a lower bound on `arena_bytes` for any placement of this schedule."""
        return _array_bytes(self.placement.lower_bound)

    @cached_property
    def state_bytes(self) -> int:
        """Size of the state that outlives a run; 0 without one."""
        return states_bytes(self.states)

    def live_bytes(self, step: int) -> int:
        """Total bytes of the buffers that are alive at any time during a group: an upper bound on the bytes alive at
        once."""
        return sum(buffer.bytes for buffer in self.buffers if buffer.is_alive_in(step))

    @property
    def ram_bytes(self) -> int:
        """Bytes of arena and one state together."""
        return self.arena_bytes + self.state_bytes

    @cached_property
    def initial_values(self) -> dict[Tensor, Constant]:
        """Data that a reset copies from flash: for states whose bytes are not all equal."""
        found = {}
        for tensor in self.states:
            data = np.ascontiguousarray(tensor.initial).reshape(-1).view(np.uint8)
            if (data != data[0]).any():
                found[tensor] = Constant("initial", data, "uint8_t")
        return found

    @cached_property
    def fed_group(self) -> Group | None:
        """The group that takes the rows of an input as they come (`--feed-rows`)."""
        return next((group for group in self.groups if group.counters), None)

    @property
    def fed(self) -> Tensor | None:
        """The input that is fed by rows; None without one."""
        return self.fed_group.stages[0].op.output if self.fed_group else None

    @property
    def slid(self) -> Tensor | None:
        """The input to which each step brings new frames (`--slide`); None without one."""
        window = self.source.window
        return None if window is None else self.source.inputs[window.input]

    @property
    def new_frames(self) -> Tensor | None:
        """The input that a run takes for `slid`: all new frames, or one row of them with --feed-rows."""
        window = self.source.window
        return None if window is None else self.graph.inputs[window.input]

    @cached_property
    def awaits(self) -> bool:
        """Tells whether some runs end without a result."""
        return any(FAMILIES[op.kind].awaits(op) for group in self.all_groups for op in group.ops)

    def runs(self, group: Group) -> int:
        """Counts the runs of one of its groups in an inference: once, or once per row of a step's frames."""
        rows = self._rows_a_step
        if rows == 1:  # tested first, because a plugin's families are known only while it is loaded
            return 1
        border = self.row_border
        return 1 if border is None or group.index >= border.index else rows

    @cached_property
    def row_border(self) -> Group | None:
        """The group with AWAIT_ROWS, after which only the run on the last row of a step's frames continues; None
        without one."""
        divided = (group for group in self.groups if any(FAMILIES[op.kind].divides for op in group.ops))
        return next(divided, None)

    @property
    def _rows_a_step(self) -> int:
        window = self.source.window
        return 1 if window is None else window.rows or 1

    @property
    def macs(self) -> int:
        return sum(group.macs * self.runs(group) for group in self.groups)

    @cached_property
    def subplans(self) -> dict[int, Plan]:
        """Plans of called graphs, by subgraph number in the file, callees before callers."""
        found: dict[int, Plan] = {}
        for op in (op for group in self.groups for op in group.ops):
            for number, plan in subplans(op).items():
                for n, inner in (*plan.subplans.items(), (number, plan)):
                    found.setdefault(n, inner)
        return found

    @cached_property
    def uses_state(self) -> bool:
        """Tells whether any of its groups accesses the state's memory."""
        return any(group.uses_state for group in self.groups)

    @property
    def all_groups(self) -> tuple[Group, ...]:
        """Groups of the subplans, then its own."""
        return tuple(group for plan in (*self.subplans.values(), self) for group in plan.groups)

    @cached_property
    def weight_bytes(self) -> int:
        """Bytes of constant data in flash, equal arrays counted once."""
        return sum(data.nbytes for data in self.unique_constants.values())

    @cached_property
    def unique_constants(self) -> dict[ConstantKey, np.ndarray]:
        """Constant arrays by content: equal arrays of equal type are stored once."""
        of_stages = [c for group in self.all_groups for stage in group.stages for c in stage.constants]
        return {constant_key(c): c.data for c in (*of_stages, *self.initial_values.values())}

    @property
    def cmsis_nn_functions(self) -> set[str]:
        """CMSIS-NN functions that the module calls."""
        kernels = (stage.kernel for group in self.all_groups for stage in group.stages)
        return {kernel.name for kernel in kernels if kernel.library == "cmsis-nn"}

    @property
    def uses_cmsis_nn(self) -> bool:
        return bool(self.cmsis_nn_functions)

    def cursor_rows(self, group: Group) -> int:
        """Counts the integers that a group keeps between two of its steps (`--max-step`); 0 for a group that is a
        single step.

        They are the rows made per stage, the first row of each sliding ring, and the next piece of a divided call.
        """
        pieces = any(stage.pieces > 1 for stage in group.stages)
        if not group.stages[0].by_row:
            return int(pieces)
        return len(group.stages) + sum(self.storage[op.output].slides for op in group.ops) + pieces

    def offset(self, tensor: Tensor) -> int:
        """Byte offset of a tensor's memory from the arena's start."""
        storage = self.storage[tensor]
        return self.placement.offsets[storage.buffer] + storage.offset

    def stack_offset(self, group: Group) -> int:
        """Byte offset of a group's stack from the arena's start."""
        return self.offset(group.stack[-1].tensor)


def subplans(op: Op) -> dict[int, Plan]:
    """Plans of the graphs that an operator calls, by subgraph number in the file."""
    if not isinstance(op.attributes, Calls):
        return {}
    numbered = zip(op.attributes.numbers, op.attributes.programs, strict=True)
    return {number: program.plan for number, program in numbered if program.plan is not None}


#: alignment in bytes of scratch, which kernels rely on, and so of stacks of rings, which have scratch on top
STACK_ALIGN = 16

#: name and bytes of the buffer with a mark that an inference is under way, and the number of rows fed to it
FEED_STATE, FEED_STATE_BYTES = "feed", 8

#: alignment in bytes of the arena's start, for the widest vector load of any target
ARENA_ALIGN = 16

#: alignment in bytes that kernels' loads need of every tensor: a word; 64-bit elements need more
WORD_ALIGN = 4


def tensor_align(tensor: Tensor) -> int:
    """Alignment in bytes of a tensor, in the arena and in the state."""
    return max(WORD_ALIGN, ITEM_BYTES[tensor.dtype])


def states_align(states: Iterable[Tensor]) -> int:
    """Alignment in bytes of the memory that holds states."""
    return max(map(tensor_align, states), default=WORD_ALIGN)


def states_bytes(offsets: dict[Tensor, int]) -> int:
    """Size of the memory that holds states at those offsets, rounded up so that an array of it keeps the alignment."""
    end, align = max((offset + tensor.bytes for tensor, offset in offsets.items()), default=0), states_align(offsets)
    return -(-end // align) * align


def constant_key(constant: Constant) -> ConstantKey:
    """Key of a constant; constants with equal keys share one array in flash."""
    return (constant.ctype, constant.align, constant.data.dtype.str, constant.data.tobytes())
