"""Turns constants that IF and WHILE pass to the graphs that they run into constants of these graphs.

before   %y = IF(%c, %x, %w) of graphs (%a, %b) -> FULLY_CONNECTED(%a, %b)             %w a constant;
after    %y = IF(%c, %x) of graphs (%a) -> FULLY_CONNECTED(%a, %b)                     %b the constant.

A WHILE qualifies if its body returns the constant unchanged; readers of that output read the constant. An argument
would be copied into the graph's arena, but a constant is read in place. A graph that other operators run too is not
changed, because a module has one function for each graph of the file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from tinyfuse.ir import Graph, Op, Tensor
from tinyfuse.ops.program.control_flow import Calls, called_graphs, given_values


def count_callers(graph: Graph) -> Counter[int]:
    """Count how often operators of the graph, and of all graphs that it runs, name each graph of the file."""
    found: Counter[int] = Counter()
    waiting, seen = [graph], {graph}
    while waiting:
        for number, called in (pair for op in waiting.pop().ops for pair in called_graphs(op)):
            found[number] += 1
            if called not in seen:
                seen.add(called)
                waiting.append(called)
    return found


def hand_in_constants(op: Op, callers: Counter[int]) -> tuple[Op, dict[Tensor, Tensor]]:
    """Return (the operator without its constant arguments, its removed outputs -> their constants); (op, {}) if there
    are none.

    `callers`: runs of each graph, from `count_callers`.
    """
    called = called_graphs(op)
    if not called or None in op.inputs or any(callers[number] != 1 for number, _ in called):
        return op, {}
    values, graphs = given_values(op), [graph for _, graph in called]
    loop = op.kind == "WHILE"
    first = 0 if loop else 1  # input 0 of an IF is its condition
    if any(len(graph.inputs) != len(values) - first for graph in graphs) or (loop and not _is_loop(op, graphs)):
        return op, {}
    handed = {
        i: value
        for i, value in enumerate(values[first:])
        if value is not None and value.is_constant and all(_alike(value, graph.inputs[i]) for graph in graphs)
        if not loop or graphs[1].outputs[i] is graphs[1].inputs[i]
    }
    if not handed or (loop and len(handed) == len(op.outputs)):
        return op, {}
    body = graphs[1] if loop else None
    within = tuple(_with(graph, handed, tuple(handed) if graph is body else ()) for graph in graphs)
    attributes = replace(op.attributes_as(Calls), graphs=within)
    kept = [value for i, value in enumerate(op.inputs) if i - first not in handed or i >= len(values)]
    if not loop:
        return replace(op, inputs=tuple(kept), attributes=attributes), {}
    left = tuple(tensor for i, tensor in enumerate(op.outputs) if i not in handed)
    constants = {op.outputs[i]: _like(op.outputs[i], value) for i, value in handed.items()}
    return replace(op, inputs=tuple(kept), outputs=left, attributes=attributes), constants


def _is_loop(op: Op, graphs: Sequence[Graph]) -> bool:
    """Tell whether a WHILE and its body both have as many outputs as the WHILE has inputs."""
    return len(op.outputs) == len(graphs[1].outputs) == len(graphs[1].inputs) and all(
        _alike(a, b) for a, b in zip(op.outputs, graphs[1].outputs, strict=True)
    )


def _alike(value: Tensor, other: Tensor) -> bool:
    return (value.dtype, value.elements) == (other.dtype, other.elements)


def _like(tensor: Tensor, value: Tensor) -> Tensor:
    """Return the constant in the shape and quantization of `tensor`."""
    return replace(tensor, data=value.values.reshape(tensor.shape))


def _with(graph: Graph, handed: dict[int, Tensor], gone: Sequence[int]) -> Graph:
    """Return the graph with the inputs in `handed` (number -> constant) made constants, and without the outputs
    numbered in `gone`."""
    known = {graph.inputs[i]: _like(graph.inputs[i], value) for i, value in handed.items()}
    return replace(
        graph,
        inputs=tuple(tensor for tensor in graph.inputs if tensor not in known),
        ops=tuple(op.reading(known) for op in graph.ops),
        outputs=tuple(known.get(tensor, tensor) for i, tensor in enumerate(graph.outputs) if i not in gone),
    )
