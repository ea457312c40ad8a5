"""`report --pareto` against every plan that its options can produce."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from executors import plan_of
from random_graphs import Sketch
from set_limits import set_limits
from sized_networks import line_network
from stacked_networks import inverted

from tinyfuse import limits
from tinyfuse.api.settings import make_options
from tinyfuse.compiler import Compiler, compile_graph
from tinyfuse.cost.predict import predicted_total
from tinyfuse.limits import Reached
from tinyfuse.options import OPTIMIZE, Options
from tinyfuse.plan import Plan
from tinyfuse.report.pareto import pareto_json, pareto_lines


def narrowing() -> bytes:
    sketch = Sketch(1)
    x = sketch.value((1, 24, 24, 3))
    y = sketch.depthwise(sketch.conv(x, 8, (3, 3), (2, 2)), (3, 3))
    y = sketch.depthwise(sketch.conv(y, 16, (1, 1)), (3, 3), (2, 2))
    return sketch.build([x], [sketch.mean(sketch.conv(y, 16, (1, 1)))])


MODELS = {"inverted residuals": inverted, "narrowing": narrowing}


def point_of(plan: Plan) -> tuple[int, int]:
    return plan.ram_bytes, predicted_total(plan) or 0


@pytest.mark.slow
@pytest.mark.parametrize(("model", "weights"), [
    pytest.param(MODELS[name], weights, id=f"{name}-{weights}", marks=[] if here else [pytest.mark.campaign])
    for name, weights, here in (("narrowing", "auto", True), ("narrowing", "packed", False),
                                ("inverted residuals", "packed", False), ("inverted residuals", "auto", False))
])  # fmt: skip
def test_no_plan_of_any_options_beats_the_front(model: Callable[[], bytes], weights: str) -> None:
    """Each point is the plan of its options, and only points that --optimize takes may be beaten by another one."""
    plan, reached = plan_of(model(), "cortex-m4", weights=weights), Reached()
    front = pareto_json(plan, reached=reached)
    assert limits.FRONT not in reached.found
    at = [(point["arena_bytes"] + point["state_bytes"], point["predicted_instructions"]) for point in front]
    compiler, found = Compiler(plan.source, plan.context.target), set[tuple[int, int]]()
    least, largest = min(ram for ram, _ in at), max(ram for ram, _ in at)
    sizes = range(least, largest + 4, max(4, (largest - least) // 4))
    for most in (*sizes, *(ram - 1 for ram, _ in at)):
        for optimize in OPTIMIZE:
            made = compiler.plan(Options("net", optimize=optimize, weights=weights, max_ram=most))
            found |= {point_of(made)} if made.ram_bytes <= most else set()
    assert len(found) > 3 and len(at) > 3
    for ram, instructions in found:
        assert any(a <= ram and b <= instructions for a, b in at), (ram, instructions)
    text, place = " ".join(" ".join(pareto_lines(front)).split()), 0
    for point, here in zip(front, at, strict=True):
        beaten = any(a != here and a[0] <= here[0] and a[1] <= here[1] for a in at)
        assert point["optimize"] or not beaten
        for asked in point["options"]:
            words = asked.split()
            given = {flag[2:].replace("-", "_"): value for flag, value in zip(words[::2], words[1::2], strict=True)}
            options = make_options({"weights": weights, **given}, "net", plan.context.target)
            assert point_of(compile_graph(plan.source, plan.context.target, options)) == here
        # each point's options follow its RAM, in the order of the points
        place = text.index(f"{here[0]:,} ", place)
        assert text.index(" or ".join(point["options"]), place) >= place


def test_weights_are_asked_for_where_they_would_be_others() -> None:
    points = pareto_json(plan_of(narrowing(), "cortex-m4"))
    every = [words for point in points for words in point["options"]]
    assert all(("--weights packed" in words) == ("--optimize speed" in words) for words in every)
    assert all(
        "--weights" not in words
        for point in points
        if "balanced" in point["optimize"]
        for words in point["options"][:1]
    )


@pytest.mark.slow
@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m55"])
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_balanced_and_speed_find_the_same_in_the_same_ram(model: Callable[[], bytes], target: str) -> None:
    balanced = plan_of(model(), target)
    held = plan_of(model(), target, optimize="speed", max_ram=balanced.ram_bytes)
    assert held.ram_bytes <= balanced.ram_bytes and point_of(held)[1] == point_of(balanced)[1]


def test_balanced_is_no_plan_that_is_larger_and_slower_than_that_for_speed() -> None:
    """In this network, `speed` saves RAM too: it lays lines out as rows and takes kernels with less scratch."""
    model = line_network(41_001, "int8")
    balanced, fastest = (point_of(plan_of(model, "cortex-m55", optimize=name)) for name in ("balanced", "speed"))
    # drop_rare_kernels may add some instructions to save code
    assert balanced[0] < fastest[0] or balanced[1] <= 1.01 * fastest[1]


def test_a_front_of_many_points_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    set_limits(monkeypatch, FRONT=0)
    reached = Reached()
    front = pareto_json(plan_of(narrowing(), "cortex-m4"), reached=reached)
    assert all(point["optimize"] for point in front) and limits.FRONT in reached.found
