"""Orders of operators: least peaks against every possible order, operators that must keep their place, and the gain of
a plan over the file's order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from executors import assert_all_exact, assert_exact, plan_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plan_parts import plan_groups, prepare
from random_graphs import Sketch
from set_limits import set_limits
from test_branchy_graphs import branchy

from tinyfuse.compiler import compile_graph, prepare_graph
from tinyfuse.emit import emit
from tinyfuse.explain.explain_json import explain_json
from tinyfuse.explain.text import explain_text
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.ir import Graph, Op, Tensor
from tinyfuse.kernels.core.context import Context
from tinyfuse.ops.movement.concatenation import Concatenation
from tinyfuse.options import OPTIMIZE, Options
from tinyfuse.plan.places import Places, is_alias
from tinyfuse.plan.rows import Stream
from tinyfuse.report.report_json import moved_operators, plan_envelope, report_json
from tinyfuse.report.text import report_text
from tinyfuse.schedule.groups import order
from tinyfuse.schedule.groups.legality import Legality
from tinyfuse.schedule.groups.order import _Units, least_peak, orders
from tinyfuse.schedule.groups.partition import partition
from tinyfuse.schedule.groups.promising_orders import EstimatedStream, better_orders
from tinyfuse.schedule.kernel_choice.stages import make_stages
from tinyfuse.schedule.plan_graph import GraphPlans
from tinyfuse.schedule.plans import search_variants
from tinyfuse.targets import load_target

HOST = load_target("host")


def shuffled(graph: Graph, seed: int) -> Graph:
    """The graph in a random order; operators on states keep theirs."""
    rng, done, ops = np.random.default_rng(seed), set(graph.inputs), []
    waiting = list(graph.ops)
    while waiting:
        next_on_state = next((op for op in waiting if op.states), None)
        ready = [op for op in waiting if done.issuperset(op.activations) and (not op.states or op is next_on_state)]
        ops.append(ready[rng.integers(len(ready))])
        waiting.remove(ops[-1])
        done.update(ops[-1].outputs)
    return replace(graph, ops=tuple(ops))


# --- the least peak --------------------------------------------------------------------------


@st.composite
def graphs(draw, most_operators: int) -> Graph:
    """Draws operators with any number of inputs and outputs, views and states: not runnable, but they have an order."""
    numbers = iter(range(1000))

    def tensor(size: int | None = None, **fields) -> Tensor:
        return Tensor(f"t{next(numbers)}", (size or draw(st.integers(1, 40)),), "int8", **fields)

    inputs = tuple(tensor() for _ in range(draw(st.integers(1, 2))))
    state = tensor(initial=np.zeros(1, np.int8))
    there, ops, places = list(inputs), [], Places()
    for number in range(draw(st.integers(1, most_operators))):
        read = draw(st.lists(st.sampled_from(there), min_size=1, max_size=3, unique=True))
        kind = draw(st.sampled_from(["ADD"] * 3 + ["SPLIT", "RESHAPE", "CONCATENATION"] + ["ASSIGN_VARIABLE"] * 3))
        if kind == "RESHAPE":
            op = Op(kind, (read[0],), (tensor(read[0].bytes),), index=number)
        elif kind == "CONCATENATION":
            op = Op(kind, tuple(read), (tensor(sum(t.bytes for t in read)),), Concatenation(), number)
            op = replace(op, view=all(places.free(op)) and places.free(op) != ())
        else:
            made = tuple(tensor() for _ in range({"SPLIT": 2, "ASSIGN_VARIABLE": 0}.get(kind, 1)))
            op = Op(kind, (state, *read) if kind == "ASSIGN_VARIABLE" else tuple(read), made, index=number)
        if is_alias(op):
            places.add(op)
        ops.append(op)
        there += op.outputs
    unread = [t for t in there[len(inputs) :] if all(t not in op.inputs for op in ops)]
    outputs = tuple(t for t in unread if draw(st.booleans()))
    return Graph("model", "", tuple(ops), inputs, outputs)


def every_order(graph: Graph) -> Iterator[tuple[Op, ...]]:
    def further(done: tuple[Op, ...], there: frozenset[Tensor]) -> Iterator[tuple[Op, ...]]:
        if len(done) == len(graph.ops):
            yield done
        waiting = [op for op in graph.ops if op not in done]
        on_state = [op for op in waiting if op.states]
        for op in waiting:
            if there.issuperset(op.activations) and (not op.states or op is on_state[0]):
                yield from further((*done, op), there | set(op.outputs))

    return further((), frozenset(graph.inputs))


def peak_of(graph: Graph, ops: tuple[Op, ...]) -> int:
    """Peak of live bytes in this order, computed from the definition; a concatenation view counts as one tensor."""
    root = {t: t for op in graph.ops for t in (*op.activations, *op.outputs)} | {t: t for t in graph.inputs}
    for op in graph.ops:
        if is_alias(op):
            joined = {root[t] for t in op.activations} | {op.output}
            largest = max(joined, key=lambda t: t.bytes)  # another name of a part is within the whole
            root = {t: largest if whole in joined else whole for t, whole in root.items()}
    ops = tuple(op for op in ops if not is_alias(op))
    first = {root[t]: 0 for t in graph.inputs}
    last: dict[Tensor, int] = {}
    for step, op in enumerate(ops):
        for tensor in (*op.activations, *op.outputs):
            first.setdefault(root[tensor], step)
            last[root[tensor]] = step
    # what the caller takes stays to the end, and what nobody reads of what he brings
    last |= {root[t]: len(ops) for t in graph.outputs}
    return max(
        (sum(t.bytes for t in first if first[t] <= step <= last.get(t, len(ops))) for step in range(len(ops))),
        default=0,
    )


def units_of(graph: Graph) -> _Units:
    return _Units(graph, lambda a, b: False)


@settings(max_examples=30, deadline=None)
@given(graphs(most_operators=7))
def test_the_least_peak_is_the_least_of_all_orders(graph: Graph) -> None:
    units = units_of(graph)
    if not units.ops:
        return
    found, peak, reached = least_peak(units)
    assert not reached
    assert peak == peak_of(graph, units.flat(found)) == min(peak_of(graph, ops) for ops in every_order(graph))


@settings(max_examples=30, deadline=None)
@given(graphs(most_operators=7), st.integers(1, 30))
def test_a_beam_tells_its_peak_but_claims_nothing(graph: Graph, states: int) -> None:
    units = units_of(graph)
    if not units.ops:
        return
    with pytest.MonkeyPatch.context() as patch:
        set_limits(patch, ORDER_SETS=states)
        found, peak, reached = least_peak(units)
    least = min(peak_of(graph, ops) for ops in every_order(graph))
    assert peak == peak_of(graph, units.flat(found)) >= least
    assert peak == least or reached


# --- what orders are offered -----------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(graphs(most_operators=12), st.integers(0, 99))
def test_every_order_runs_and_keeps_what_is_done_to_states(graph: Graph, seed: int) -> None:
    graph = shuffled(graph, seed)
    found = orders(graph, lambda a, b: True)
    sequences = [[op for op in g.ops if not is_alias(op)] for g in (graph, *found)]
    assert all(a != b for n, a in enumerate(sequences) for b in sequences[:n])  # none twice, nor the file's
    for other in found:
        there = set(other.inputs)
        for op in other.ops:
            assert there.issuperset(op.activations)
            there.update(op.outputs)
        assert sorted(map(id, other.ops)) == sorted(map(id, graph.ops))
        assert [op for op in other.ops if op.states] == [op for op in graph.ops if op.states]


def test_a_chain_has_one_order() -> None:
    sketch = Sketch(1)
    x = sketch.value((1, 8, 4, 4))
    y = sketch.conv(sketch.depthwise(sketch.conv(x, 4, (1, 1)), (3, 3)), 4, (1, 1))
    z = sketch.softmax(sketch.fully_connected(sketch.add(x, y), 4))
    assert orders(read_tflite("model.tflite", sketch.build([x], [z])), lambda a, b: True) == []


def two_towers(length: int = 3) -> bytes:
    """Two images, each through layers that widen it and reduce it to a vector. The file alternates between both, so no
    two adjacent operators can form a group, and two wide tensors are alive."""
    sketch = Sketch(6)
    images = [sketch.value((1, 20, 6, 4)) for _ in range(2)]
    towers = images
    for _ in range(length):
        towers = [sketch.conv(x, 16, (3, 3)) for x in towers]
    first, second = (sketch.fully_connected(x, 8) for x in towers)
    return sketch.build(images, [sketch.add(first, second)])


def test_operators_that_stream_together_come_together() -> None:
    graph = read_tflite("model.tflite", two_towers())
    legality = Legality(graph, Context(HOST))
    found = orders(graph, lambda a, b: legality.refusal([a, b]) is None)
    runs = [[op.index for op in other.ops if op.kind == "CONV_2D"] for other in found]
    assert [0, 2, 4, 1, 3, 5] in runs


def test_siblings_come_one_after_the_other() -> None:
    sketch = Sketch(2)
    x = sketch.value((1, 8, 4, 4))
    t = sketch.conv(x, 8, (1, 1))
    y = sketch.softmax(sketch.depthwise(sketch.depthwise(t, (3, 3)), (3, 3)))
    graph = read_tflite("model.tflite", sketch.build([x], [sketch.add(y, sketch.conv(t, 8, (1, 1)))]))
    units = units_of(graph)
    assert units.flat(order.siblings(units)) == tuple(graph.ops[n] for n in (0, 1, 4, 2, 3, 5))


def test_what_runs_before_the_rows_are_fed_stays_there() -> None:
    sketch = Sketch(3)
    x, other = sketch.value((1, 8, 4, 4)), sketch.value((1, 8, 4, 4))
    wide = sketch.conv(sketch.conv(other, 4, (1, 1)), 40, (1, 1))  # best done late
    y = sketch.add(sketch.conv(sketch.conv(x, 4, (3, 3)), 40, (3, 3)), wide)
    source = read_tflite("model.tflite", sketch.build([x, other], [y]))
    graph, _ = prepare(source, HOST, Options("net", feed_rows=True))
    places = [[op.kind for op in g.ops].index("FEED_ROWS") for g in (graph, *orders(graph, lambda a, b: True))]
    assert set(places) == {2}


# --- the estimate ----------------------------------------------------------------------------


def test_the_estimate_of_plain_chains_is_what_playing_them_gives() -> None:
    sketch = Sketch(4)
    x = sketch.value((1, 24, 6, 4))
    y = sketch.pool(sketch.conv(sketch.depthwise(x, (3, 3)), 8, (5, 3)), "MAX_POOL_2D", (2, 2), (2, 2))
    graph = read_tflite("model.tflite", sketch.build([x], [sketch.depthwise(y, (3, 3))]))
    stages = make_stages(list(graph.ops), Context(HOST))
    played, estimate_mark = (kind(stages, frozenset(graph.outputs)) for kind in (Stream, EstimatedStream))
    rings = sum(rows * t.bytes // t.shape[1] for t, rows in played.rings.items())
    assert estimate_mark.inner_bytes == rings + max(stage.scratch_bytes for stage in stages)
    (output,) = graph.outputs
    assert (
        abs(estimate_mark.overlap_distance(graph.inputs[0], output) - played.overlap_distance(graph.inputs[0], output))
        < 500
    )


# --- plans -----------------------------------------------------------------------------------


@pytest.mark.parametrize("optimize", ["speed", "ram"])
def test_another_order_saves_ram_and_the_report_says_so(optimize: str, monkeypatch) -> None:
    plan = plan_of(two_towers(), optimize=optimize)
    data = plan_envelope(plan) | report_json(plan, 0, None)
    reordering = data["reordering"]
    line = f"order {reordering['operators_moved']} operators run earlier or later than in the file, whose order would take "
    told = " ".join(report_text(plan, data).split())
    assert f"{line}{reordering['file_order_arena_bytes']:,} bytes of arena" in told
    assert line in " ".join(explain_text(plan_envelope(plan) | explain_json(plan)).split())

    monkeypatch.setattr(search_variants, "better_orders", lambda *of: [])
    usual = plan_of(two_towers(), optimize=optimize)
    assert usual.reordering is None and plan.arena_bytes < usual.arena_bytes == reordering["file_order_arena_bytes"]


def test_moved_operators_are_counted_once() -> None:
    assert moved_operators([0, 1, 2, 3]) == moved_operators([]) == moved_operators([2, -1, 2, 3]) == 0
    assert moved_operators([3, 0, 1, 2]) == moved_operators([0, 2, 1, -1, 3]) == 1
    assert moved_operators([0, 2, 4, 1, 3, 5]) == 2


@pytest.mark.parametrize("fusion", ["none", "basic"])
def test_without_rows_the_order_is_that_of_the_file(fusion: str) -> None:
    plan = plan_of(two_towers(), fusion=fusion)
    indices = [op.index for group in plan.groups for op in group.ops]
    assert indices == sorted(indices) and plan.reordering is None


def check(data: bytes, seed: int, optimize: str) -> None:
    """Checks that a model with another order in its file is exact in all orders that are offered."""
    source = shuffled(read_tflite("model.tflite", data), seed)
    options = Options("net", optimize=optimize)
    graph, context = prepare(source, HOST, options)
    plans = [
        plan_groups(source, other, partition(other, context, "rows"), context, options)
        for other in orders(graph, lambda a, b: True)
    ]
    assert_all_exact([compile_graph(source, HOST, options), *plans], runs=2)


@pytest.mark.slow
@settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))
@given(branchy(most_operators=10), st.integers(0, 99), st.sampled_from(OPTIMIZE))
def test_shuffled_networks_are_exact(data: bytes, seed: int, optimize: str) -> None:
    check(data, seed, optimize)


@pytest.mark.campaign
@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(branchy(), st.integers(0, 99), st.sampled_from(OPTIMIZE))
def test_many_shuffled_networks_are_exact(data: bytes, seed: int, optimize: str) -> None:
    check(data, seed, optimize)


@pytest.mark.parametrize("work", [None, 300, 60])
def test_one_search_serves_every_aim(monkeypatch, work: int | None) -> None:
    """The plans equal those of separate searches. A result for one aim is not searched again, if the budget sufficed
    for all."""
    if work is not None:
        set_limits(monkeypatch, GROUP_ROWS=work)
    looked, front = [], search_variants.pareto_front
    monkeypatch.setattr(search_variants, "pareto_front", lambda *of, **how: looked.append(of[:2]) or front(*of, **how))
    source, options = read_tflite("model.tflite", two_towers()), Options("net")
    common = GraphPlans(source, prepare_graph(source, HOST, options), HOST, options)
    shared = [common.plan(replace(options, optimize=optimize)) for optimize in OPTIMIZE]
    if work is None:
        assert len(looked) == len(set(looked)) > len(OPTIMIZE)
    for optimize, plan in zip(OPTIMIZE, shared, strict=True):
        alone = compile_graph(source, HOST, replace(options, optimize=optimize))
        assert plan.options == alone.options
        assert (plan.placement, plan.reordering) == (alone.placement, alone.reordering)
        assert emit(plan) == emit(alone)


@pytest.mark.slow
def test_two_towers_are_exact_one_after_the_other() -> None:
    plan = plan_of(two_towers(), optimize="ram")
    assert plan.reordering is not None and max(len(group.ops) for group in plan.groups) > 1
    assert_exact(plan, runs=2)
    assert emit(plan) == emit(plan_of(two_towers(), optimize="ram"))


def test_few_orders_seem_better_and_all_fit_the_budget() -> None:
    graph = read_tflite("model.tflite", two_towers())
    assert 1 <= len(better_orders(graph, Context(HOST), 1 << 30)) <= 2
    assert better_orders(graph, Context(HOST), 100) == []
