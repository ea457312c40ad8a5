"""Convolutions read the rows of a ring where they lie.

before   %w = RING_ROWS(%cursor, %ring), all its rows;  %y = CONV_2D(%w, ...)
after    %y = CONV_2D(%ring, ...)

Done if every reader of %w is a convolution that can read a ring (`ring_window.reads_rings`), and pushes run before it.
"""

from __future__ import annotations

from dataclasses import replace

from tinyfuse.ir import Graph, Op, Tensor
from tinyfuse.rewrite.ring_window import reads_rings


def read_rings(graph: Graph) -> Graph:
    """Let convolutions read rings in place instead of copies."""
    instead: dict[Tensor, Tensor] = {}
    for op in graph.ops:
        if op.kind == "RING_ROWS" and _is_read_in_place(graph, op):
            instead[op.output] = op.operand(1)
    if not instead:
        return graph
    kept = (op for op in graph.ops if instead.keys().isdisjoint(op.outputs))
    return replace(graph, ops=tuple(op.reading(instead) for op in kept))


def _is_read_in_place(graph: Graph, copy: Op) -> bool:
    ring, rows = copy.operand(1), copy.output
    if rows.shape != ring.shape or rows in graph.outputs:
        return False
    readers = graph.consumers.get(rows, ())
    if not readers or not all(op.activations == (rows,) and reads_rings(op) for op in readers):
        return False
    after = graph.ops[graph.ops.index(copy) :]
    return not any(op.kind == "RING_PUSH" and op.operand(1) is ring for op in after)
