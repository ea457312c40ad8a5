"""Steps whose frames come row by row (`--feed-rows`): number of rows, and the graph that a run on one of them
computes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tinyfuse.ir import Graph, Tensor
from tinyfuse.ops import FAMILIES
from tinyfuse.slide.needs import Needs


def rows_per_step(needs: Needs) -> int:
    """Number of rows in which a step's frames come.

    A row is a frame, unless the model first reshapes several elements of a flat input to one row, such as 40
    numbers.
    """
    readers = needs.graph.consumers.get(needs.frames, ())
    if len(readers) != 1 or not FAMILIES[readers[0].kind].alias:
        return needs.analysis.step
    joined = needs.analysis.rows.get(readers[0].output)
    return needs.analysis.step if joined is None or joined.phases > 1 else joined.shift


def replace_outputs(graph: Graph, outputs: Sequence[Tensor]) -> Graph:
    """Replaces the graph's outputs by other tensors of the same shapes."""
    instead = {t: other for t, other in zip(graph.outputs, outputs, strict=True) if t is not other}
    if not instead:
        return graph
    ops = []
    for op in graph.ops:
        made = tuple(instead.get(t, t) for t in op.outputs)
        ops.append(replace(op.reading({t: instead[t] for t in op.activations if t in instead}), outputs=made))
    return replace(graph, ops=tuple(ops), outputs=tuple(outputs))
