"""`--slide` with the layers of models over time: strides that don't divide a step, sums over time, layers of each
frame, and operators that move frames or channels."""

from __future__ import annotations

import random

import numpy as np
import pytest
from executors import plan_of
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from random_graphs import Sketch
from sliding_models import (
    assert_slides,
    conv1d,
    frame_networks,
    frames_from,
    gesture,
    mean_over,
    padded,
    stacked,
    step_of,
    steps_of_model,
    time_networks,
    wake_word,
)
from stream_program import assert_all_stream

import tinyfuse
from tinyfuse.errors import CompileError
from tinyfuse.explain.explain_json import explain_json
from tinyfuse.ir import Graph
from tinyfuse.ops import FAMILIES
from tinyfuse.slide import account
from tinyfuse.slide.ring import Ring


def macs(graph: Graph) -> int:
    return sum(FAMILIES[op.kind].macs(op) for op in graph.ops)


def kinds(graph: Graph) -> list[str]:
    return [op.kind for op in graph.ops]


def ends_of(graph: Graph) -> dict[str, str | None]:
    """For each kind of operator that makes no rows, the reason."""
    return {step.op.kind: step.end.reason for step in account(graph.window) if step.end is not None}


# --- strides that do not divide the step -------------------------------------------------------


@pytest.mark.parametrize("step", [1, 3])
def test_steps_that_strides_do_not_divide(step: int) -> None:
    """Steps alternate between two phases; a layer makes only its new rows."""
    graphs = steps_of_model(padded(), step)
    assert_slides(graphs[-1], more=12)
    assert_slides(graphs[0], more=6)
    (told,) = graphs[-1].warnings
    assert "2 steps that take turns; a multiple of --slide 2" in told
    assert macs(graphs[-1]) < macs(graphs[-1].window.whole)


def test_a_stride_alone_makes_one_row_a_step() -> None:
    s = Sketch(3)
    x = frames = s.value((1, 40, 1, 4), name="frames")
    for _ in range(3):
        x = s.conv(x, 4, (3, 1), (2, 1), "VALID")
    graph = step_of(s.build([frames], [s.mean(x)]), 1)
    assert [op.output.shape[1] for op in graph.ops if op.kind == "CONV_2D"] == [1, 1, 1]
    assert_slides(graph, more=20)


@pytest.mark.parametrize("seed", range(12))
def test_places_in_rings(seed: int) -> None:
    """A ring as steps push it: every row of the window, and those that leave it, are where they should be."""
    chance = random.Random(seed)
    shift, phases, count = chance.randint(1, 4), chance.randint(1, 4), chance.randint(1, 12)
    ring = Ring((2, 2 + shift + count), shift, phases, leaving=True)
    memory = [None] * ring.height
    windows = {-phase: [None] * (shift + count) for phase in range(1, phases + 1)}
    for step in range(12):
        before = windows[step - phases]
        pieces = list(ring.pieces((2 - shift, 2)))
        left = [memory[ring.place(start) + shift + i] for start, end in pieces for i in range(end - start)]
        assert left == before[:shift]
        new = [(step, i) for i in range(shift)]
        memory = [*memory, *new][-ring.height :]
        windows[step] = [*before, *new][-shift - count :]
        assert [memory[ring.place(row)] for row in range(*ring.rows)] == windows[step]
        for start, end in ring.pieces(ring.rows):
            assert ring.place(end - 1) - ring.place(start) == end - 1 - start


# --- sums over time ----------------------------------------------------------------------------


def summed(kind: str, dtype: str = "int8", width: int = 2, height: int = 24, padding: str = "VALID") -> bytes:
    s = Sketch(8, dtype=dtype)
    frames = s.value((1, height, width, 4), name="frames")
    x = s.conv(frames, 6, (3, 1), padding=padding)
    if kind == "AVERAGE_POOL_2D":
        return s.build([frames], [s.pool(x, kind, x.shape[1:3], (1, 1))])
    return s.build([frames], [mean_over(s, x, [1, 2], False, kind)])


@pytest.mark.parametrize("kind", ["MEAN", "SUM", "AVERAGE_POOL_2D"])
@pytest.mark.parametrize("dtype", ["int8", "int16"])
@pytest.mark.parametrize(("step", "padding"), [(1, "VALID"), (3, "SAME")])
def test_sums_move(kind: str, dtype: str, step: int, padding: str) -> None:
    graph = step_of(summed(kind, dtype, padding=padding), step)
    assert kind not in kinds(graph)
    assert_slides(graph, more=12)
    rows = [t.shape[1] for op in graph.ops if op.kind == "MOVE_SUM" for t in op.inputs[1:]]
    assert sum(rows) == 2 * step + 2 * (padding == "SAME")


def test_sums_of_floats_depend_on_their_order() -> None:
    graph = step_of(summed("MEAN", "float32"), 1)
    assert "MOVE_SUM" not in kinds(graph)
    assert ends_of(graph)["MEAN"] == "sums of floats depend on their order"
    assert_slides(graph)


def test_where_adding_and_taking_off_takes_as_much_sums_are_whole() -> None:
    graph = step_of(summed("MEAN", height=9), 4)
    assert "MOVE_SUM" not in kinds(graph)
    assert_slides(graph)


def test_sums_of_frames_themselves_and_over_all_there_is() -> None:
    s = Sketch(5)
    frames = s.value((1, 20, 3))
    outputs = [mean_over(s, frames, axes, keep) for axes, keep in (([1], False), ([1, 2], True), ([-2], True))]
    graph = step_of(s.build([frames], outputs), 2)
    assert kinds(graph).count("MOVE_SUM") == 3
    assert_slides(graph)


def extreme(kind: str, dtype: str, height: int, stride: int = 1, padding: str = "VALID") -> bytes:
    s = Sketch(16, dtype=dtype)
    frames = s.value((1, height, 2, 4), name="frames")
    x = s.conv(frames, 3, (3, 1), (stride, 1), padding)
    if kind == "MAX_POOL_2D":
        return s.build([frames], [s.pool(x, kind, x.shape[1:3], (1, 1))])
    axes = [1] if kind == "REDUCE_MIN" else [1, 2]
    return s.build([frames], [mean_over(s, x, axes, False, kind)])


@pytest.mark.parametrize("kind", ["REDUCE_MAX", "REDUCE_MIN", "MAX_POOL_2D"])
@pytest.mark.parametrize(("height", "stride", "step"), [(29, 1, 1), (50, 1, 2), (64, 2, 1)])
def test_extremes_by_halves(kind: str, height: int, stride: int, step: int) -> None:
    dtype = "int16" if kind == "MAX_POOL_2D" and step == 1 else "int8"
    graph = step_of(extreme(kind, dtype, height, stride), step)
    compared = [op.output.shape[1] for op in graph.ops if op.kind in ("MAXIMUM", "MINIMUM")]
    assert sum(compared) <= 2 * step * (height - 1).bit_length()
    assert_slides(graph, more=12)


@pytest.mark.parametrize("data", [
    extreme("REDUCE_MAX", "float32", 40), extreme("REDUCE_MAX", "int8", 40, padding="SAME"),
    extreme("MAX_POOL_2D", "int8", 12), extreme("MAX_POOL_2D", "int8", 3), extreme("REDUCE_MIN", "int8", 3),
    extreme("REDUCE_MAX", "int8", 3),
])  # fmt: skip
def test_extremes_that_are_whole(data: bytes) -> None:
    """NaN is neither greater nor less; rows that see padding are others in each step; few rows are compared at once, and
    of one row there are no halves."""
    graph = step_of(data, 1)
    assert "MAXIMUM" not in kinds(graph)
    assert_slides(graph)


#: shape, the reduced dimensions, and what becomes of them: sums that move, rows, or neither
MEANS = [
    ((1, 12, 4, 3), [0, 1, 2, 3], "moves"), ((1, 12, 4, 3), [1], "moves"), ((1, 12, 4, 3), [3], "rows"),
    ((1, 12, 4, 3), [2, 3], "rows"), ((1, 12, 4, 3), [1, 3], "whole"), ((1, 12, 1, 3), [1, 3], "moves"),
    ((1, 12), [1], "moves"), ((1, 12, 2, 2, 3), [1, 2, 3], "moves"), ((1, 12, 2, 2, 3), [2], "whole"),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "axes", "becomes"), MEANS)
@pytest.mark.parametrize("keep_dims", [False, True])
def test_means_of_any_dimensions(shape: tuple[int, ...], axes: list[int], becomes: str, keep_dims: bool) -> None:
    s = Sketch(15)
    frames = s.value(shape, name="frames")
    graph = step_of(s.build([frames], [mean_over(s, frames, axes, keep_dims)]), 1)
    step = next(step for step in account(graph.window) if step.op.kind == "MEAN")
    assert (step.running_sum, step.end is None) == (becomes == "moves", becomes != "whole")
    assert_slides(graph)


# --- operators that move frames, or channels ---------------------------------------------------


def _head(s: Sketch, length: int = 20) -> tuple:
    frames = s.value((1, length, 4), name="frames")
    return frames, conv1d(s, frames, 4, 3)


def _split(s: Sketch, x):
    a, b = s.split(x, 2, 2)
    return s.concatenate([b, a, s.requantize_to(conv1d(s, a, 2, 2, padding="SAME"), b)], 2)


def _unpacked(s: Sketch, x):
    length, channels = x.shape[1:]
    outputs = [s.value((1, length), x.scale, x.zero_point) for _ in range(channels)]
    s.model.op("UNPACK", [x.index], [y.index for y in outputs], num=channels, axis=2)
    return s.reshape(stacked(s, outputs[:2], 2), (1, length, 2))


def _along_time(s: Sketch, x):
    """Concatenates frames before and after those of another branch: these rows do not move with the window."""
    return s.concatenate([x, s.relu(x)], 1)


#: layers behind a convolution, and whether frames are still rows behind them
FORMS = {
    "split": (_split, True),
    "unpack and pack": (_unpacked, True),
    "pack of pairs": (lambda s, x: s.reshape(stacked(s, [x, s.relu(x)], 3), (1, x.shape[1], 8)), True),
    "dense": (lambda s, x: s.dense(x, 5), True),
    "dense as a batch": (
        lambda s, x: s.reshape(s.dense(s.reshape(x, x.shape[1:]), 5), (1, x.shape[1], 5)),
        True,
    ),
    "softmax": (lambda s, x: s.softmax(x), True),
    "mean of channels": (lambda s, x: s.add(x, mean_over(s, x, [2], True), kind="SUB"), True),
    "last frames": (lambda s, x: frames_from(s, x, x.shape[1] - 6, 6), True),
    "transpose of 1": (
        lambda s, x: s.reshape(s.transpose(s.reshape(x, (1, x.shape[1], 1, 4)), (0, 1, 3, 2)), x.shape),
        True,
    ),
    "transpose": (lambda s, x: s.transpose(s.transpose(x, (0, 2, 1)), (0, 2, 1)), False),
    "along time": (_along_time, False),
}


@pytest.mark.parametrize("name", FORMS)
def test_forms(name: str) -> None:
    s = Sketch(11)
    frames, x = _head(s)
    form, rows = FORMS[name]
    graph = step_of(s.build([frames], [mean_over(s, conv1d(s, form(s, x), 3, 2), [1], False)]), 1)
    last = [step for step in account(graph.window) if FAMILIES[step.op.kind].convolution][-1]
    assert (last.end is None and last.made < last.height // 2) == rows
    assert_slides(graph)


@pytest.mark.parametrize("beside", ["PAD", "MIRROR_PAD"])
def test_where_nothing_multiplies_rows_are_kept_all_the_same(beside: str) -> None:
    """Operators without multiply-accumulates take time too: only their new rows are made, and sums move."""
    s = Sketch(12)
    frames = s.value((1, 20, 4, 3), name="frames")
    x = s.scale_channels(s.scale_channels(frames, "MUL"), "ADD")
    x = s.pad(x, 0, 0, 1, 1) if beside == "PAD" else s.mirror_pad(x, 0, 0, 1, 1)
    graph = step_of(s.build([frames], [s.mean(s.pool(x, "MAX_POOL_2D", (3, 3), (1, 1)))]), 1)
    steps = account(graph.window)
    assert [step.made for step in steps] == [1, 1, 1, 1, 0]
    assert steps[-1].running_sum
    assert_slides(graph)


REASONS = {
    "max": (lambda s, x: mean_over(s, x, [1, 2], False, "REDUCE_MAX"), "REDUCE_MAX", "it needs all rows"),
    "gate": (lambda s, x: s.gate(x), "MUL", "which follows from all rows"),
    "constants": (lambda s, x: s.with_constant(x, "MUL", (20, 1, 1)), "MUL", "it has other constants for each row"),
    "resize": (lambda s, x: s.resize(x, (3 * x.shape[1], 4)), "RESIZE_BILINEAR", "no rows of its output alone"),
    "flat": (lambda s, x: s.fully_connected(x, 2), "FULLY_CONNECTED", "it weighs each row by its place in the window"),
    "cut": (lambda s, x: s.conv(s.reshape(x, (1, 40, 2, 3)), 2, (3, 1)), "CONV_2D", "no frames any more"),
    "pad": (lambda s, x: s.relu(s.pad(x, 2, 0, 0, 0)), "PAD", "a row of its output sees padding alone"),
}


@pytest.mark.parametrize("name", REASONS)
def test_why_operators_run_whole(name: str) -> None:
    s = Sketch(13)
    frames = s.value((1, 20, 4, 3), name="frames")
    form, kind, reason = REASONS[name]
    graph = step_of(s.build([frames], [form(s, s.relu(frames))]), 1)
    assert reason in ends_of(graph)[kind]
    assert_slides(graph)


def test_an_input_that_does_not_slide() -> None:
    """Another input may change from step to step: what reads it is computed whole, what is before it is not."""
    s = Sketch(14)
    frames, other = s.value((1, 20, 4, 3), name="frames"), s.value((1, 1, 1, 4), name="other")
    x = s.conv(frames, 4, (3, 1), padding="VALID")
    graph = step_of(s.build([frames, other], [s.mean(s.add(x, other))]), 1)
    assert "may change from step to step" in ends_of(graph)["ADD"]
    assert [op.output.shape[1] for op in graph.ops if op.kind == "CONV_2D"] == [1]
    assert_slides(graph)


def test_frames_of_an_input_without_dimensions() -> None:
    """micro_speech's: [1, 1960], 49 frames of 40; a step of two frames brings 80 elements."""
    s = Sketch(4)
    flat = s.value((1, 20 * 6), name="flat")
    x = s.reshape(flat, (1, 20, 6, 1))
    data = s.build([flat], [s.fully_connected(s.depthwise(x, (3, 3), (2, 2), "VALID", multiplier=2), 4)])
    graph = step_of(data, 12)
    assert [op.output.shape[1] for op in graph.ops if op.kind == "DEPTHWISE_CONV_2D"] == [1]
    assert_slides(graph)
    assert_slides(step_of(data, 6))
    assert_slides(step_of(data, 9))  # not even whole frames


def test_the_last_frame_alone() -> None:
    """A causal network whose last frame counts: nothing older is made, or kept, behind its convolutions."""
    s = Sketch(7)
    frames = s.value((1, 30, 3))
    x = conv1d(s, conv1d(s, frames, 4, 3, padding="causal"), 4, 3, padding="causal", dilation=2)
    graph = step_of(s.build([frames], [s.fully_connected(frames_from(s, x, 29, 1), 2)]), 1)
    assert [op.output.shape[1] for op in graph.ops if op.kind == "CONV_2D"] == [1, 1]
    assert sum(t.elements for t in graph.states if t.cursor is not None) == 3 * 3 + 5 * 4
    assert_slides(graph)


# --- what explain says -------------------------------------------------------------------------


def test_explain_says_what_stands_in_the_way() -> None:
    told = explain_json(tinyfuse.compile(gesture(), "cortex-m4", slide=1).plan)["sliding"]["operators"]
    by_kind = {op["kind"]: op for op in told}
    assert by_kind["MEAN"]["running_sum"]
    assert by_kind["MEAN"]["kept_bytes"] == 4 * 8
    assert by_kind["FULLY_CONNECTED"]["reason"] == "what it reads follows from all rows"
    advised = explain_json(tinyfuse.compile(wake_word(), "cortex-m4", slide=1).plan)["advice"]
    (dense,) = (advice for advice in advised if "FULLY_CONNECTED" in advice["operator"])
    assert "it weighs each row by its place in the window" in dense["message"]
    assert dense["hint"] == "a mean over time in front of it"


def test_explain_tells_rows_of_padding_from_rows_that_are_not_kept() -> None:
    least, *_, most = (account(graph.window) for graph in steps_of_model(padded(31), 2))
    assert all(step.made == step.new + step.padded for step in most)
    assert any(step.made > step.new + step.padded for step in least)


# --- the contract, in C ------------------------------------------------------------------------


def plans_of(drawn: list[tuple[bytes, int]], **options) -> list:
    plans = []
    for data, step in drawn:
        try:
            plans.append(plan_of(data, slide=step, **options))
        except CompileError as error:
            assume("--slide" in str(error))
    return plans


#: models whose C has all that steps are made of
WHOLE_CONTRACT = [
    (padded(), 1, {"optimize": "speed"}), (padded(), 3, {"fusion": "none"}), (wake_word(dtype="float32"), 3, {}),
    (gesture(causal=True), 3, {"fusion": "basic"}), (summed("MEAN", padding="SAME"), 2, {"optimize": "speed"}),
    (summed("AVERAGE_POOL_2D", "int16"), 5, {}), (extreme("REDUCE_MAX", "int8", 40, 2), 1, {"optimize": "speed"}),
]  # fmt: skip


def test_the_contract() -> None:
    assert_all_stream([plan_of(data, slide=step, **options) for data, step, options in WHOLE_CONTRACT])


def _networks(count: int):
    one = st.tuples(frame_networks() | time_networks(), st.integers(1, 6))
    return st.lists(one, min_size=count, max_size=count)


@settings(max_examples=2, deadline=None, suppress_health_check=list(HealthCheck))
@given(_networks(6), st.sampled_from(["speed", "balanced", "ram"]), st.booleans())
def test_random_networks(drawn: list[tuple[bytes, int]], optimize: str, by_row: bool) -> None:
    plans = plans_of(drawn, optimize=optimize, feed_rows=by_row)
    assume(plans)
    assert_all_stream(plans)


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(frame_networks(), st.integers(1, 6), st.integers(0, 3), st.booleans())
def test_random_networks_by_references(data: bytes, step: int, choice: int, by_row: bool) -> None:
    try:
        graphs = steps_of_model(data, step, by_row=by_row)
    except CompileError as error:
        assume("--slide" not in str(error))
        raise
    assert_slides(graphs[-1 - choice % len(graphs)])


@pytest.mark.campaign
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    _networks(20), st.sampled_from(["speed", "balanced", "ram"]), st.sampled_from(["rows", "basic", "none"]),
    st.booleans(),
)  # fmt: skip
def test_many_random_networks(drawn: list[tuple[bytes, int]], optimize: str, fusion: str, by_row: bool) -> None:
    plans = plans_of(drawn, optimize=optimize, fusion=fusion, feed_rows=by_row)
    assume(plans)
    assert_all_stream(plans)


def test_sums_that_reach_their_bounds() -> None:
    """A long window of the greatest values: nothing of the sum is lost, and no error grows from step to step."""
    s = Sketch(9, dtype="int16")
    frames = s.value((1, 300, 4, 3))
    graph = step_of(s.build([frames], [s.pool(frames, "AVERAGE_POOL_2D", (300, 4), (1, 1))]), 50)
    state = {t: t.initial_values for t in graph.states}
    for value in (32767, -32768, -32768, 32767, 0):
        window = np.full((1, 50, 4, 3), value, np.int16)
        values = {graph.inputs[0]: window}
        for op in graph.ops:
            found = FAMILIES[op.kind].reference(
                op, *(state.get(t, values.get(t, None if t is None else t.data)) for t in op.inputs)
            )
            values |= dict(zip(op.outputs, found, strict=False))
            updated = [op.inputs[i] for i in FAMILIES[op.kind].updates]
            state |= dict(zip(updated, found[len(op.outputs) :], strict=True))
            if op.kind == "MOVE_SUM":
                assert abs(int(found[0].max())) < 2**31
