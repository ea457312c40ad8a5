"""CONSTANT_OUTPUT: writes a model output that is constant, in the file or because rewrite/fold_constants.py computed
it. Each run writes it to the arena, where the caller reads outputs. Only rewrites make it."""

from __future__ import annotations

from dataclasses import replace

from tinyfuse.ir import ITEM_BYTES, Array, Graph, Op, Tensor, given
from tinyfuse.ops.core.family import OpFamily, Rule


def written(constant: Tensor, output: Tensor) -> Op:
    """Return the operator that copies `constant` to `output`."""
    return Op("CONSTANT_OUTPUT", (constant,), (output,))


def with_written_outputs(graph: Graph) -> Graph:
    """Graph in which an operator writes each constant output; the graph itself if it has no constant output."""
    made = {t: replace(t, data=None) for t in graph.outputs if t.is_constant}
    if not made:
        return graph
    ops = tuple(written(constant, output) for constant, output in made.items())
    return replace(graph, ops=(*graph.ops, *ops), outputs=tuple(made.get(t, t) for t in graph.outputs))


class ConstantOutputFamily(OpFamily):
    """CONSTANT_OUTPUT: copies a constant to an output of the model."""

    kind = "CONSTANT_OUTPUT"
    summary = "an output of the model that is always the same"
    in_files = False
    folds = False
    rules = (
        Rule(
            "a constant output has elements of a dtype that modules have",
            lambda op: None if op.input.dtype in ITEM_BYTES and op.input.elements > 0 else op.input,
            "leave it out of the model",
        ),
    )

    def moves(self, op: Op) -> tuple[int, ...]:
        return (0,)

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        return (given(inputs[0]),)
