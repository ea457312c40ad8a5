"""Rings in a stack: each has exactly the rows that are needed, and rows are written over those that a call uses up."""

from __future__ import annotations

import pytest
from core_rotation import on_one_core
from executors import assert_all_exact, assert_exact, plan_of
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from random_graphs import Sketch, networks
from resizing_graphs import longest_plans, resizing_chains
from stacked_networks import inverted, residual, stacked

from tinyfuse.plan import Plan
from tinyfuse.plan.rows import Stream, row_bytes


def loop_of(plan: Plan) -> Stream:
    """The row loop of the first group that has a stack."""
    group = next(group for group in plan.groups if group.stack)
    return Stream(group.stages, frozenset(group.outputs), slide=True, stack=True)


def test_a_stack_takes_what_is_needed_at_its_fullest() -> None:
    """The rows that are there and needed, counted one by one; less where rows are taken."""
    plan = stacked(residual())
    stream = loop_of(plan)
    assert stream.stack is not None and len(stream.stack.rings) > 8
    made, most = [0] * len(stream.stages), 0
    taken = {ring.tensor: ring.taken for ring in stream.stack.rings}
    assert any(taken.values())
    for s in stream.loop.order.tolist():
        made[s] += 1
        needed = 0
        for m, stage in enumerate(stream.stages):
            tensor = stage.op.output
            firsts = [
                other.window(i).first(made[o] - (o == s))
                for o, other in enumerate(stream.stages)
                for i, read in enumerate(other.op.inputs)
                if read is tensor and made[o] - (o == s) < other.op.output.shape[1]
            ]
            if tensor in taken and firsts:
                needed += max(0, made[m] - min(firsts)) * row_bytes(tensor)
        most = max(most, needed + stream.stages[s].scratch_bytes)
    assert most - max(taken.values()) <= int(stream.stack.bytes.max()) <= most + 16
    plain = longest_plans([residual()])[0]
    assert plan.arena_bytes < 0.91 * plain.arena_bytes


def test_projections_run_early_and_rows_are_written_over_used_ones() -> None:
    plan = stacked(residual())
    (group,) = [group for group in plan.groups if group.stack]
    assert {group.stages[s].op.input.shape[1] for s in group.eager if group.stages[s].op.operand(1).shape[1] == 1} == {
        20,
        10,
    }
    makers = {stage.op.output: stage for stage in group.stages}
    over = [(makers[b.tensor].op.kind, b, a) for b, a in zip(group.stack, group.stack[1:], strict=False) if a.taken]
    assert {kind for kind, _, _ in over} == {"CONV_2D", "ADD"}
    for kind, below, above in over:
        pixel = above.tensor.shape[3] if kind == "CONV_2D" and makers[below.tensor].op.operand(1).shape[1] > 1 else 0
        assert above.taken == row_bytes(below.tensor) - pixel


@pytest.mark.parametrize("options", [{}, {"feed_rows": True}, {"step": True}], ids=["whole", "fed", "in steps"])
def test_residual_networks(options: dict) -> None:
    assert_exact(stacked(residual(), **options))


def test_for_the_least_ram_alone() -> None:
    assert not any(group.stack for group in plan_of(residual(32), "cortex-m4").groups)
    plan = plan_of(residual(32), "cortex-m4", optimize="ram")
    assert any(group.stack for group in plan.groups)


@pytest.mark.parametrize("stride", [1, 2, 3])
def test_rows_that_nobody_reads(stride: int) -> None:
    """Such rows leave the stack as soon as they are made."""
    sketch = Sketch(3)
    start = sketch.value((1, 14, 6, 4))
    x = sketch.conv(start, 8, (1, 1))
    y = sketch.conv(sketch.depthwise(sketch.conv(x, 8, (1, 1), (stride, 1)), (3, 3)), 8, (1, 1))
    data = sketch.build([start], [sketch.depthwise(sketch.add(y, sketch.conv(x, 8, (1, 1), (stride, 1))), (3, 3))])
    assert_all_exact([stacked(data, **o) for o in ({}, {"step": True})], runs=3)
    assert_exact(stacked(data, feed_rows=True), runs=3)


@settings(max_examples=2, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(networks() | resizing_chains(), min_size=8, max_size=8), st.booleans(), st.booleans(),
    st.sampled_from([3, 6, 1000]),
)  # fmt: skip
def test_random_networks(models: list[bytes], step: bool, growing: bool, longest: int) -> None:
    assert_all_exact(longest_plans(models, stack=True, step=step, growing=growing, longest=longest), runs=3)


@pytest.mark.emulated
@on_one_core()
def test_on_emulated_cores(target: str) -> None:
    for fed in (False, True):
        assert_exact(stacked(residual(), target=target, feed_rows=fed), runs=2)


@pytest.mark.campaign
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(networks(most_layers=24), min_size=10, max_size=10), st.booleans(), st.booleans(),
    st.sampled_from([2, 3, 4, 6, 10, 1000]),
)  # fmt: skip
def test_many_random_networks(models: list[bytes], step: bool, growing: bool, longest: int) -> None:
    assert_all_exact(longest_plans(models, stack=True, step=step, growing=growing, longest=longest), runs=3)


@pytest.mark.campaign
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(networks(most_layers=24), min_size=10, max_size=10))
def test_many_random_networks_for_the_least_ram(models: list[bytes]) -> None:
    assert_all_exact([plan_of(data, optimize="ram") for data in models], runs=3)


@pytest.mark.campaign
@settings(max_examples=2, deadline=None, derandomize=True, phases=[Phase.generate])
@given(models=st.lists(networks(most_layers=16), min_size=10, max_size=10))
def test_many_random_networks_on_an_emulated_core(models: list[bytes]) -> None:
    for target, growing in (("cortex-m4", True), ("cortex-m55", False), ("cortex-m55", True)):
        some = {"target": target, "growing": growing, "longest": 8, "min_scratch": growing, "kernels": "tinyfuse"}
        assert_all_exact(longest_plans(models, stack=True, **some), runs=3)


@pytest.mark.parametrize("longest", [3, 5, 1000])
@pytest.mark.parametrize("options", [{}, {"feed_rows": True}, {"step": True}], ids=["whole", "fed", "in steps"])
def test_outputs_grow_below_stacks(longest: int, options: dict) -> None:
    """A complete output is moved to the place where the next group reads it."""
    plan = stacked(residual(), growing=True, longest=longest, **options)
    grown = [group for group in plan.groups if group.resident_output]
    assert len(grown) > 1 or longest == 1000
    for group in grown:
        output = group.stack[0].tensor
        assert output in group.outputs and plan.storage[output].ring_rows == output.shape[1]
    # whatever is moved lies elsewhere then
    moved = [group for group in grown if plan.offset(group.stack[0].tensor) != plan.stack_offset(group)]
    assert moved or longest == 1000
    assert_exact(plan, runs=2)


def test_a_stack_on_an_output_takes_less_than_both_apart() -> None:
    """The output is whole when the rings are empty, and empty when they are fullest."""
    sketch = Sketch(5)
    image = sketch.value((1, 12, 12, 4))
    x = sketch.conv(image, 16, (3, 3), (2, 2))
    data = sketch.build([image], [sketch.conv(sketch.depthwise(x, (5, 5)), 24, (1, 1))])
    apart, grown = (stacked(data, feed_rows=True, growing=growing) for growing in (False, True))
    assert grown.groups[0].resident_output is grown.graph.outputs[0]
    assert grown.arena_bytes < 0.9 * apart.arena_bytes
    assert_exact(grown, runs=3)


@pytest.mark.parametrize("target", ["host", pytest.param("cortex-m4", marks=pytest.mark.emulated),
                                    pytest.param("cortex-m55", marks=pytest.mark.emulated),
                                    pytest.param("cortex-m0plus", marks=pytest.mark.emulated)])  # fmt: skip
def test_depthwise_rows_over_used_ones(target: str) -> None:
    """A pixel's window is read to the end before the next pixel's, so a row may lie a few pixels behind it."""
    models = [inverted(seed=seed, taps=taps) for seed, taps in enumerate([(5, 5), (3, 5), (7, 1), (3, 4)])]
    # cores take turns; Cortex-M0+ has the host's kernels
    models = {"cortex-m0plus": models[:1], "cortex-m4": models[::2], "cortex-m55": models[1::2]}.get(target, models)
    plans = longest_plans(models, stack=True, target=target, min_scratch=True)
    plans += longest_plans(models, stack=True, growing=True, longest=4, target=target, min_scratch=True)
    for plan in plans:
        makers = {stage.op.output: stage.op for group in plan.groups for stage in group.stages}
        pairs = [pair for group in plan.groups for pair in zip(group.stack, group.stack[1:], strict=False)]
        assert "DEPTHWISE_CONV_2D" in {makers[below.tensor].kind for below, above in pairs if above.taken}
    assert_all_exact(plans, runs=3)


def test_rows_of_padding_below_need_no_row() -> None:
    """A PAD that makes more rows after its input's last one: that row leaves the stack once."""
    sketch = Sketch(3)
    x = sketch.value((1, 4, 5, 12))
    y = sketch.pad(sketch.conv(x, 20, (1, 1)), 0, 2, 2, 2)
    y = sketch.add(y, sketch.unary(y, "LOGISTIC"), kind="MUL")
    plans = longest_plans([sketch.build([x], [sketch.unary(y, "RELU")])], stack=True, step=False)
    assert any(group.stack for plan in plans for group in plan.groups)
    assert_all_exact(plans, runs=3)
