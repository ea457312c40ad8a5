"""Computes a graph by the references of its operators, one after the other."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence

import numpy as np

from tinyfuse.ir import Array, Graph, Tensor
from tinyfuse.ops.core.family import OpFamily
from tinyfuse.ops.program.control_flow import RunEnds


def run_graph(
    families: Mapping[str, OpFamily], graph: Graph, inputs: Sequence[Array], states: MutableMapping[Tensor, Array]
) -> list[Array]:
    """Outputs of one run, in the dtypes and shapes of the graph's outputs; `inputs` have those of its inputs. `states`
    are updated in place. If the run ends without a result, the outputs are zeros."""
    try:
        return run_through(families, graph, inputs, states)
    except RunEnds:
        return [np.zeros(t.shape, t.dtype) for t in graph.outputs]


def run_through(
    families: Mapping[str, OpFamily], graph: Graph, inputs: Sequence[Array], states: MutableMapping[Tensor, Array]
) -> list[Array]:
    """Run a graph and return its outputs; raises RunEnds if the run ends without a result."""
    values = dict(zip(graph.inputs, inputs, strict=True))
    for op in graph.ops:
        family = families[op.kind]
        arguments = [
            None if t is None else t.data if t.is_constant else states[t] if t.is_state else values[t]
            for t in op.inputs
        ]
        try:
            results = family.reference(op, *arguments)
        except RunEnds as ended:
            states.update(ended.states)
            raise
        values.update(zip(op.outputs, results[: len(op.outputs)], strict=True))
        updated = (op.operand(i) for i in family.updated(op))
        states.update(zip(updated, results[len(op.outputs) :], strict=True))
        if family.ends_run(op, results):
            raise RunEnds({})
    return [t.values if t.is_constant else values[t] for t in graph.outputs]
