"""A step whose frames come row by row (`--feed-rows`): how many rows there are, and what a run on one of them gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tinyfuse.ir import Graph, Tensor
from tinyfuse.ops import FAMILIES
from tinyfuse.slide.needs import Needs


def parts_of(needs: Needs) -> int:
    """In how many rows a step's frames come: each is a frame, or where the model joins several of them to one row
    before anything else, as one of 40 numbers out of a flat input, so many."""
    readers = needs.graph.consumers.get(needs.frames, ())
    if len(readers) != 1 or not FAMILIES[readers[0].kind].alias:
        return needs.analysis.step
    joined = needs.analysis.rows.get(readers[0].output)
    return needs.analysis.step if joined is None or joined.phases > 1 else joined.shift


def with_outputs(graph: Graph, outputs: Sequence[Tensor]) -> Graph:
    """The graph with these tensors in the place of its outputs, of the same shapes."""
    instead = {t: other for t, other in zip(graph.outputs, outputs, strict=True) if t is not other}
    if not instead:
        return graph
    ops = []
    for op in graph.ops:
        made = tuple(instead.get(t, t) for t in op.outputs)
        ops.append(replace(op.reading({t: instead[t] for t in op.activations if t in instead}), outputs=made))
    return replace(graph, ops=tuple(ops), outputs=tuple(outputs))
