"""Rules on which operators may form one fusion group.

A group is legal if its loop over rows can compute it:

barrier      every operator can make its output row by row: images [1, H, W, C] in and out, a row window for every
             input, a kernel that computes rows (from rings, after another stage).
library      under `--kernels cmsis-nn`, an operator that CMSIS-NN computes only whole is in no group, unless it reads
             an image that is fed by rows.
cycle        nothing outside the group lies between two of its operators: it would have to run after one and before
             the other. An operator that only renames bytes (RESHAPE, a view) is always outside.
divided      no AWAIT_ROWS lies between two of its operators: those after it run only once all rows of a step are there.
state        operators on states must keep their order, and a group runs at the place of its first operator. So an
             operator on a state is the group's first one, or all operators on states from the group's first operator up
             to it are in the group and only read states.
unconnected  shared tensors, made or read, connect all operators (those of two branches may be connected only by a
             later one).
fed          an image that is fed by rows never exists whole: all its readers are in the group.
partial      sums that only the next operator can use (ROW_SUM) never exist whole: it is in the group.

A quantization boundary (QUANTIZE, DEQUANTIZE, rescaling) is an ordinary operator, legal if it streams. A tensor that is
needed outside is no obstacle either: it is written whole (`leaving`), which costs RAM.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tinyfuse.ir import Graph, Op, Tensor
from tinyfuse.kernels.core.context import Context
from tinyfuse.ops import FAMILIES
from tinyfuse.plan.places import is_alias
from tinyfuse.schedule.kernel_choice.select import loses_cmsis_nn, operand_needed_whole, row_kernel


@dataclass(frozen=True)
class Refusal:
    """Reason why operators form no group.

    rule    name of the broken rule
    op      operator that breaks it
    reason  text for people
    final   adding operators after them cannot make it legal
    """

    rule: str
    op: Op
    reason: str
    final: bool

    def __str__(self) -> str:
        return f"{self.op}: {self.reason}"


class Legality:
    """Decides which groups of a graph are legal in a context, and caches properties of single operators."""

    def __init__(self, graph: Graph, context: Context):
        self.graph, self.context = graph, context
        self._position = {op: index for index, op in enumerate(graph.ops)}
        self._barriers: dict[tuple[Op, bool], str | None] = {}
        self._members: dict[tuple[Op, bool], Refusal | None] = {}
        self._divides = [index for index, op in enumerate(graph.ops) if FAMILIES[op.kind].divides]
        self._never = frozenset(op for op in graph.ops if FAMILIES[op.kind].source or FAMILIES[op.kind].partial)

    def refusal(self, ops: Sequence[Op]) -> Refusal | None:
        """Reason why `ops`, in an order of execution, cannot form a group; None if they can. A single operator need not
        run by rows."""
        if len(ops) == 1:
            return self._never_whole(ops)
        inside, known, is_chain, first = set[Tensor](), self._members, True, ops[0]
        for op in ops:
            reads_inside = not inside.isdisjoint(op.activations)
            is_chain = is_chain and (reads_inside or op is first)
            member = op, reads_inside or op.reads_ring
            if member not in known:
                known[member] = self._no_member(*member)
            if refusal := known[member]:
                return refusal
            if op.states and op is not first and not self._keeps_order(ops, op):
                return Refusal("state", op, "it would run before operators on its state", final=True)
            inside.update(op.outputs)
        apart = self._divided(ops) or self._cycle(ops) or (None if is_chain else self._unconnected(ops))
        return apart or self._never_whole(ops)

    def _keeps_order(self, ops: Sequence[Op], op: Op) -> bool:
        """Tells whether the loop keeps the order of operators on states up to `op`: the group contains all of them
        since its first operator, and they only read states."""
        first, place = self._position[ops[0]], self._position[op]
        between = [other for other in self.graph.ops[first : place + 1] if other.states]
        inside = [other for other in ops[: ops.index(op) + 1] if other.states]
        return between == inside and all(map(_only_reads, inside))

    def _no_member(self, op: Op, rings: bool) -> Refusal | None:
        """Refuses an operator as a member of any group; `rings`: one of its inputs is a ring of rows."""
        barrier = self.barrier(op, rings)
        if barrier:
            return Refusal("barrier", op, barrier, final=True)
        if self._loses_library(op, rings):
            return Refusal("library", op, "CMSIS-NN computes it whole, and not by rows", final=True)
        return None

    def leaving(self, ops: Sequence[Op]) -> frozenset[Tensor]:
        """Tensors that the group must write whole: outputs of the model, tensors that an operator outside reads, and
        tensors that no operator reads."""
        members = set(ops)
        return frozenset(
            tensor
            for op in ops
            for tensor in op.outputs
            if tensor in self.graph.outputs
            or not members.issuperset(self.graph.consumers.get(tensor, ()))
            or tensor not in self.graph.consumers
        )

    def barrier(self, op: Op, rings: bool) -> str | None:
        """Finds why `op` cannot compute its output row by row, None if it can; `rings`: an input is a ring of rows."""
        if (op, rings) not in self._barriers:
            self._barriers[op, rings] = self._find_barrier(op, rings)
        return self._barriers[op, rings]

    def _find_barrier(self, op: Op, rings: bool) -> str | None:
        if is_alias(op):
            return "renames bytes, and takes no part in a loop over rows"
        if len(op.outputs) != 1:
            return "has several outputs" if op.outputs else "has no output"
        for tensor in (*op.activations, op.output):
            if not tensor.is_image:
                return f"{tensor} is not an image [1, H, W, C]"
        if (operand := operand_needed_whole(op)) is not None:
            return f"each row of its output needs the whole of {operand}"
        if row_kernel(op, self.context, rings) is None:
            return "no kernel computes it row by row" + (" from a ring of rows" if rings else "")
        return None

    def _loses_library(self, op: Op, rings: bool) -> bool:
        if not loses_cmsis_nn(op, self.context, rings):
            return False
        makers = (self.graph.producer.get(tensor) for tensor in op.activations)
        return not any(maker is not None and FAMILIES[maker.kind].source for maker in makers)

    def _divided(self, ops: Sequence[Op]) -> Refusal | None:
        """Refuses a group with AWAIT_ROWS between its operators: those before it run once per row, the others once per
        step."""
        if not self._divides:
            return None
        start = min(self._position[op] for op in ops)
        for op in ops:
            if any(start < border < self._position[op] for border in self._divides):
                return Refusal("divided", op, "it runs once a step, and others for each row of it", final=True)
        return None

    def _cycle(self, ops: Sequence[Op]) -> Refusal | None:
        """Reason to refuse a group that reads a tensor that an operator outside computes from the group's own output;
        None without one."""
        positions = [self._position[op] for op in ops]
        start, end = min(positions), max(positions)
        if end - start + 1 == len(ops):
            return None  # nothing lies between them
        members = set(ops)
        # tensors computed from the group's output -> the last operator outside on the way
        descends: dict[Tensor, Op] = {}
        made: set[Tensor] = set()
        for op in self.graph.ops[start : end + 1]:
            outside = next((descends[t] for t in op.activations if t in descends), None)
            if op in members:
                if outside is not None:
                    reason = f"it reads what {outside}, outside the group, makes of the group's own output"
                    return Refusal("cycle", op, reason, final=is_alias(outside))
                made.update(op.outputs)
            elif outside is not None or made.intersection(op.activations):
                descends.update(dict.fromkeys(op.outputs, op))
        return None

    @staticmethod
    def _unconnected(ops: Sequence[Op]) -> Refusal | None:
        """Refuses a group with an operator that no shared tensors connect to `ops[0]`."""
        joined = {*ops[0].activations, *ops[0].outputs}
        waiting = list(ops[1:])
        while waiting:
            left = []
            for op in waiting:
                if joined.isdisjoint(op.activations) and joined.isdisjoint(op.outputs):
                    left.append(op)
                else:
                    joined.update(op.activations, op.outputs)
            if len(left) == len(waiting):
                reason = "it shares no tensor with the other operators"
                return Refusal("unconnected", left[0], reason, final=False)
            waiting = left
        return None

    def _never_whole(self, ops: Sequence[Op]) -> Refusal | None:
        """Refuses a group if an operator outside reads a tensor of it that must not be kept whole."""
        if not self._never:
            return None
        for op in [op for op in ops if op in self._never]:
            family = FAMILIES[op.kind]
            for reader in self.graph.consumers.get(op.output, ()):
                if reader not in ops:
                    rule, reason = "fed", f"it needs the whole of {op.output}, which comes row by row"
                    if family.partial:
                        rule, reason = "partial", f"it takes the sums of {op} as they grow"
                    return Refusal(rule, reader, reason, final=is_alias(reader))
        return None


def _only_reads(op: Op) -> bool:
    """Tells whether an operator does not change states, and reads a whole state for each row."""
    return not FAMILIES[op.kind].updated(op) and all(state.cursor is None for state in op.states)
