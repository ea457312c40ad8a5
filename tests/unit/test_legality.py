"""Legality of fusion groups: each rule refuses what it is for, and nothing else."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st
from random_graphs import Sketch, networks

from tinyfuse.frontend.reader import read_tflite
from tinyfuse.ir import Graph
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.registry import kernels_for
from tinyfuse.rewrite import rewrite
from tinyfuse.schedule.groups.legality import Legality
from tinyfuse.schedule.groups.search import pareto_front
from tinyfuse.targets import load_target

CONTEXT = Context(load_target("cortex-m4"))


def graph_of(sketch: Sketch, inputs, outputs) -> Graph:
    return read_tflite("model.tflite", sketch.build(inputs, outputs))


def rule(graph: Graph, *numbers: int, context: Context = CONTEXT) -> str | None:
    refusal = Legality(graph, context).refusal([graph.ops[i] for i in numbers])
    return refusal and refusal.rule


def diamond() -> Graph:
    """Operators 0 -> 1 -> 2 -> ADD 3, and 0 -> 3."""
    sketch = Sketch(1)
    start = sketch.value((1, 9, 6, 4))
    x = sketch.conv(start, 8, (1, 1))
    y = sketch.depthwise(x, (3, 3))
    z = sketch.conv(y, 8, (1, 1))
    return graph_of(sketch, [start], [sketch.add(x, z)])


def test_a_path_through_an_operator_outside_is_a_cycle() -> None:
    graph = diamond()
    assert rule(graph, 0, 3) == rule(graph, 0, 1, 3) == "cycle"
    refusal = Legality(graph, CONTEXT).refusal([graph.ops[0], graph.ops[3]])
    assert str(graph.ops[2]) in str(refusal) and not refusal.final
    assert rule(graph, 0, 1, 2, 3) is None


def test_an_operator_beside_the_group_is_no_cycle() -> None:
    graph = diamond()
    assert rule(graph, 0, 1) is rule(graph, 1, 2) is rule(graph, 1, 2, 3) is None


def test_a_renaming_between_two_operators_is_a_cycle_for_good() -> None:
    sketch = Sketch(2)
    x = sketch.value((1, 6, 4, 2))
    y = sketch.reshape(sketch.conv(x, 4, (1, 1)), (1, 4, 6, 4))
    graph = graph_of(sketch, [x], [sketch.depthwise(y, (3, 3))])
    refusal = Legality(graph, CONTEXT).refusal([graph.ops[0], graph.ops[2]])
    assert refusal.rule == "cycle" and refusal.final
    assert rule(graph, 0, 1) == "barrier"


def test_what_needs_whole_inputs_is_a_barrier() -> None:
    sketch = Sketch(3)
    x = sketch.value((1, 6, 4, 2))
    y = sketch.conv(x, 4, (3, 3))
    graph = graph_of(sketch, [x], [sketch.softmax(sketch.fully_connected(y, 5))])
    assert [op.kind for op in graph.ops] == ["CONV_2D", "RESHAPE", "FULLY_CONNECTED", "SOFTMAX"]
    assert rule(graph, 0, 2) == rule(graph, 2, 3) == "barrier"
    assert rule(graph, 3) is None  # alone, it need not stream


def test_kernels_without_rings_are_a_barrier_behind_another_stage_only() -> None:
    sketch = Sketch(4)
    x = sketch.value((1, 9, 6, 4))
    y = sketch.conv(sketch.depthwise(x, (3, 3)), 8, (1, 1))
    graph = graph_of(sketch, [x], [sketch.depthwise(y, (3, 3))])
    legality = Legality(graph, CONTEXT)
    assert legality.barrier(graph.ops[0], rings=True) is None
    without = Legality(graph, Context(CONTEXT.target, kernels="tinyfuse", lacks=frozenset(
        kernel.name for op in graph.ops for kernel in _ours(op) if kernel.rings
    )))  # fmt: skip
    assert "from a ring" in without.barrier(graph.ops[2], rings=True)


def _ours(op):
    return kernels_for(op)


def test_strangers_are_no_group_and_siblings_are() -> None:
    sketch = Sketch(5)
    x, other = sketch.value((1, 6, 4, 2)), sketch.value((1, 6, 4, 2))
    y, twin, far = sketch.conv(x, 4, (3, 3)), sketch.conv(x, 4, (1, 1)), sketch.conv(other, 4, (1, 1))
    graph = graph_of(sketch, [x, other], [y, twin, far])
    assert rule(graph, 0, 1) is None
    assert rule(graph, 0, 2) == rule(graph, 0, 1, 2) == "unconnected"


def test_what_a_later_operator_joins_are_no_strangers() -> None:
    sketch = Sketch(7)
    x, other = sketch.value((1, 6, 4, 2)), sketch.value((1, 6, 4, 2))
    joined = sketch.add(sketch.conv(x, 4, (3, 3)), sketch.conv(other, 4, (1, 1)))
    graph = graph_of(sketch, [x, other], [joined])
    refusal = Legality(graph, CONTEXT).refusal(graph.ops[:2])
    assert refusal.rule == "unconnected" and not refusal.final
    assert rule(graph, 0, 1, 2) is None


def test_a_quantization_boundary_is_an_operator_like_any_other() -> None:
    sketch = Sketch(6)
    x = sketch.value((1, 6, 4, 2))
    y = sketch.conv(x, 4, (3, 3))
    middle = sketch.value(y.shape)
    sketch.model.op("QUANTIZE", [y.index], [middle.index])
    graph = graph_of(sketch, [x], [sketch.conv(middle, 4, (3, 3))])
    assert graph.ops[1].input.quant != graph.ops[1].output.quant
    assert rule(graph, 0, 1, 2) is None


def test_what_somebody_outside_needs_is_written_whole() -> None:
    graph = diamond()
    legality, outputs = Legality(graph, CONTEXT), [op.output for op in graph.ops]
    assert legality.leaving(graph.ops) == {outputs[3]}
    assert legality.leaving(graph.ops[:2]) == {outputs[0], outputs[1]}
    assert legality.leaving(graph.ops[1:3]) == {outputs[2]}
    kept = Graph(graph.path, graph.sha256, graph.ops, graph.inputs, (outputs[3], outputs[1]))
    assert Legality(kept, CONTEXT).leaving(graph.ops) == {outputs[1], outputs[3]}


@settings(max_examples=20, deadline=None)
@given(networks(most_layers=6), st.data())
def test_a_cycle_is_what_leaves_no_order_of_execution(data: bytes, draw) -> None:
    """Against the definition: with the group as one node, the rest has a topological order or not."""
    graph = read_tflite("model.tflite", data)
    pairs = list(combinations(range(len(graph.ops)), 2)) or [(0,)]
    members = {graph.ops[i] for i in draw.draw(st.sampled_from(pairs))}
    ops = [op for op in graph.ops if op in members]
    refusal = Legality(graph, CONTEXT)._cycle(ops)
    assert (refusal is not None) == (not _has_order(graph, members))


def _has_order(graph: Graph, members: set) -> bool:
    done, waiting = set(graph.inputs), [op for op in graph.ops if op not in members]
    made = {t for op in members for t in op.outputs}
    needed = {t for op in members for t in op.activations} - made
    group_ran = False
    while True:
        ready = [op for op in waiting if done.issuperset(op.activations)]
        if not group_ran and needed <= done:
            done |= made
            group_ran = True
        elif not ready:
            return group_ran and not waiting
        for op in ready:
            done.update(op.outputs)
            waiting.remove(op)


@settings(max_examples=20, deadline=None)
@given(networks())
def test_the_search_makes_legal_groups_alone(data: bytes) -> None:
    graph = rewrite(read_tflite("model.tflite", data), "rows", "auto")
    legality = Legality(graph, CONTEXT)
    for candidate in pareto_front(graph, CONTEXT, 1 << 30):
        for group in candidate.groups:
            assert legality.refusal(group) is None
