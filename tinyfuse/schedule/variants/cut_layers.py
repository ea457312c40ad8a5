"""Divides a layer whose output channels are split (rewrite/cut_layers.py) if that is predicted to take fewer
instructions. The split then copies nothing, but each new layer gathers and widens the input's windows again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tinyfuse.cost.predict import kernel_instructions
from tinyfuse.ir import Graph, Op, Saving
from tinyfuse.kernels.core.context import Context
from tinyfuse.plan.places import is_alias
from tinyfuse.rewrite.cut_layers import cut_layers, cut_where
from tinyfuse.schedule.kernel_choice.stages import make_stages


def cut_faster_layers(graph: Graph, context: Context) -> Graph:
    """Graph with layers of fewer channels; the same object if there is nothing to cut."""

    def instructions(ops: Sequence[Op]) -> float:
        stages = (make_stages([op], context)[0] for op in ops if not is_alias(op))
        return sum(kernel_instructions(stage, context) for stage in stages)

    after = cut_where(graph, lambda ops, cut: instructions(cut) < instructions(ops))
    if after is graph:
        return graph
    kept = set(after.ops)
    saving = Saving(cut_layers.__name__, tuple(op for op in graph.ops if op not in kept), 0, 0)
    return replace(after, savings=(*graph.savings, saving))
