"""Replaces a part of a variable in place, for example where a decoder writes a token's keys and values into its caches.

before   %v = READ_VARIABLE(%s);  %w = DYNAMIC_UPDATE_SLICE(%v, %update, %starts);  ASSIGN_VARIABLE(%s, %w)
after    %v = READ_VARIABLE(%s);  UPDATE_STATE(%s, %update, %starts);  %w = READ_VARIABLE(%s)

%v and %w may have any readers: they are copies of the variable before and after the update. Copies without readers are
removed, and rewrite/read_states.py lets most other readers read the variable in place. Several updates may follow each
other, with reshapes in between. From the first update to the assignment, no other operator may use the variable, and
none may change it after it was read; no run may end in between (AWAIT_WINDOW, AWAIT_ROWS).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tinyfuse.ir import Graph, Op, Tensor
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.movement.update_state import UpdateState
from tinyfuse.rewrite.drop_dead import drop_dead


@dataclass(frozen=True, eq=False)
class _Updates:
    """Chain of `updates` between a variable's read and its assignment, in order."""

    state: Tensor
    updates: tuple[Op, ...]
    assign: Op


def update_states(graph: Graph) -> Graph:
    """Graph in which variables are updated in place where possible."""
    before = graph
    for op in before.ops:
        found = _updates(graph, op) if _assigns(op) else None
        if found is not None:
            graph = _in_place(graph, found)
    return drop_dead(graph) if graph is not before else before


def reads_variable(op: Op) -> bool:
    """Tell whether the operator copies a variable."""
    family = FAMILIES[op.kind]
    return family.resource and not family.updates


def _assigns(op: Op) -> bool:
    family = FAMILIES[op.kind]
    return family.resource and bool(family.updates)


def _updates(graph: Graph, assign: Op) -> _Updates | None:
    """Return the updates between an assignment and the read of the same variable; None if they can't run in place."""
    state, updates = assign.input, []
    if state.lent or state.cursor is not None:
        return None
    maker = graph.producer.get(assign.operand(1))
    while maker is not None and not reads_variable(maker):
        if maker.kind == "DYNAMIC_UPDATE_SLICE":
            updates.append(maker)
        elif not FAMILIES[maker.kind].alias:
            return None
        maker = graph.producer.get(maker.input)
    if maker is None or maker.input is not state or not updates:
        return None
    read, first, end = (graph.ops.index(op) for op in (maker, updates[-1], assign))
    if any(state in op.states and not reads_variable(op) for op in graph.ops[read + 1 : first]):
        return None
    if any(state in op.states or _may_end(op) for op in graph.ops[first:end]):
        return None
    return _Updates(state, tuple(reversed(updates)), assign)


def _may_end(op: Op) -> bool:
    """Tell whether some runs end at the operator."""
    family = FAMILIES[op.kind]
    return family.awaits(op) or family.divides


def _in_place(graph: Graph, found: _Updates) -> Graph:
    ops: list[Op] = []
    for op in graph.ops:
        if op in found.updates:
            state, (data, update, starts) = found.state, op.operands
            ops.append(Op("UPDATE_STATE", (state, update, starts), (), UpdateState(data.shape), op.index))
            ops.append(Op("READ_VARIABLE", (state,), op.outputs, index=op.index))
        elif op is not found.assign:
            ops.append(op)
    return replace(graph, ops=tuple(ops))
