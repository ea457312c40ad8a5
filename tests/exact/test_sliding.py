"""`--slide`: a step computes what the whole model computes over the window, bit for bit."""

from __future__ import annotations

import shutil

import pytest
from executors import assert_exact, plan_of
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from sliding_models import assert_slides, dense_first, gesture, padded, step_of, time_networks, wake_word
from stream_models import STREAM_MODELS

from tinyfuse.errors import CompileError, UsageError
from tinyfuse.ops import FAMILIES

emulated = pytest.mark.skipif(
    shutil.which("arm-none-eabi-gcc") is None or shutil.which("qemu-system-arm") is None,
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)

#: model and step; windows of 20, 21 and 32 frames
MODELS = {
    "wake word": (wake_word(), 1),
    "wake word by three": (wake_word(), 3),
    "wake word of int16": (wake_word(dtype="int16"), 2),
    "wake word of floats": (wake_word(dtype="float32"), 2),
    "padded": (padded(), 2),
    "padded by four": (padded(), 4),
    "gesture": (gesture(), 1),
    "gesture, causal": (gesture(causal=True), 4),
    "dense": (dense_first(), 2),
}


def macs(graph) -> int:
    return sum(FAMILIES[op.kind].macs(op) for op in graph.ops)


# --- the step graph, by references -------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_models(name: str) -> None:
    data, step = MODELS[name]
    assert_slides(step_of(data, step), more=12)


def check_random(data: bytes, step: int) -> None:
    try:
        graph = step_of(data, step)
    except CompileError as error:
        assume("--slide" not in str(error))
        raise
    assert_slides(graph)


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=time_networks(), step=st.integers(1, 6))
def test_random_networks(data: bytes, step: int) -> None:
    check_random(data, step)


@pytest.mark.campaign
@settings(max_examples=4000, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=time_networks(12), step=st.integers(1, 8))
def test_many_random_networks(data: bytes, step: int) -> None:
    check_random(data, step)


def test_only_new_rows_are_made() -> None:
    """Without padding along time, a layer of h rows makes one."""
    graph = step_of(wake_word(), 1)
    rows = {op.index: op.output.shape[1] for op in graph.ops if FAMILIES[op.kind].convolution}
    assert rows == {0: 1, 1: 1, 2: 1, 3: 1}
    assert 5 * macs(graph) < macs(graph.window.whole)


def test_a_time_axis_of_columns_becomes_rows() -> None:
    """Keras' Conv1D: nothing but reshapes at the end is left of what stood around it."""
    graph = step_of(gesture(), 1)
    kinds = [op.kind for op in graph.ops]
    assert "EXPAND_DIMS" not in kinds
    assert [op.output.shape[1:3] for op in graph.ops if op.kind == "CONV_2D"] == [(1, 1), (1, 1)]
    assert 5 * macs(graph) < macs(graph.window.whole)


# --- the C -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("wake word", {}),
        ("wake word by three", {"fusion": "basic"}),
        ("wake word of int16", {"optimize": "ram"}),
        ("padded", {"optimize": "ram"}),
        ("padded by four", {"fusion": "none"}),
        ("gesture", {"optimize": "speed"}),
    ],
)
def test_host(name: str, options: dict[str, str]) -> None:
    data, step = MODELS[name]
    plan = plan_of(data, slide=step, **options)
    assert plan.awaits
    assert plan.state_bytes > 0
    assert_exact(plan, 4 * plan.source.window.steps_to_fill + 40)


@pytest.mark.campaign
@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=time_networks(), step=st.integers(1, 6), optimize=st.sampled_from(["speed", "balanced", "ram"]))
def test_random_networks_on_the_host(data: bytes, step: int, optimize: str) -> None:
    try:
        plan = plan_of(data, slide=step, optimize=optimize)
    except CompileError as error:
        assume("--slide" not in str(error))
        raise
    assert_exact(plan, 4 * plan.source.window.steps_to_fill + 20)


@emulated
@pytest.mark.parametrize(("name", "target"), [("padded", "cortex-m4"), ("wake word", "cortex-m55")])
def test_emulated(name: str, target: str) -> None:
    data, step = MODELS[name]
    plan = plan_of(data, target, slide=step)
    assert_exact(plan, 4 * plan.source.window.steps_to_fill + 20)


# --- what is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "step", "axis", "message", "hint"),
    [
        (wake_word(), 20, None, "the window has 20 frames", "give a step below 20"),
        (padded(), 1, None, "its stride of 2 rows does not divide the 1 new ones", "give --slide 2, or a multiple"),
        (padded(), 3, None, "its stride of 2 rows does not divide the 3 new ones", "give --slide 2, or a multiple"),
        (gesture(), 1, 2, "no input has frames along dimension 2", "give --slide-axis 1"),
        (STREAM_MODELS["keyword spotter"], 1, None, "keeps state", "leave --slide out"),
    ],
)
def test_refusals(data: bytes, step: int, axis: int | None, message: str, hint: str) -> None:
    with pytest.raises(CompileError) as refused:
        step_of(data, step, axis)
    (problem,) = refused.value.problems
    assert message in problem.message
    assert hint in problem.hint
    assert problem.tensor


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"slide": 1, "feed_rows": True}, "give one of the two"),
        ({"slide_axis": 1}, "give --slide too"),
    ],
)
def test_options_that_do_not_go_together(options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        plan_of(wake_word(), **options)


def test_a_step_that_the_hint_names_works() -> None:
    assert macs(step_of(padded(), 6)) < macs(step_of(padded(), 6).window.whole)


def test_a_model_without_gain_is_warned_of() -> None:
    """It is exact all the same: the window is kept, and the model computed."""
    (warning,) = step_of(dense_first(), 2).warnings
    assert "each step computes the whole model" in warning
    assert "FULLY_CONNECTED" in warning or "RESHAPE" in warning
