"""`--slide`: a step computes what the whole model computes over the window, bit for bit."""

from __future__ import annotations

import shutil
from dataclasses import replace
from itertools import combinations

import pytest
from executors import assert_exact, plan_of
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from set_limits import set_limits
from sliding_models import (
    assert_slides,
    dense_first,
    gesture,
    padded,
    step_of,
    steps_of_model,
    time_networks,
    wake_word,
)
from stream_models import STREAM_MODELS

import tinyfuse
from tinyfuse.emit import emit
from tinyfuse.errors import CompileError, UsageError
from tinyfuse.explain.explain_json import explain_json
from tinyfuse.explain.text import explain_text
from tinyfuse.ops import FAMILIES
from tinyfuse.plan import Plan
from tinyfuse.report.pareto import pareto_json
from tinyfuse.report.report_json import plan_envelope
from tinyfuse.slide.front import front
from tinyfuse.slide.needs import Needs, macs_of
from tinyfuse.slide.step_graph import needs_of
from tinyfuse.slide.work import work_of
from tinyfuse.verify.streams import count_results, steps_for, steps_in_streams

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
    "padded by one": (padded(), 1),
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


def check_random(data: bytes, step: int, choice: int) -> None:
    """Checks the step graph that `choice` selects. They differ in what is kept as state and what is recomputed."""
    try:
        graphs = steps_of_model(data, step)
    except CompileError as error:
        assume("--slide" not in str(error))
        raise
    assert_slides(graphs[-1 - choice % len(graphs)])


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=time_networks(), step=st.integers(1, 6), choice=st.integers(0, 3))
def test_random_networks(data: bytes, step: int, choice: int) -> None:
    check_random(data, step, choice)


@pytest.mark.campaign
@settings(max_examples=4000, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=time_networks(12), step=st.integers(1, 8), choice=st.integers(0, 9))
def test_many_random_networks(data: bytes, step: int, choice: int) -> None:
    check_random(data, step, choice)


def test_only_new_rows_are_made() -> None:
    """Without padding along time, each layer makes one row."""
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


# --- what is kept and what is made again -------------------------------------------------------


def step_work(needs: Needs) -> int:
    """Estimated instructions of all operators of a step."""
    work = 0
    for op in needs.graph.ops:
        rows = needs.rows.get(op.output) if op.outputs else None
        work += macs_of(op, None) if rows is None else work_of(op, rows, needs.analysis)
    return work


def test_the_front_is_that_of_all_choices() -> None:
    """Every choice of tensors to make again, of a model with SAME padding and a residual: none beats the front's."""
    window = step_of(padded(), 2).window
    needs = needs_of(window)
    numbers = [n for n, op in enumerate(needs.graph.ops) if op.outputs and op.output in needs.rows]
    assert len(numbers) == 5
    points = set()
    for size in range(len(numbers) + 1):
        for again in combinations(numbers, size):
            made = needs_of(replace(window, again=frozenset(again)))
            points.add((sum(rows.kept_bytes(t) for t, rows in made.rows.items()), step_work(made)))
    best = sorted(p for p in points if not any(q != p and q[0] <= p[0] and q[1] <= p[1] for q in points))
    assert [(choice.state_bytes, choice.work) for choice in front(needs)] == best
    assert len(best) > 3


def test_every_step_graph_is_exact() -> None:
    graphs = steps_of_model(padded(), 2)
    for graph, choice in zip(graphs, front(needs_of(graphs[-1].window)), strict=True):
        assert_slides(graph)
        assert macs(graph) <= choice.work
        rings = [t for t in graph.states if t.cursor is not None]
        assert sum(t.bytes for t in rings) == choice.state_bytes


def test_options_choose_among_step_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    set_limits(monkeypatch, STEPS=3)
    plans = {name: plan_of(padded(9), "cortex-m4", slide=2, optimize=name) for name in ("speed", "balanced", "ram")}
    ram = {name: plan.ram_bytes for name, plan in plans.items()}
    assert ram["ram"] < ram["balanced"] <= ram["speed"]
    assert plans["speed"].macs < plans["ram"].macs
    between = (9 * ram["ram"] + ram["speed"]) // 10
    held = plan_of(padded(9), "cortex-m4", slide=2, optimize="speed", max_ram=between)
    assert held.ram_bytes <= between
    assert plans["speed"].macs < held.macs <= plans["ram"].macs
    shown = pareto_json(plans["balanced"])
    assert [p["arena_bytes"] + p["state_bytes"] for p in shown] == sorted(
        p["arena_bytes"] + p["state_bytes"] for p in shown
    )
    assert {name for point in shown for name in point["optimize"]} == {"speed", "balanced", "ram"}


# --- the C -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("wake word", {}),
        ("wake word by three", {"fusion": "basic"}),
        ("wake word of int16", {"optimize": "ram"}),
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
@pytest.mark.parametrize(("name", "target"), [("padded", "cortex-m4"), ("padded by one", "cortex-m55")])
def test_emulated(name: str, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    set_limits(monkeypatch, STEPS=2)  # which step graph is chosen is no matter
    data, step = MODELS[name]
    plan = plan_of(data, target, slide=step)
    assert_exact(plan, 4 * plan.source.window.steps_to_fill + 20)


# --- what is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "step", "axis", "message", "hint"),
    [
        (wake_word(), 20, None, "the window has 20 frames", "give a step below 20"),
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
        ({"slide": 1, "step": True}, "exclude each other"),
        ({"slide_axis": 1}, "works only with --slide"),
    ],
)
def test_options_that_do_not_go_together(options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        plan_of(wake_word(), **options)


def test_a_step_that_the_hint_names_works() -> None:
    assert macs(step_of(padded(), 6)) < macs(step_of(padded(), 6).window.whole)


def test_a_model_without_gain_is_warned_of() -> None:
    """The module is still exact: it keeps the window and computes the whole model."""
    (warning,) = step_of(dense_first(), 2).warnings
    assert "each step computes the whole model" in warning
    assert "FULLY_CONNECTED" in warning or "RESHAPE" in warning


# --- verify, profile, report -------------------------------------------------------------------


@emulated
def test_verify_and_profile_say_worst_and_mean() -> None:
    data, step = MODELS["wake word"]
    module = tinyfuse.compile(data, "cortex-m4", slide=step)
    found = module.verify(oracle="reference", runs=12)
    assert found.unproven
    assert found.runs == 12
    assert found.frames == 20 - 1 + 3
    assert 0 < found.instructions_mean <= found.instructions
    profiled = module.profile()
    assert profiled["instructions_mean"] <= profiled["instructions"]
    assert abs(profiled["instructions"] - found.instructions) < 0.02 * found.instructions
    assert sum(group["instructions"] for group in profiled["groups"]) <= profiled["instructions"]
    assert profiled["state_bytes"] == module.state_bytes


def spoil(monkeypatch: pytest.MonkeyPatch, file: str, of: str, instead: str) -> None:
    """Replaces text in a file of every module that is run."""

    def faulty(plan: Plan) -> dict[str, str]:
        files = emit(plan)
        files[file].index(of)  # a ValueError is no fault found
        return files | {file: files[file].replace(of, instead)}

    monkeypatch.setattr("tinyfuse.verify.emulation.module.emit", faulty)


def test_verify_finds_a_result_a_step_too_early(monkeypatch: pytest.MonkeyPatch) -> None:
    spoil(monkeypatch, "tinyfuse_await.h", "return *left > 0;", "return *left > 1;")
    module = tinyfuse.compile(wake_word(), "host", name="net", slide=1)
    found = module.verify(emulator="host", oracle="reference", runs=20, compiler="clang")
    assert not found.unproven


@pytest.mark.parametrize(
    ("file", "of", "instead"),
    [
        ("tinyfuse_ring.h", "*cursor + 1 == height ? 0", "*cursor + 1 == height ? 1"),
        ("net.h", "#define NET_SLIDE_STEP 1", "#define NET_SLIDE_STEP 2"),
    ],
)
def test_verifys_harness_finds_faults(monkeypatch: pytest.MonkeyPatch, file: str, of: str, instead: str) -> None:
    """A ring that leaves its first row out, a header that is wrong."""
    plan = plan_of(wake_word(), slide=1)
    spoil(monkeypatch, file, of, instead)
    with pytest.raises(AssertionError):
        assert_exact(plan, 4 * plan.source.window.steps_to_fill + 20)


def test_runs_and_frames() -> None:
    """`runs` steps have a result, however they are cut into streams."""
    for fill in (2, 5, 30):
        for runs in (1, 2, 3, 7, 8, 9, 64):
            steps, frames = steps_for(runs, fill)
            assert count_results(steps, frames, fill) == runs
            assert count_results(steps_in_streams(runs, fill + 1, fill), fill + 1, fill) >= runs
    module = tinyfuse.compile(wake_word(), "host", slide=1)
    with pytest.raises(tinyfuse.UsageError, match="20 steps fill the window"):
        module.verify(emulator="host", oracle="reference", frames=19)


def test_report_and_explain() -> None:
    module = tinyfuse.compile(padded(), "cortex-m4", slide=2)
    window = module.report()["window"]
    assert (window["frames"], window["step"], window["steps_to_fill"], window["axis"]) == (21, 2, 11, 1)
    assert window["whole_macs"] > module.macs
    assert "whole    without --slide the model takes" in module.report_text()
    told = explain_json(module.plan)
    rows = {op["index"]: op for op in told["sliding"]["operators"]}
    assert rows[0]["rows"] == 11
    assert rows[0]["new_rows"] == 1 < rows[0]["made_rows"] < 11
    assert rows[5]["running_sum"] and rows[5]["kept_bytes"] == 4 * 6 and rows[5]["reason"] is None
    assert any("padding 'valid'" in advice["hint"] for advice in told["advice"])
    assert "rows made" in explain_text(plan_envelope(module.plan) | told)


@pytest.mark.parametrize("slide", [0, -1, True, "2", 1.5])
def test_steps_that_are_none(slide: object) -> None:
    with pytest.raises(tinyfuse.UsageError, match="slide="):
        tinyfuse.compile(wake_word(), "host", slide=slide)
