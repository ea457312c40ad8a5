"""IF and WHILE: graphs that run graphs, against TensorFlow Lite Micro."""

from __future__ import annotations

import numpy as np
import pytest
from control_flow_models import (
    AWAITING,
    MODELS,
    STREAMS,
    accumulating,
    below,
    choice,
    flag,
    image,
    iteration,
    loop,
    resource,
    unary,
    with_handle,
)
from core_rotation import rotate_cores
from executors import assert_all_exact, assert_exact, assert_reference_is_tflm, plan_of
from tflite_builder import ModelBuilder

from tinyfuse.emit import emit
from tinyfuse.errors import CompileError


@pytest.mark.parametrize("name", MODELS | STREAMS)
def test_reference_equals_tflm(name):
    assert_reference_is_tflm((MODELS | STREAMS)[name](), runs=20)


@pytest.mark.parametrize(("fusion", "target"), [("none", "host"), ("rows", "host"), *rotate_cores(["none", "rows"])])
def test_modules_are_exact(fusion, target):
    plans = [plan_of(make(), target, f"m{i}", fusion=fusion) for i, make in enumerate(MODELS.values())]
    assert_all_exact(plans)


@pytest.mark.parametrize(
    "name",
    [
        "a variable whose handle is handed on", "a graph that stores alone", "a variable two levels down",
        "initialized by both, each once",
    ],
)  # fmt: skip
def test_modules_whose_graphs_keep_state_are_exact(name):
    assert_exact(plan_of(STREAMS[name]()), runs=8)


@pytest.mark.parametrize("name", ["a loop on a handle", "an SVDF or nothing", "initialized in a loop"])
def test_they_are_exact_on_a_core(name):
    assert_exact(plan_of(STREAMS[name](), "cortex-m4"), runs=8)


@pytest.mark.parametrize("name", AWAITING)
def test_a_graph_that_waits_ends_the_run(name: str) -> None:
    assert_reference_is_tflm(AWAITING[name](), 24)


@pytest.mark.parametrize("target", ["host", "cortex-m4"])
def test_modules_with_graphs_that_wait_are_exact(target: str) -> None:
    for make in AWAITING.values():
        assert_exact(plan_of(make(), target), 24)


def test_a_state_of_a_graph_lies_among_those_of_the_model():
    plan = plan_of(STREAMS["two variables"](), "cortex-m4")
    assert plan.state_bytes == 64 and [state.name for state in plan.states] == ["v", "w"]
    text = emit(plan)["net.c"]
    assert text.count("static int net_subgraph_1(uint8_t *arena, uint8_t *state)") == 1
    assert "memset((uint8_t *)state + 32u, 3, 32u)" in text  # the zero point


def test_graphs_that_run_no_state_get_none():
    """Only one of two graphs has state; a value that is read and not used is not a state."""
    text = emit(plan_of(STREAMS["a variable of a graph"](), "cortex-m4"))["net.c"]
    assert "net_subgraph_2(uint8_t *arena)" in text
    model = ModelBuilder()
    x, y = image(model, "x"), image(model, "y")
    model.op("RELU", [x], [y])
    before, handle = image(model, "before"), resource(model, "h")
    model.op("VAR_HANDLE", [], [handle], shared_name="v", container="")
    model.op("READ_VARIABLE", [handle], [before])
    assigned = choice((model, [x], [y]), accumulating())
    assert_exact(plan_of(assigned), runs=4)


def test_graphs_that_an_operator_runs_share_bytes():
    """Condition and body lie in the same scratch; what the body reads and writes is there only while it runs."""
    plan = plan_of(MODELS["a loop of five iterations"](), "cortex-m4")
    bodies = [inner.arena_bytes for inner in plan.subplans.values()]
    assert max(group.scratch_bytes for group in plan.groups) == max(bodies) < sum(bodies)


def test_a_shared_graph_is_one_function():
    text = emit(plan_of(MODELS["graphs that are shared"](), "cortex-m4"))["net.c"]
    assert text.count("static int net_subgraph_1(") == 1
    assert text.count("net_subgraph_1(") == 3


# --- what is refused -----------------------------------------------------------------------------


def _refusal(data: bytes) -> str:
    with pytest.raises(CompileError) as refused:
        plan_of(data)
    return str(refused.value)


def _initializing(subgraph: int):
    model = ModelBuilder()
    x, y = image(model, "x"), image(model, "y")
    model.op("CALL_ONCE", [], [], init_subgraph_index=subgraph)
    model.op("RELU", [x], [y])
    return model, [x], [y]


def _two_handles() -> bytes:
    """Two IFs that run one graph, on two variables."""
    model = ModelBuilder()
    chosen, values = flag(model, "chosen"), [image(model, f"x{i}") for i in range(3)]
    for i, name in enumerate("vw"):
        handle = resource(model, name)
        model.op("VAR_HANDLE", [], [handle], shared_name=name, container="")
        model.op("IF", [chosen, handle, values[i]], [values[i + 1]], then_subgraph_index=1, else_subgraph_index=2)
    called = [accumulating(handed=True), with_handle(unary("RELU"))]
    return model.build([chosen, values[0]], [values[2]], called=called)


def _other_size():
    model = ModelBuilder()
    x, y = image(model, "x"), model.tensor("y", (1, 2, 2, 2), scale=0.5, zero_point=3)
    model.op("MAX_POOL_2D", [x], [y], stride_h=2, stride_w=2, filter_height=2, filter_width=2)
    return model, [x], [y]


def _calling(number: int):
    model = ModelBuilder()
    chosen, x, y = flag(model, "chosen", True), image(model, "x"), image(model, "y")
    model.op("IF", [chosen, x], [y], then_subgraph_index=number, else_subgraph_index=number)
    return model, [x], [y]


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (lambda: choice(unary("RELU"), _calling(2)), "it runs the subgraph that it is in"),
        (lambda: choice(unary("RELU"), _calling(0)), "it runs the subgraph that it is in"),
        (lambda: choice(_calling(2), _calling(1)), "it runs the subgraph that it is in"),
        (lambda: choice(unary("RELU"), _calling(9)), "in subgraph 2: it runs subgraph 9, of 3"),
        (lambda: choice(unary("RELU"), _initializing(1)), "subgraph 1: op 0 RELU 'y': its input is not a constant"),
        (lambda: choice(unary("RELU"), _initializing(2)), "in subgraph 2: it calls the subgraph that it is in"),
        (lambda: choice(unary("RELU"), _initializing(9)), "in subgraph 2: it calls subgraph 9, of 3"),
        (lambda: choice(unary("RELU"), accumulating(handed=True)), "nothing has made its resource"),
        (_two_handles, "it stands for several variables"),
        (lambda: choice(unary("RELU"), _other_size()), "both graphs take its other inputs and make its outputs"),
        (lambda: choice(unary("RELU"), iteration()), "both graphs take its other inputs and make its outputs"),
        (lambda: choice(unary("RELU"), unary("SIGN")), "in subgraph 2: this operator is not supported"),
        (lambda: loop(below(3), unary("RELU")), "the condition's graph makes one bool"),
        (lambda: loop(iteration(), iteration()), "the condition's graph makes one bool"),
        (lambda: choice(*(_calling(i) for i in range(2, 22)), unary("RELU")), "levels deep"),
    ],
)  # fmt: skip
def test_refused(data, told):
    assert told in _refusal(data())


def test_a_broken_rule_inside_is_told_with_its_subgraph():
    model = ModelBuilder()
    x, y = image(model, "x"), model.tensor("y", (1, 4, 4, 2), "int16", scale=0.5, zero_point=0)
    model.op("HARD_SWISH", [x], [y])
    told = _refusal(choice(unary("RELU"), (model, [x], [y])))
    assert "in subgraph 2: " in told and "HARD_SWISH" in told


def test_graphs_shared_at_every_level_are_looked_at_once():
    """Each level runs the next one four times: 4^14 ways to the last."""

    def level(number: int):
        model = ModelBuilder()
        chosen, values = flag(model, "chosen", True), [image(model, "x")]
        for i in range(4):
            values.append(image(model, f"y{i}"))
            model.op("IF", [chosen, values[-2]], [values[-1]], then_subgraph_index=number, else_subgraph_index=number)
        return model, [values[0]], [values[-1]]

    levels = [level(number) for number in range(3, 15)]
    plan = plan_of(choice(level(2), *levels, unary("RELU")))
    assert len(plan.subplans) == 14
    assert np.isfinite(plan.arena_bytes)
