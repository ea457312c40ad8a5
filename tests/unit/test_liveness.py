"""Lifetimes of tensors against their definition; liveness in an order and over sets of operators agree."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from test_operator_order import graphs, shuffled

from tinyfuse.ir import Graph, Op, Tensor
from tinyfuse.ops.movement.concatenation import Concatenation
from tinyfuse.plan.liveness import BEFORE, Change, Liveness, span
from tinyfuse.plan.places import Places, is_alias


def tensor(name: str, size: int) -> Tensor:
    return Tensor(name, (size,), "int8")


def places_of(graph: Graph) -> Places:
    return Places(op for op in graph.ops if is_alias(op))


def joined() -> tuple[Graph, dict[str, Tensor]]:
    """x -> a -> b; x -> c; w is [b, c], a view; w -> y; z is an input without readers."""
    sizes = {"x": 10, "a": 4, "b": 3, "c": 5, "w": 8, "y": 2, "z": 7}
    named = {name: tensor(name, size) for name, size in sizes.items()}
    x, a, b, c, w, y, z = named.values()
    ops = (
        Op("RELU", (x,), (a,)),
        Op("RELU", (a,), (b,)),
        Op("RELU", (x,), (c,)),
        Op("CONCATENATION", (b, c), (w,), Concatenation(), view=True),
        Op("RELU", (w,), (y,)),
    )
    return Graph("model", "", ops, (x, z), (y,)), named


def test_a_root_lives_from_its_first_part_to_the_last_use_of_any() -> None:
    graph, named = joined()
    x, a, _, _, w, y, z = named.values()
    steps = [(op,) for op in graph.ops if not is_alias(op)]
    live = Liveness(graph, steps, places_of(graph))
    assert live.uses == {x: [BEFORE, 0, 2], z: [BEFORE], a: [0, 1], w: [1, 2, 3], y: [3, 4]}
    assert live.makers == {a: [0], w: [1, 2], y: [3]}
    assert (live.first(w), live.last(w), live.after) == (1, 3, 4)
    assert live.provided == [x, z]
    assert live.passing == [[x], [x], [w], []]
    assert live.touched == [[x, a], [a, w], [x, w], [w, y]]
    assert live.alive.tolist() == [10 + 7, 10 + 4, 10 + 4 + 8, 10 + 8, 8 + 2, 2]
    assert live.inner == frozenset()


def test_what_one_step_alone_makes_and_reads_is_inner() -> None:
    graph, named = joined()
    first, second, third, _, last = graph.ops
    live = Liveness(graph, [(first, second), (third,), (last,)], places_of(graph))
    assert live.inner == {named["a"]}
    assert named["a"] not in live.touched[0]
    # nobody reads it, or the caller takes it: it has to be written somewhere
    unread = replace(graph, ops=(first,), inputs=(named["x"],), outputs=())
    assert not Liveness(unread, [(first,)], Places()).inner
    taken = replace(graph, ops=(first, second), outputs=(named["a"], named["b"]))
    assert not Liveness(taken, [(first, second)], Places()).inner


def test_a_join_is_what_the_view_would_have_been_from_the_start() -> None:
    graph, named = joined()
    b, c, w = (named[name] for name in "bcw")
    copied = replace(graph, ops=tuple(replace(op, view=False) for op in graph.ops))
    live = Liveness(copied, [(op,) for op in copied.ops], Places())
    live.join([b, c, w], w, [1, 2, 4])
    viewed = Liveness(graph, [() if is_alias(op) else (op,) for op in graph.ops], places_of(graph))
    assert live.alive.tolist() == viewed.alive.tolist()
    assert live.uses == viewed.uses


def test_the_span_of_uses_in_any_order() -> None:
    assert span([4, BEFORE, 2]) == slice(0, 6)


@settings(max_examples=30, deadline=None)
@given(graphs(most_operators=9), st.integers(0, 1000))
def test_in_any_order_sets_of_steps_say_the_same(graph: Graph, seed: int) -> None:
    """The steps keep their numbers, and run in another order."""
    numbered, places = [op for op in graph.ops if not is_alias(op)], places_of(graph)
    order = [op for op in shuffled(graph, seed).ops if not is_alias(op)]
    fixed = Liveness(graph, [(op,) for op in numbered], places)
    played = Liveness(graph, [(op,) for op in order], places)
    unread = [root for root in played.provided if len(played.uses[root]) == 1]
    alive, ran = sum(root.bytes for root in played.provided if root not in unread), 0
    for step, op in enumerate(order):
        change = Change(fixed, numbered.index(op))
        alive += change.new_bytes(ran)
        assert alive == played.alive[step + 1]
        ran |= 1 << numbered.index(op)
        alive -= change.freed_bytes(ran)
    assert alive == played.alive[-1]
    # and an order's own numbers, by definition
    for root, uses in played.uses.items():
        having = [step for step, op in enumerate(order) if root in map(places.root, (*op.activations, *op.outputs))]
        taken = [len(order)] * (root in map(places.root, graph.outputs))
        assert uses == [BEFORE] * (root in map(places.root, graph.inputs)) + having + taken
