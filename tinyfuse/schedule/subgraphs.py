"""Plans of the graphs that IF and WHILE call. Each has its own arena, in the scratch of its caller."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tinyfuse.ir import Graph, Op
from tinyfuse.ops.program.control_flow import Calls, InputItself, Program, called_graphs, given_values, with_states
from tinyfuse.plan import Plan

#: programs made so far, by graph
Programs = dict[Graph, Program]


def plan_subgraphs(graph: Graph, plan_of: Callable[[Graph], Plan], known: Programs) -> Graph:
    """Graph whose operators have the plans of the graphs that they call; the same graph if there are none. `known`
    caches plans: those that are missing are added."""
    if not any(called_graphs(op) for op in graph.ops):
        return graph

    def planned(op: Op) -> Op:
        graphs = [called for _, called in called_graphs(op)]
        for called in graphs:
            if called not in known:
                known[called] = _program(called, plan_of)
        if not graphs:
            return op
        calls = replace(op.attributes_as(Calls), programs=tuple(known[called] for called in graphs))
        return with_states(replace(op, inputs=given_values(op), attributes=calls))

    return replace(graph, ops=tuple(planned(op) for op in graph.ops))


def _program(graph: Graph, plan_of: Callable[[Graph], Plan]) -> Program:
    """Plans a graph as a program.

    An input that is returned unchanged as the output of the same index needs no place. Loop values that change their
    index would overwrite one another, so they are copied through the arena.
    """
    found = {
        i: tensor.values if tensor.is_constant else InputItself(i)
        for i, tensor in enumerate(graph.outputs)
        if tensor.is_constant or tensor in graph.inputs[i : i + 1]
    }
    computed = {i: tensor for i, tensor in enumerate(graph.outputs) if i not in found}
    outputs = tuple(dict.fromkeys(computed.values()))
    read = {tensor for op in graph.ops for tensor in op.activations} | set(outputs)
    inputs = tuple(tensor for tensor in graph.inputs if tensor in read)
    if not outputs and not graph.states:
        return Program(None, (None,) * len(graph.inputs), tuple(found[i] for i in range(len(graph.outputs))), 0)
    plan = plan_of(replace(graph, inputs=inputs, outputs=outputs))
    return Program(
        plan,
        tuple(plan.offset(tensor) if tensor in read else None for tensor in graph.inputs),
        tuple(plan.offset(computed[i]) if i in computed else found[i] for i in range(len(graph.outputs))),
        plan.arena_bytes,
    )
