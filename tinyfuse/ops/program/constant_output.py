"""CONSTANT_OUTPUT: an operator of ours. An output of the model that is a constant, in the file or because
rewrite/fold_constants.py computed it, is written by each run, where whoever calls it looks for it."""

from __future__ import annotations

from dataclasses import replace

from tinyfuse.ir import ITEM_BYTES, Array, Graph, Op, Tensor, given
from tinyfuse.ops.core.family import OpFamily, Rule


def written(constant: Tensor, output: Tensor) -> Op:
    """The operator that writes it."""
    return Op("CONSTANT_OUTPUT", (constant,), (output,))


def with_written_outputs(graph: Graph) -> Graph:
    """The graph, its constant outputs written by operators; itself where there are none."""
    made = {t: replace(t, data=None) for t in graph.outputs if t.is_constant}
    if not made:
        return graph
    ops = tuple(written(constant, output) for constant, output in made.items())
    return replace(graph, ops=(*graph.ops, *ops), outputs=tuple(made.get(t, t) for t in graph.outputs))


class ConstantOutputFamily(OpFamily):
    """Input: a constant; the output is the same."""

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
