"""IF and WHILE: graphs that run graphs, against TensorFlow Lite Micro."""

from __future__ import annotations

import numpy as np
import pytest
from control_flow_models import MODELS, below, choice, flag, image, loop, turn, unary
from executors import assert_all_exact, assert_reference_is_tflm, plan_of
from tflite_builder import ModelBuilder

from tinyfuse.emit import emit
from tinyfuse.errors import CompileError


@pytest.mark.parametrize("name", MODELS)
def test_reference_equals_tflm(name):
    assert_reference_is_tflm(MODELS[name]())


@pytest.mark.parametrize("target", ["host", "cortex-m4", "cortex-m55"])
@pytest.mark.parametrize("fusion", ["none", "rows"])
def test_modules_are_exact(target, fusion):
    plans = [plan_of(make(), target, f"m{i}", fusion=fusion) for i, make in enumerate(MODELS.values())]
    assert_all_exact(plans)


def test_graphs_that_an_operator_runs_share_bytes():
    """Condition and body lie in the same scratch; what the body reads and writes is there only while it runs."""
    plan = plan_of(MODELS["a loop of five turns"](), "cortex-m4")
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


def _with_variable():
    model = ModelBuilder()
    x, handle, y = image(model, "x"), model.tensor("h", (), "resource"), image(model, "y")
    model.op("VAR_HANDLE", [], [handle], shared_name="v", container="")
    model.op("READ_VARIABLE", [handle], [y])
    return model, [x], [y]


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
        (lambda: choice(unary("RELU"), _with_variable()), "in subgraph 2: it uses a variable"),
        (lambda: choice(unary("RELU"), _other_size()), "both graphs take its other inputs and make its outputs"),
        (lambda: choice(unary("RELU"), turn()), "both graphs take its other inputs and make its outputs"),
        (lambda: choice(unary("RELU"), unary("SIGN")), "in subgraph 2: this operator is not supported"),
        (lambda: loop(below(3), unary("RELU")), "the condition's graph makes one bool"),
        (lambda: loop(turn(), turn()), "the condition's graph makes one bool"),
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
