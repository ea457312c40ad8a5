"""Row streaming: ring sizes, overlaps, and lowering of chains and residual blocks of any length."""

from __future__ import annotations

from dataclasses import replace

import pytest
from executors import plan_of
from hypothesis import given, settings
from hypothesis import strategies as st
from plan_parts import plan_groups
from random_graphs import Sketch, networks
from stream_models import STREAM_MODELS

from tinyfuse.arena import plan_arena
from tinyfuse.compiler import compile_graph
from tinyfuse.errors import InternalFault
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.kernels.core.context import Context
from tinyfuse.options import FUSION, OPTIMIZE, Options
from tinyfuse.plan import Plan
from tinyfuse.plan.check.player import verify_plan
from tinyfuse.rewrite import rewrite
from tinyfuse.schedule.groups.partition import partition
from tinyfuse.targets import load_target

M4 = load_target("cortex-m4")


def one_group(data: bytes) -> Plan:
    """The verified plan with the whole model in one fusion group."""
    graph = read_tflite("model.tflite", data)
    return plan_groups(graph, graph, [list(graph.ops)], Context(M4), Options("net"))


def rings(plan: Plan) -> list[int]:
    """Ring sizes, in rows, of the tensors inside the only group, in its order."""
    inner = [op.output for op in plan.graph.ops if op.output not in plan.graph.outputs]
    return [plan.storage[tensor].ring_rows for tensor in inner]


def separable(rows: int = 9) -> bytes:
    sketch = Sketch(1)
    x = sketch.value((1, rows, 7, 8))
    y = sketch.conv(x, 8, (3, 3))
    y = sketch.depthwise(y, (3, 3))
    return sketch.build([x], [sketch.conv(y, 16, (1, 1))])


def test_a_chain_of_three_keeps_only_the_windows() -> None:
    assert rings(one_group(separable())) == [3, 1]


def test_one_row_images_keep_one_row() -> None:
    assert rings(one_group(separable(rows=1))) == [1, 1]


def test_strides_do_not_grow_rings() -> None:
    sketch = Sketch(2)
    x = sketch.value((1, 23, 5, 3))
    y = sketch.conv(x, 4, (3, 3), (2, 2))
    y = sketch.depthwise(y, (5, 3), (2, 1))
    y = sketch.conv(y, 6, (1, 1))
    assert rings(one_group(sketch.build([x], [sketch.depthwise(y, (3, 3), (2, 2))]))) == [5, 1, 3]


def test_an_inverted_residual_lags_by_the_window() -> None:
    sketch = Sketch(3)
    start = sketch.value((1, 12, 6, 4))
    x = sketch.conv(start, 8, (1, 1))
    wide = sketch.conv(x, 24, (1, 1))
    deep = sketch.depthwise(wide, (3, 3))
    narrow = sketch.conv(deep, 8, (1, 1))
    plan = one_group(sketch.build([start], [sketch.add(x, narrow)]))
    # x keeps the ADD's row while the depthwise reads one row below it
    assert rings(plan) == [2, 3, 1, 1]


def test_a_residual_block_with_projection_streams_both_branches() -> None:
    sketch = Sketch(4)
    x = sketch.value((1, 16, 8, 8))
    left = sketch.conv(sketch.conv(x, 16, (3, 3), (2, 2)), 16, (3, 3))
    right = sketch.conv(x, 16, (1, 1), (2, 2))
    plan = one_group(sketch.build([x], [sketch.add(left, right)]))
    assert rings(plan) == [3, 1, 1]


def test_the_output_lies_over_the_input_rows_that_are_used_up() -> None:
    sketch = Sketch(5)
    x = sketch.value((1, 10, 5, 16))
    plan = one_group(sketch.build([x], [sketch.conv(sketch.depthwise(x, (3, 3)), 16, (1, 1))]))
    source, output = (plan.storage[t].buffer for t in (*plan.graph.inputs, *plan.graph.outputs))
    (overlap,) = (o for o in plan.overlaps if (o.below, o.above) == (output, source))
    assert overlap.distance == 5 * 16  # one row: the window's first row is still needed
    assert plan.arena_bytes < 2 * x.shape[1] * 5 * 16


def test_rings_lie_over_the_input_rows_that_are_used_up() -> None:
    """The ring of the average's sums begins when the image's first rows are gone; its result comes last."""
    sketch = Sketch(8)
    x = sketch.value((1, 30, 8, 16))
    y = sketch.depthwise(sketch.conv(x, 16, (5, 3), (2, 1), "VALID"), (5, 3), padding="VALID")
    data = sketch.build([x], [sketch.pool(y, "AVERAGE_POOL_2D", y.shape[1:3], (1, 1))])
    graph = read_tflite("model.tflite", data)
    streamed = rewrite(graph, "rows", "auto")
    plan = plan_groups(graph, streamed, [list(streamed.ops)], Context(M4), Options("net"))
    source = plan.storage[plan.graph.inputs[0]].buffer
    inner = {plan.storage[t].buffer for t in plan.storage} - {source}
    above_none = [o for o in plan.overlaps if o.above == source and o.below in inner and o.distance == 0]
    assert above_none
    without = [o for o in plan.overlaps if source not in (o.above, o.below)]
    assert plan_arena(plan.buffers, without).arena_bytes > plan.placement.arena_bytes
    offsets = plan.placement.offsets
    wrong = dict(offsets)
    wrong[plan.storage[plan.graph.ops[0].output].buffer] = offsets[source]  # the first ring needs the first rows' place
    with pytest.raises(InternalFault):
        verify_plan(replace(plan, placement=replace(plan.placement, offsets=wrong)))


def test_an_input_that_is_an_output_too_is_not_overwritten() -> None:
    sketch = Sketch(6)
    x = sketch.value((1, 4, 4, 4))
    y = sketch.conv(x, 4, (1, 1))
    assert not one_group(sketch.build([x], [y, x])).overlaps


def test_verify_plan_finds_what_a_wrong_overlap_breaks() -> None:
    plan = one_group(separable())
    wrong = dict(plan.placement.offsets)
    source, output = plan.storage[plan.graph.inputs[0]], plan.storage[plan.graph.outputs[0]]
    wrong[output.buffer] = wrong[source.buffer]
    placement = type(plan.placement)(wrong, plan.arena_bytes, 0, False)
    with pytest.raises(InternalFault):
        verify_plan(replace(plan, placement=placement))


def test_verify_plan_finds_a_ring_that_is_too_small() -> None:
    plan = one_group(separable())
    ring = next(t for t, s in plan.storage.items() if s.ring_rows == 3)
    storage = dict(plan.storage)
    storage[ring] = replace(storage[ring], ring_rows=2)
    with pytest.raises(InternalFault, match="overwritten|outside"):
        verify_plan(replace(plan, storage=storage))


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(networks(), st.sampled_from(FUSION), st.sampled_from(OPTIMIZE))
def test_every_plan_survives_its_checker(data: bytes, fusion: str, optimize: str) -> None:
    graph = read_tflite("model.tflite", data)
    plan = compile_graph(graph, M4, Options("net", fusion=fusion, optimize=optimize))
    scheduled = [op for group in plan.groups for op in group.ops]
    assert len(set(scheduled)) == len(scheduled)
    if fusion == "none":
        assert len(plan.groups) == len(plan.graph.ops)
    for tensor, storage in plan.storage.items():
        if len(tensor.shape) == 4:
            assert storage.ring_rows <= tensor.shape[1]


def test_an_image_that_was_a_vector_streams_all_its_rows() -> None:
    sketch = Sketch(5)
    x = sketch.value((1, 96))
    y = sketch.depthwise(sketch.reshape(x, (1, 8, 4, 3)), (3, 3))
    data = sketch.build([x], [sketch.conv(y, 4, (1, 1))])
    graph = read_tflite("model.tflite", data)
    for kernels in ("tinyfuse", "cmsis-nn"):
        context = Context(M4, kernels=kernels)
        plan = plan_groups(graph, graph, partition(graph, context, "rows"), context, Options("net"))
        assert [len(group.ops) for group in plan.groups] == [2]
        image = plan.groups[0].inputs[0]
        assert (image.shape, plan.storage[image].ring_rows) == ((1, 8, 4, 3), 8)


def test_a_global_average_takes_rows_as_they_come() -> None:
    sketch = Sketch(7)
    x = sketch.value((1, 12, 6, 4))
    y = sketch.conv(x, 16, (3, 3))
    data = sketch.build([x], [sketch.pool(y, "AVERAGE_POOL_2D", (12, 6), (1, 1))])
    plan = compile_graph(read_tflite("model.tflite", data), M4, Options("net", optimize="ram"))
    (group,) = plan.groups
    assert [op.kind for op in group.ops] == ["CONV_2D", "ROW_SUM", "AVERAGE_OF_SUM"]
    sums = plan.storage[group.ops[1].output]
    assert sums.ring_rows == 1
    # between two rows of the image only the sums are kept, and nothing may take their bytes
    wrong = dict(plan.placement.offsets)
    wrong[plan.storage[group.ops[0].output].buffer] = wrong[sums.buffer]
    with pytest.raises(InternalFault):
        verify_plan(replace(plan, placement=replace(plan.placement, offsets=wrong)))


def test_optimize_trades_ram_for_speed_within_max_ram() -> None:
    sketch = Sketch(11)
    x = sketch.value((1, 12, 7, 8))
    wide = sketch.depthwise(sketch.conv(x, 32, (3, 3)), (3, 3))
    source = read_tflite("model.tflite", sketch.build([x], [sketch.conv(wide, 8, (1, 1))]))

    def plan(optimize: str, max_ram: int | None = None) -> Plan:
        return compile_graph(source, M4, Options("net", optimize=optimize, max_ram=max_ram))

    fast, small = plan("speed"), plan("ram")
    assert len(fast.groups) > len(small.groups) == 1
    assert fast.arena_bytes > plan("balanced").arena_bytes >= small.arena_bytes
    assert plan("speed", fast.arena_bytes - 1).arena_bytes < fast.arena_bytes


# --- state -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", STREAM_MODELS)
def test_models_with_state_are_planned_under_every_option(name: str) -> None:
    """verify_plan checks that what is done to a state keeps its order, and that states lie apart."""
    for fusion, optimize in (("none", "balanced"), ("basic", "balanced"), ("rows", "speed"), ("rows", "ram")):
        plan = plan_of(STREAM_MODELS[name], fusion=fusion, optimize=optimize)
        assert plan.state_bytes >= sum(tensor.bytes for tensor in plan.graph.states) > 0
        assert plan.ram_bytes == plan.arena_bytes + plan.state_bytes


@pytest.mark.parametrize("name", ["streaming convolutions", "several rows a frame", "time in columns"])
def test_a_window_is_a_ring(name: str) -> None:
    """No copy of the window is left: only the frame is pushed."""
    plan = plan_of(STREAM_MODELS[name])
    kinds = [op.kind for op in plan.graph.ops]
    assert not {"READ_VARIABLE", "ASSIGN_VARIABLE", "CONCATENATION", "STRIDED_SLICE", "SLICE"} & set(kinds)
    rings = [tensor for tensor in plan.states if tensor.cursor is not None]
    assert len(rings) == kinds.count("RING_PUSH") > 0
    assert plan.state_bytes == sum(-(-ring.bytes // 4) * 4 + 4 for ring in rings)


def test_a_window_that_is_read_otherwise_is_no_ring() -> None:
    plan = plan_of(STREAM_MODELS["window without a ring"])
    assert "READ_VARIABLE" in {op.kind for op in plan.graph.ops} and len(plan.states) == 1
