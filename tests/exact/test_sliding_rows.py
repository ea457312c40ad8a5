"""`--slide` with `--feed-rows`: a step's frames come row by row."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from executors import assert_exact, plan_of
from random_graphs import Sketch
from sliding_models import assert_slides, dense_first, gesture, mean_over, padded, step_of, wake_word
from stream_program import assert_all_stream
from test_selftest import frames_and_gain, generate, run
from test_sliding import spoil
from test_sliding_own_window import joined, sounds, streaming

import tinyfuse
from tinyfuse.api.writing import check_ram
from tinyfuse.cli.fitting import fitting_hint
from tinyfuse.errors import CompileError, DoesNotFit, InternalFault
from tinyfuse.explain.explain_json import explain_json
from tinyfuse.ir import Graph
from tinyfuse.plan.check.player import verify_plan
from tinyfuse.slide import account

emulated = pytest.mark.skipif(
    shutil.which("arm-none-eabi-gcc") is None or shutil.which("qemu-system-arm") is None,
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)


def for_each_row(graph: Graph) -> list[str]:
    """Kinds of operators that run for each row."""
    assert graph.window is not None and graph.window.by_row is not None
    kinds = [op.kind for op in graph.window.by_row.ops]
    return kinds[: kinds.index("AWAIT_ROWS")]


# --- the graph of a run on one row -------------------------------------------------------------


def patches() -> bytes:
    """Adjacent windows without overlap: no frame is needed twice, and no ring of frames is kept."""
    s = Sketch(6)
    frames = s.value((1, 24, 2, 3))
    return s.build([frames], [s.conv(s.conv(frames, 4, (4, 2), (4, 1), "VALID"), 3, (3, 1), padding="VALID")])


def sums_of_frames() -> bytes:
    """Sums of the frames themselves, and of rows that see padding."""
    s = Sketch(5)
    frames = s.value((1, 30, 1, 3))
    x = s.conv(frames, 4, (3, 1), padding="SAME")
    return s.build([frames], [mean_over(s, frames, [1, 2], True), mean_over(s, x, [1, 2], False)])


def as_it_came() -> bytes:
    """A model whose window is an output too."""
    s = Sketch(7)
    frames = s.value((1, 9, 1, 3))
    return s.build([frames], [frames, s.conv(frames, 2, (3, 1), padding="VALID")])


def flat() -> bytes:
    """A flat input that the model reshapes to 12 frames of 4 numbers."""
    s = Sketch(9)
    frames = s.value((1, 48))
    return s.build([frames], [s.conv(s.reshape(frames, (1, 12, 1, 4)), 3, (3, 1), padding="VALID")])


def only_the_last(kernel: int) -> bytes:
    """Layers on each frame; a step needs only one row of the last one."""
    s = Sketch(2)
    frames = s.value((1, 12, 1, 4))
    x = s.conv(s.conv(frames, 4, (kernel, 1), padding="VALID"), 4, (1, 1))
    return s.build([frames], [s.conv(x, 3, (1, 1), (4, 1), "VALID")])


GRAPHS = {
    "no padding": (wake_word(), 3),
    "padding, strides": (padded(), 4),
    "phases": (padded(), 3),
    "sums": (gesture(causal=True), 4),
    "dense": (dense_first(), 2),
    "patches": (patches(), 4),
    "sums of frames": (sums_of_frames(), 3),
    "as it came": (as_it_came(), 2),
    "flat": (flat(), 8),
    "only the last": (only_the_last(1), 4),
    "only the last, behind windows": (only_the_last(3), 4),
    "two frames a row": (streaming(frames=2).build(), 4),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_row_by_row(name: str) -> None:
    """Compares references: no result before a step's last row, then the whole model's."""
    assert_slides(step_of(*GRAPHS[name], by_row=True))


def test_what_moves_with_the_rows_is_made_at_once() -> None:
    """Every layer in front of the dense one; rings as of a step of one frame."""
    by_row, by_one = (step_of(wake_word(), step, by_row=True) for step in (3, 1))
    kinds = for_each_row(by_row)
    assert kinds.count("CONV_2D") == kinds.count("DEPTHWISE_CONV_2D") == 2
    assert "FULLY_CONNECTED" not in kinds
    rings = [sorted(t.bytes for t in graph.states if t.cursor) for graph in (by_row.window.by_row, by_one)]
    assert rings[0][:2] == rings[1][:2]
    assert by_one.window.rows == 1 and by_one.window.by_row is None
    assert [(s.made, s.new) for s in account(by_row.window) if s.height] == [(3, 3)] * 4


def test_rows_that_no_step_needs_are_not_made() -> None:
    """A layer of each frame, of whose rows one in four is read, runs once a step."""
    assert for_each_row(step_of(only_the_last(1), 4, by_row=True)) == ["RING_PUSH"]


def test_of_a_flat_input_rows_are_the_models() -> None:
    assert step_of(flat(), 8, by_row=True).window.rows == 2


def test_a_front_end_runs_for_each_stride(tmp_path: Path) -> None:
    """Code and samples of the front end exist once, however many frames a step has."""
    data = joined(tmp_path)
    fed, at_once = (plan_of(data, slide=3, feed_rows=fed) for fed in (True, False))
    assert sum(op.kind == "CUSTOM SignalRfft" for op in fed.graph.ops) == 1
    assert sum(op.kind == "CUSTOM SignalRfft" for op in at_once.graph.ops) == 3
    assert fed.arena_bytes < at_once.arena_bytes


# --- the module --------------------------------------------------------------------------------


def test_the_contract(tmp_path: Path) -> None:
    """Every status, every output, junk between any two calls, more rows than a step lacks."""
    drawn = [(*GRAPHS[name], {}) for name in ("no padding", "patches", "as it came", "flat", "two frames a row")]
    drawn += [(padded(), 3, {"fusion": "none"}), (gesture(causal=True), 4, {"optimize": "ram"})]
    drawn += [(frames_and_gain(), 2, {}), (frames_and_gain(), 1, {}), (wake_word(dtype="float32"), 2, {})]
    drawn += [(joined(tmp_path, stride=2), 2, {"optimize": "speed"})]
    plans = [plan_of(data, slide=step, feed_rows=True, **options) for data, step, options in drawn]
    assert_all_stream(plans)


@emulated
def test_emulated() -> None:
    module = tinyfuse.compile(padded(), "cortex-m4", name="net", slide=4, feed_rows=True)
    found = module.verify(oracle="tflm", runs=16)
    assert found.exact and found.runs == 16, found


@emulated
@pytest.mark.campaign
def test_profile_counts_a_step() -> None:
    """Counts all rows of a step, also in groups that run for each row."""
    module = tinyfuse.compile(padded(), "cortex-m4", name="net", slide=4, feed_rows=True)
    found, profiled = module.verify(oracle="tflm", runs=16), module.profile()
    assert abs(profiled["instructions"] - found.instructions) < 0.02 * found.instructions
    groups = sum(group["instructions"] for group in profiled["groups"])
    assert 0.9 * profiled["instructions"] < groups <= profiled["instructions"]
    assert sum(group["macs"] for group in profiled["groups"]) == profiled["macs"] == module.macs


def test_figures_are_those_of_a_step() -> None:
    """However often a group runs in it."""
    fed, at_once = (tinyfuse.compile(wake_word(), "cortex-m4", slide=3, feed_rows=f) for f in (True, False))
    assert fed.macs == at_once.macs == sum(group.macs for group in fed.groups)
    assert fed.predicted_instructions > at_once.predicted_instructions
    assert fed.state_bytes < at_once.state_bytes and fed.arena_bytes <= at_once.arena_bytes
    told = fed.report()
    assert told["fed_input"] == "frames" and told["window"]["rows"] == 3
    assert "3 frames in 3 rows" in fed.report_text() and "is passed row by row" in fed.report_text()
    assert explain_json(fed.plan)["sliding"]["operators"][0]["made_rows"] == 3


def test_the_selftest_feeds_rows(tmp_path: Path) -> None:
    behind, front = sounds(tmp_path, stride=2)
    made = generate(behind, tmp_path, "--selftest", "--slide", "2", "--feed-rows", "--front-end", front)
    assert run(made) == ["0", "0", "2", "no error\n"]
    header = (made / "net.h").read_text()
    assert "#define NET_FEED_ROWS 2\n" in header and "#define NET_INPUT_SAMPLES_ROW_ELEMENTS 40\n" in header


def test_run_says_which_steps_have_no_result() -> None:
    """Users feed a stream, so zeros before the window is full must not look like scores."""
    module = tinyfuse.compile(wake_word(), "host", name="net", slide=4, feed_rows=True)
    frames = np.arange(6 * 4 * 6, dtype=np.int8).reshape(6, 4, 1, 6)
    found = module.run({"frames": frames}, emulator="host")
    scores = found.in_order[0]
    assert not scores[:4].any() and scores[4:].any(axis=1).all()
    (note,) = found.notes
    assert note == "the first 4 of 6 steps have no result, zeros are shown: 5 steps fill the window of 20 frames"


@pytest.mark.parametrize(
    ("file", "of", "instead"),
    [
        ("tinyfuse_await.h", "*left = rows;", "*left = rows - 1;"),
        ("net.c", "if (count > (size_t)left) {", "if (count > (size_t)left + 1u) {"),
        ("net.c", "rows += NET_INPUT_FRAMES_ROW_ELEMENTS;", "rows += 0;"),
    ],
)
def test_verifys_harness_finds_faults(monkeypatch: pytest.MonkeyPatch, file: str, of: str, instead: str) -> None:
    """Steps a row too short, rows that no step lacks, one row in the place of all."""
    plan = plan_of(wake_word(), slide=3, feed_rows=True)
    spoil(monkeypatch, file, of, instead)
    with pytest.raises(
        (AssertionError, tinyfuse.TinyfuseError), match=r"run returned|mismatch|run \d+|assert|global-buffer-overflow"
    ):
        assert_exact(plan, 4 * plan.source.window.steps_to_fill + 12)


def test_the_checker_wants_each_side_of_the_border() -> None:
    plan = plan_of(wake_word(), slide=3, feed_rows=True, fusion="none")
    verify_plan(plan)
    border = plan.row_border
    assert border is not None and plan.runs(border) == 1 and plan.runs(plan.groups[0]) == 3
    layer = plan.groups[-2]
    assert [op.kind for op in layer.ops] == ["FULLY_CONNECTED"]
    others = [group for group in plan.groups if group is not layer]
    others.insert(border.index, layer)
    moved = tuple(replace(group, index=index) for index, group in enumerate(others))
    with pytest.raises(InternalFault, match="runs for each row that is for a step|is overwritten|reads"):
        verify_plan(replace(plan, groups=moved))


def test_where_a_step_does_not_fit_rows_are_named(tmp_path: Path) -> None:
    plan = plan_of(joined(tmp_path), "cortex-m4", slide=2, max_ram=500)
    with pytest.raises(DoesNotFit, match=r"--feed-rows --optimize ram takes \d+ bytes"):
        check_ram(plan, lambda plan: fitting_hint(plan, lambda line: None))


def test_what_does_not_slide_is_not_fed_either() -> None:
    with pytest.raises(CompileError, match="the window has 20 frames"):
        plan_of(wake_word(), slide=20, feed_rows=True)
