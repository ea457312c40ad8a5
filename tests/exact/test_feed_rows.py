"""--feed-rows: the image comes row by row. Every run below is by one row, all rows at once, or random
batches, with calls on the way that must be refused (tinyfuse/verify/emulation/firmware/verify.c)."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest
from core_rotation import on_one_core
from executors import assert_exact, plan_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_graphs import Sketch, networks
from test_ops_network import network

from tinyfuse.emit import emit
from tinyfuse.errors import CompileError, EmulationFailed, InternalFault, UsageError
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.options import OPTIMIZE
from tinyfuse.plan import FEED_STATE, Plan
from tinyfuse.plan.check.player import _Player, verify_plan
from tinyfuse.rewrite.feed_rows import feed_rows
from tinyfuse.verify.emulation import module

HAS_QEMU = shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")
needs_qemu = pytest.mark.skipif(not HAS_QEMU, reason="needs arm-none-eabi-gcc and qemu-system-arm")


def separable(rows: int = 9, stride: int = 1) -> bytes:
    sketch = Sketch(1)
    x = sketch.value((1, rows, 7, 8))
    y = sketch.conv(x, 8, (3, 3), (stride, stride))
    return sketch.build([x], [sketch.conv(sketch.depthwise(y, (3, 3)), 16, (1, 1))])


def fed(data: bytes, target: str = "host", **options) -> Plan:
    return plan_of(data, target, feed_rows=True, **options)


def test_the_image_is_a_ring_of_the_first_group() -> None:
    plan = fed(separable())
    image = plan.source.inputs[0]
    assert plan.fed is image and plan.storage[image].ring_rows == 3


@pytest.mark.parametrize(("rows", "optimize"), [(1, "ram"), (2, "balanced"), (300, "speed")])
def test_images_of_any_height(rows: int, optimize: str) -> None:
    """300 rows exceed counters of one byte."""
    assert_exact(fed(separable(rows), optimize=optimize))


def test_rows_that_nothing_reads_are_taken() -> None:
    sketch = Sketch(2)
    x = sketch.value((1, 12, 5, 3))
    data = sketch.build([x], [sketch.conv(x, 4, (2, 2), (3, 1), "VALID")])  # rows 2, 5, 8 and 11
    assert_exact(fed(data))
    sketch = Sketch(3)
    x = sketch.value((1, 11, 5, 3))
    assert_exact(fed(sketch.build([x], [sketch.conv(x, 4, (3, 3), (4, 1), "VALID")])))


def test_branches_that_read_the_same_rows() -> None:
    sketch = Sketch(4)
    x = sketch.value((1, 16, 8, 3))
    left = sketch.conv(sketch.conv(x, 8, (3, 3), (2, 2)), 8, (3, 3))
    right = sketch.conv(x, 8, (1, 1), (2, 2))
    plan = fed(sketch.build([x], [sketch.add(left, right)]))
    assert set(plan.fed_group.ops[1:]) >= set(plan.graph.consumers[plan.fed])
    assert_exact(plan)


def test_other_inputs_are_used_before_the_first_row() -> None:
    sketch = Sketch(5)
    vector, x = sketch.value((1, 12)), sketch.value((1, 6, 5, 4))
    scale = sketch.reshape(sketch.fully_connected(vector, 4), (1, 1, 1, 4))
    y = sketch.add(sketch.conv(x, 4, (3, 3)), scale, kind="MUL")
    plan = fed(sketch.build([vector, x], [sketch.depthwise(y, (3, 3)), scale]))
    assert plan.fed_group.index == 1
    assert_exact(plan)


@pytest.mark.parametrize("dead", [False, True])
def test_of_two_images_the_one_that_is_read_is_fed(dead: bool) -> None:
    """The other stays an input like any other, which nobody reads."""
    sketch = Sketch(5)
    unused, x = sketch.value((1, 9, 5, 2)), sketch.value((1, 7, 5, 4))
    if dead:
        sketch.conv(unused, 2, (3, 3))
    plan = fed(sketch.build([unused, x], [sketch.depthwise(sketch.conv(x, 4, (3, 3)), (3, 3))]))
    assert plan.fed is plan.source.inputs[1]
    assert_exact(plan)


def test_a_float_image_is_quantized_row_by_row() -> None:
    plan = fed(network())
    assert plan.fed.dtype == "float32" and plan.storage[plan.fed].ring_rows == 1
    assert_exact(plan, runs=8)


def test_kernels_without_rows_leave_the_fed_ones_to_ours() -> None:
    """CMSIS-NN has no transposed convolution by rows; of convolutions, it reads a ring that slides (test_cmsis_rows.py)."""
    sketch = Sketch(7)
    x = sketch.value((1, 6, 5, 4))
    plan = fed(sketch.build([x], [sketch.transpose_conv(x, 3, (3, 3))]), "cortex-m4", kernels="cmsis-nn")
    assert [stage.kernel.library for stage in plan.fed_group.stages] == ["tinyfuse"] * 2
    plan = fed(separable(), "cortex-m4", kernels="cmsis-nn")
    assert {stage.kernel.library for stage in plan.fed_group.stages[1:]} == {"cmsis-nn"}
    assert plan.storage[plan.fed].slides


@needs_qemu
@on_one_core("cortex-m4", "cortex-m55")
def test_it_is_exact_on_emulated_cores(target: str) -> None:
    for data in (separable(stride=2), network()):
        assert_exact(fed(data, target, kernels="tinyfuse"))


@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(networks(most_layers=10), st.sampled_from(OPTIMIZE))
def test_random_networks(data: bytes, optimize: str) -> None:
    try:
        plan = fed(data, optimize=optimize)
    except CompileError as refused:
        assert len(refused.problems) == 1 and refused.problems[0].message.startswith("--feed-rows: ")
        return
    assert_exact(plan, runs=4)


# --- refusals --------------------------------------------------------------------------------------


def refusal(data: bytes, **options) -> str:
    with pytest.raises(CompileError) as error:
        fed(data, **options)
    (problem,) = error.value.problems
    assert problem.hint == "leave --feed-rows out"
    return str(problem)


def test_a_model_without_an_image() -> None:
    sketch = Sketch(1)
    x = sketch.value((1, 12))
    assert "no input is an image" in refusal(sketch.build([x], [sketch.fully_connected(x, 3)]))


def test_an_image_that_is_an_output_too() -> None:
    sketch = Sketch(1)
    x = sketch.value((1, 4, 4, 2))
    assert "an output too" in refusal(sketch.build([x], [sketch.conv(x, 2, (1, 1)), x]))


def test_an_image_that_is_an_output_and_nothing_else() -> None:
    sketch = Sketch(1)
    x, other = sketch.value((1, 4, 4, 2)), sketch.value((1, 4))
    assert "an output too" in refusal(sketch.build([x, other], [sketch.fully_connected(other, 2), x]))


def test_an_image_that_nothing_reads() -> None:
    """Regression: the module read all rows of an image that no operator uses."""
    sketch = Sketch(1)
    x, vector, pixel = sketch.value((1, 23, 23, 16)), sketch.value((1, 4)), sketch.value((1, 1, 1, 16))
    message = refusal(sketch.build([x, vector, pixel], [sketch.fully_connected(vector, 5)]))
    assert "no output depends on the image" in message and "'v1'" in message


@pytest.mark.parametrize("optimize", OPTIMIZE)
def test_an_image_that_only_dead_operators_read(optimize: str) -> None:
    sketch = Sketch(1)
    x, vector = sketch.value((1, 6, 5, 2)), sketch.value((1, 4))
    sketch.relu(sketch.conv(x, 2, (3, 3)))
    assert "no output depends on the image" in refusal(
        sketch.build([x, vector], [sketch.fully_connected(vector, 5)]), optimize=optimize
    )


def test_an_operator_that_needs_the_image_whole_is_named() -> None:
    sketch = Sketch(1)
    x = sketch.value((1, 4, 4, 2))
    assert "RESHAPE" in refusal(sketch.build([x], [sketch.fully_connected(x, 200)]))
    sketch = Sketch(1)
    x = sketch.value((1, 4, 4, 2))
    message = refusal(sketch.build([x], [sketch.unary(sketch.reshape(x, (1, 8, 2, 2)), "LOGISTIC")]))
    assert "RESHAPE" in message and "whole" in message


@pytest.mark.parametrize("fusion", ["none", "basic"])
def test_it_needs_row_groups(fusion: str) -> None:
    with pytest.raises(UsageError, match="--fusion rows"):
        fed(separable(), fusion=fusion)


# --- the tests can fail ----------------------------------------------------------------------------


def test_the_plans_checker_sees_an_overwritten_state() -> None:
    plan = fed(separable())
    for name in (FEED_STATE, plan.fed_group.counters):
        offsets = plan.placement.offsets | {name: plan.offset(plan.source.outputs[0])}
        wrong = replace(plan, placement=replace(plan.placement, offsets=offsets))
        with pytest.raises(InternalFault, match="share bytes"):
            verify_plan(wrong)
        with pytest.raises(InternalFault, match="overwritten"):
            _Player(wrong).play()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("if (count > 9u - state.rows)", "if (count > 10u - state.rows)"),  # too many rows
        ("if (state.rows != 9u)", "if (0)"),  # too few
        ("NET_GROUP_END(2);", "tinyfuse_feed_store(bytes + 1112u, NET_FEED_MARK(9u), 9u);"),  # finish again
        ("if (state.mark != NET_FEED_MARK(state.rows) || state.rows > 9u)", "if (0)"),  # rows before begin
    ],
)
def test_a_call_that_is_not_refused_is_seen(monkeypatch, old: str, new: str) -> None:
    def wrong(plan):
        files = emit(plan)
        return files | {"net.c": files["net.c"].replace(old, new, 1)}

    plan = fed(separable())
    assert old in emit(plan)["net.c"]
    monkeypatch.setattr(module, "emit", wrong)
    with pytest.raises((AssertionError, EmulationFailed)):
        assert_exact(plan)


def test_the_rewrite_puts_what_needs_no_image_in_front() -> None:
    sketch = Sketch(5)
    vector, x = sketch.value((1, 12)), sketch.value((1, 6, 5, 4))
    y, z = sketch.conv(x, 4, (3, 3)), sketch.fully_connected(vector, 4)
    graph = read_tflite("model.tflite", sketch.build([vector, x], [y, z]))
    after = feed_rows(graph)
    assert [op.kind for op in after.ops] == ["FULLY_CONNECTED", "FEED_ROWS", "CONV_2D"]
    assert after.inputs == graph.inputs[:1] and after.ops[1].output is graph.inputs[1]


def test_the_image_takes_three_rows_in_place_of_all() -> None:
    sketch = Sketch(6)
    x = sketch.value((1, 48, 7, 8))
    data = sketch.build([x], [sketch.conv(sketch.depthwise(x, (3, 3)), 1, (1, 1))])
    whole, by_rows = (make(data, "cortex-m4", kernels="tinyfuse").arena_bytes for make in (plan_of, fed))
    # the output, which lay over the image, needs bytes of its own
    assert by_rows < whole - (48 - 3) * 7 * 8 + 48 * 7 + 40
