"""Calls for a whole tensor or a row that overwrite inputs they have read: access orders, distances, plans."""

from __future__ import annotations

from dataclasses import replace

import pytest
from executors import assert_all_exact, grouped_plan, plan_of
from hypothesis import given
from hypothesis import strategies as st
from random_graphs import Sketch

from tinyfuse.errors import InternalFault
from tinyfuse.kernels.core.kernel import AccessOrder
from tinyfuse.options import OPTIMIZE
from tinyfuse.plan import Plan
from tinyfuse.plan.check.player import find_overwritten_iteration, verify_plan


def played_distance(access_order: AccessOrder, source: int, output: int) -> int:
    """The least distance at which no byte is overwritten before it is read, found by simulating each byte of each
    iteration."""
    iterations = range(-(-source // access_order.read))
    for distance in range(output + 1):
        for iteration in iterations:
            written = range(iteration * access_order.written, min((iteration + 1) * access_order.written, output))
            unread = range((iteration + access_order.buffered) * access_order.read - access_order.rereads, source)
            unread = range(max(0, unread.start), source)
            if {at - distance for at in written} & set(unread):
                break
        else:
            return distance
    raise AssertionError("even apart they meet")


@given(
    st.integers(1, 6), st.integers(0, 5), st.integers(1, 9), st.integers(1, 9), st.integers(0, 30), st.booleans()
)  # fmt: skip
def test_the_distance_is_the_least_that_keeps_what_is_unread(
    iterations: int, short: int, read: int, written: int, cut: int, buffered: bool
) -> None:
    source = max(1, iterations * read - min(short, read - 1))
    output = max(1, iterations * written - cut)  # which may end iterations before the source
    access_order = AccessOrder(read, written, buffered)
    assert access_order.distance(source, output) == played_distance(access_order, source, output)


@given(
    st.integers(1, 6), st.integers(1, 9), st.integers(1, 9), st.integers(0, 30), st.integers(0, 20), st.booleans()
)  # fmt: skip
def test_what_is_read_again_is_kept_and_no_more_is_asked_for(
    iterations: int, read: int, written: int, cut: int, rereads: int, buffered: bool
) -> None:
    """A distance is found, the checker takes it, and none that robs an iteration."""
    source, output = iterations * read, max(1, iterations * written - cut)
    order = AccessOrder(read, written, buffered, rereads)
    least = played_distance(order, source, output)
    assert order.distance(source, output) >= least
    for distance in range(output + 1):
        robbed = find_overwritten_iteration(
            order, range(output, output + source), range(output - distance, 2 * output - distance)
        )
        assert (robbed is None) == (distance >= least) or distance > least


def keyword_chain(seed: int = 2) -> bytes:
    """Rows of one pixel as in streaming keyword spotters: alternating depthwise and pointwise layers."""
    sketch = Sketch(seed)
    x = image = sketch.value((1, 30, 1, 40))
    for filters, taps in ((96, 3), (96, 5), (96, 8), (60, 3)):
        x = sketch.conv(sketch.depthwise(x, (taps, 1), padding="VALID"), filters, (1, 1), activation="RELU")
    return sketch.build([image], [x])


def dense_batches(seed: int = 2) -> bytes:
    """Dense layers on a batch of three: wider, equal and narrower outputs."""
    sketch = Sketch(seed)
    x = rows = sketch.value((3, 40))
    for units in (64, 64, 24, 31):
        x = sketch.dense(x, units, activation="RELU")
    return sketch.build([rows], [x])


def one_by_one(data: bytes, target: str, **options) -> Plan:
    """The plan whose fusion groups have one operator each."""
    count = len(plan_of(data, target, fusion="none").graph.ops)
    return grouped_plan(data, [1] * count, target, **options)


@pytest.mark.parametrize("target", ("cortex-m0plus", "cortex-m4", "cortex-m55"))
def test_a_pointwise_layer_writes_over_its_input(target: str) -> None:
    plan = one_by_one(keyword_chain(), target)
    largest = max(t.bytes + plan.graph.producer[t].input.bytes for t in plan.storage if t in plan.graph.producer)
    assert plan.arena_bytes < 0.75 * largest


def test_padding_takes_no_scratch_where_no_window_reaches_into_it() -> None:
    plan = one_by_one(keyword_chain(), "cortex-m4")
    depthwise = [s for group in plan.groups for s in group.stages if s.op.kind == "DEPTHWISE_CONV_2D"]
    assert [s.scratch_bytes for s in depthwise] == [16, 24, 32, 16]


@pytest.mark.slow
@pytest.mark.parametrize("target", ("host", "cortex-m4", "cortex-m55"))
def test_they_are_exact(target: str) -> None:
    # in `rows`, batches are rows of an image
    models = (keyword_chain(), "rows"), (dense_batches(), "basic")
    plans = [one_by_one(data, target, fusion=fusion, optimize=o) for data, fusion in models for o in OPTIMIZE]
    assert_all_exact(plans, runs=2)


@pytest.mark.parametrize("target", ("cortex-m4", "cortex-m55"))
def test_a_depthwise_layer_of_single_columns_works_in_place(target: str) -> None:
    plan = one_by_one(keyword_chain(), target)
    for group in plan.groups:
        (stage,) = group.stages
        if stage.op.kind == "DEPTHWISE_CONV_2D":
            source, output = (plan.storage[t].buffer for t in (stage.op.input, stage.op.output))
            (overlap,) = (o for o in plan.overlaps if (o.below, o.above) == (output, source))
            assert overlap.distance == 0


@pytest.mark.parametrize("target", ("cortex-m0plus", "cortex-m4", "cortex-m55"))
def test_a_convolution_writes_a_row_over_the_first_of_its_window(target: str) -> None:
    """The first output row of 96 bytes lies below the image, except for the 72 bytes of the first input row, which is
    no longer needed. A core that computes four pixels together needs room for one more block."""
    sketch = Sketch(3)
    image = sketch.value((1, 24, 24, 3))
    data = sketch.build([image], [sketch.conv(image, 8, (3, 3), stride=(2, 2))])
    (overlap,) = plan_of(data, target).overlaps[:1]
    assert 24 <= overlap.distance <= (48 if target == "cortex-m55" else 24)


@pytest.mark.parametrize("target", ("cortex-m4", "cortex-m55"))
def test_verify_plan_finds_an_output_that_comes_before_its_input_is_read(target: str) -> None:
    plan = one_by_one(keyword_chain(), target)
    kinds = []
    for group in plan.groups:
        (stage,) = group.stages
        source, output = (plan.storage[t].buffer for t in (stage.op.input, stage.op.output))
        if stage.op.output.shape[3] < stage.op.input.shape[3]:
            continue  # a few bytes nearer would do no harm
        (overlap,) = (o for o in plan.overlaps if (o.below, o.above) == (output, source))
        apart = {name: (k + 1) << 14 for k, name in enumerate(plan.placement.offsets)}
        offsets = apart | {source: 1 << 12, output: (1 << 12) - overlap.distance + 4}
        arena = max(offsets.values()) + (1 << 14)
        moved = replace(plan, placement=replace(plan.placement, offsets=offsets, arena_bytes=arena), overlaps=())
        with pytest.raises(InternalFault, match="overwrites .* before iteration|overwritten"):
            _play(moved)
        kinds.append(stage.op.kind)
    assert kinds == ["DEPTHWISE_CONV_2D", "CONV_2D"] * 3 + ["DEPTHWISE_CONV_2D"]


def _play(plan: Plan) -> None:
    """Runs verify_plan without its quick check of offsets, which finds the same faults."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tinyfuse.plan.check.player.check_placement", lambda *_: None)
        verify_plan(plan)
