"""Kernels that make four rows a call (Winograd's), in row groups, from rings, fed, and in batches: the loop that is
printed, the plan and its checker count in calls. The C twins run on the host, the assembly on an emulated core."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from conv_cases import Shape, make_op
from executors import assert_all_exact, assert_exact, grouped_plan, plan_of
from hypothesis import given, settings
from hypothesis import strategies as st
from random_graphs import Sketch
from test_winograd_1d import INPUTS, OUTPUTS

from tinyfuse.errors import InternalFault
from tinyfuse.kernels.layers.int8_dsp.winograd import WinogradRows, transformed, winograd_layer
from tinyfuse.kernels.requantize.two_roundings import bounded
from tinyfuse.ops.core.family import RowWindow
from tinyfuse.options import OPTIMIZE
from tinyfuse.plan import Plan
from tinyfuse.plan.check.player import verify_plan
from tinyfuse.plan.loop import StageRows, play

NAME = WinogradRows.name


def layers_by_four(plan: Plan) -> int:
    return sum(stage.kernel.name == NAME for group in plan.all_groups for stage in group.stages)


def chain(height: int, width: int, padding: str = "SAME") -> bytes:
    """Layers that read four rows a call, make four rows a call, or both, and a layer that reads two rows at different
    places."""
    sketch = Sketch(height * 16 + width)
    x = sketch.value((1, height, width, 4))
    first = sketch.conv(x, 8, (3, 3), padding=padding)
    second = sketch.conv(first, 8, (3, 3), padding="SAME", activation="RELU")
    down = sketch.depthwise(sketch.add(first, second), (3, 3), (2, 2))
    last = sketch.conv(sketch.relu(down), 4, (3, 3))
    return sketch.build([x], [sketch.pool(last, "MAX_POOL_2D", (2, 1), (1, 1))])


def two_images() -> bytes:
    sketch = Sketch(1)
    x = sketch.value((2, 7, 8, 4))
    return sketch.build([x], [sketch.conv(x, 6, (3, 3))])


def plans(target: str = "cortex-m4") -> list[Plan]:
    """Plans in one group, in several, and in groups of one operator; with fed rows; with a batch."""
    how: dict = {"kernels": "tinyfuse", "weights": "winograd"}
    sizes = (8, 9), (7, 13), (11, 8)
    found = [
        grouped_plan(chain(*size), (6,), target, optimize=o, **how) for size, o in zip(sizes, OPTIMIZE, strict=True)
    ]
    found += [grouped_plan(chain(9, 12, "VALID"), lengths, target, **how) for lengths in ((6,), (2, 4), (1,) * 6)]
    fed = [plan_of(chain(10, 8), target, feed_rows=True, optimize=o, **how) for o in ("speed", "balanced")]
    return [*found, *fed, plan_of(two_images(), target, **how)]


def test_groups_with_rows_by_four_are_exact() -> None:
    made = plans()
    assert min(map(layers_by_four, made)) > 0 and max(map(layers_by_four, made)) == 3
    assert any(storage.slides for plan in made for storage in plan.storage.values())
    assert_all_exact([plan for plan in made if plan.fed is None], on_host=True)
    fed = [plan for plan in made if plan.fed is not None]
    assert fed
    for plan in fed:
        assert_exact(plan, runs=2, on_host=True)


@pytest.mark.emulated
def test_groups_with_rows_by_four_are_exact_on_a_core() -> None:
    assert_all_exact([plan for plan in plans() if plan.fed is None], runs=3)
    assert_exact(next(plan for plan in plans() if plan.fed is not None), runs=2)


@st.composite
def networks_by_four(draw: st.DrawFn) -> tuple[bytes, str]:
    """Networks of many layers that read and make four rows a call, and others that make one row or less."""
    sketch = Sketch(draw(st.integers(0, 999)))
    x = y = sketch.value((1, draw(st.integers(3, 14)), draw(st.integers(4, 9)), 4))
    for _ in range(draw(st.integers(2, 6))):
        sort = draw(st.sampled_from(("four", "four", "four", "down", "pool", "add", "up")))
        if sort == "four":
            before = y
            y = sketch.conv(y, draw(st.sampled_from((4, 8))), (3, 3))
            if draw(st.booleans()) and before.shape == y.shape:
                y = sketch.add(before, y)
        elif sort == "down" and y.shape[1] > 6:
            y = sketch.depthwise(y, (3, 3), (2, 1))
        elif sort == "pool" and y.shape[1] > 3:
            y = sketch.pool(y, "AVERAGE_POOL_2D", (2, 1), (1, 1))
        elif sort == "up" and y.shape[1] < 8:
            y = sketch.resize(y, (2 * y.shape[1], y.shape[2]), "RESIZE_NEAREST_NEIGHBOR")
        else:
            y = sketch.relu(y)
    return sketch.build([x], [y]), draw(st.sampled_from(OPTIMIZE))


@settings(max_examples=2, deadline=None)
@given(st.lists(networks_by_four(), min_size=6, max_size=6))
def test_networks_with_rows_by_four_are_exact(models: list[tuple[bytes, str]]) -> None:
    how = {"kernels": "tinyfuse", "weights": "winograd"}
    assert_all_exact([plan_of(data, "cortex-m4", optimize=o, **how) for data, o in models], on_host=True)


@pytest.mark.campaign
@settings(max_examples=60, deadline=None)
@given(st.lists(networks_by_four(), min_size=8, max_size=8))
def test_many_networks_with_rows_by_four_are_exact(models: list[tuple[bytes, str]]) -> None:
    how = {"kernels": "tinyfuse", "weights": "winograd"}
    assert_all_exact([plan_of(data, "cortex-m4", optimize=o, **how) for data, o in models], on_host=True)


# --- the plan ----------------------------------------------------------------------------------


def test_a_loop_counts_rows_by_two() -> None:
    """A 3x3 window over rows made two at a time, the last one alone: five rows, two of a ring of five too many."""
    loop = play((StageRows(5, (), False, False, 2), StageRows(5, ((0, RowWindow(3, 1, 1)),), True, False)))
    assert loop.order.tolist() == [0, 1, 0, 1, 1, 0, 1, 1]
    assert loop.calls.tolist() == [3, 5] and loop.rows_made.tolist() == [5, 5]
    assert [events.tolist() for events in loop.row_events] == [[0, 0, 2, 2, 5], [1, 3, 4, 6, 7]]
    assert loop.rings == {0: 4}


def test_readers_by_two_wait_for_both_rows() -> None:
    loop = play((StageRows(5, (), False, False), StageRows(5, ((0, RowWindow(3, 1, 1)),), True, False, 2)))
    assert loop.order.tolist() == [0, 0, 0, 1, 0, 0, 1, 1]
    assert loop.rings == {0: 4}


def shorter_ring(plan: Plan) -> Plan:
    """The plan with one row less in each ring of more than one."""
    storage = {
        tensor: replace(where, ring_rows=where.ring_rows - 1) if 1 < where.ring_rows < tensor.shape[1] else where
        for tensor, where in plan.storage.items()
    }
    return replace(plan, storage=storage)


def test_the_checker_knows_of_the_second_row() -> None:
    """A ring that would be long enough if calls made a row each, and a plan that says they do."""
    plan = grouped_plan(chain(8, 8), (6,), "cortex-m4", kernels="tinyfuse", weights="winograd", optimize="speed")
    verify_plan(plan)
    with pytest.raises(InternalFault):
        verify_plan(shorter_ring(plan))


# --- proofs ------------------------------------------------------------------------------------


def filters(shape: Sequence[int], least: bool = False) -> np.ndarray:
    return (
        np.full(shape, -128, np.int8) if least else np.random.default_rng(1).integers(-128, 128, shape).astype(np.int8)
    )


@pytest.mark.parametrize("least", (False, True))
def test_transformed_filters_give_576_times_the_sums(least: bool) -> None:
    """Over tiles of random and extreme inputs; the transformed inputs and filters within their bounds."""
    rng, g = np.random.default_rng(2), filters((6, 3, 3, 4), least)
    d = rng.integers(-128, 128, (50, 6, 6, 4))
    d[:20] = rng.choice([-128, 127], (20, 6, 6, 4))
    inputs, weights = np.einsum("ia,nabc,jb->nijc", INPUTS, d, INPUTS), transformed(g).astype(np.int64)
    assert np.abs(inputs).max() <= 12800 and np.abs(weights).max() <= 21504
    sums = np.einsum("nijc,oijc->noij", inputs, weights)
    down = OUTPUTS * [2, 2, 1, 1, 1, 4]
    wanted = [
        [np.einsum("nabc,oabc->no", d[:, y : y + 3, x : x + 3], g.astype(np.int64)) for x in range(4)] for y in range(4)
    ]
    np.testing.assert_array_equal(np.einsum("yi,noij,xj->yxno", down, sums, OUTPUTS), 576 * np.array(wanted))


def test_what_is_not_proven_is_refused() -> None:
    """A sum that may leave int32, 64 times; widths and channels that are no blocks."""
    rng = np.random.default_rng(3)
    deep = make_op(Shape("CONV_2D", 2, 4, 300, 2, (3, 3)), rng)
    assert winograd_layer(deep) is not None
    weights = replace(deep.operand(1), data=np.full(deep.operand(1).shape, 127, np.int8))
    assert bounded(with_most := replace(deep, inputs=(deep.input, weights, *deep.inputs[2:]))) is not None
    assert winograd_layer(with_most) is None
    kernel = WinogradRows()
    target = grouped_plan(two_images(), (1,), "cortex-m4", weights="winograd").context
    for shape in (
        Shape("CONV_2D", 4, 3, 4, 2, (3, 3)), Shape("CONV_2D", 4, 8, 6, 2, (3, 3)), Shape("CONV_2D", 4, 8, 4, 3, (3, 3)),
        Shape("CONV_2D", 8, 8, 4, 2, (3, 3), (2, 2)), Shape("CONV_2D", 8, 8, 4, 2, (3, 3), dilation=(1, 2)),
        Shape("CONV_2D", 8, 8, 8, 2, (3, 3), groups=2), Shape("CONV_2D", 8, 8, 4, 2, (3, 2)),
    ):  # fmt: skip
        assert not kernel.accepts(make_op(shape, rng), target), shape
    assert kernel.accepts(make_op(Shape("CONV_2D", 4, 4, 4, 2, (3, 3)), rng), target)


# --- what is chosen ----------------------------------------------------------------------------


def weights_of(data: bytes, **options) -> tuple[int, int]:
    """Returns bytes of weights, and the number of Winograd layers."""
    plan = plan_of(data, "cortex-m4", kernels="tinyfuse", **options)
    return plan.weight_bytes, layers_by_four(plan)


def wide() -> bytes:
    """Three layers for which transformed weights pay less and less, because they have fewer pixels."""
    sketch = Sketch(4)
    x = y = sketch.value((1, 32, 32, 16))
    for _ in range(2):
        y = sketch.conv(y, 16, (3, 3))
        y = sketch.conv(y, 16, (3, 3), (2, 2))
    return sketch.build([x], [sketch.conv(y, 16, (3, 3))])


def test_auto_takes_the_flash_that_pays_and_that_there_is() -> None:
    data = wide()
    packed, none = weights_of(data, optimize="speed", weights="packed")
    every, three = weights_of(data, optimize="speed", weights="auto")
    assert (none, three) == (0, 3) and every > packed
    priced, fewer = weights_of(data, optimize="balanced", weights="auto")
    assert packed < priced < every and 0 < fewer <= 3
    found = [
        weights_of(data, optimize="speed", weights="auto", max_flash=limit) for limit in range(20_000, 100_000, 8_000)
    ]
    assert all(a <= b for (a, _), (b, _) in pairwise(found)) and found[0] == (packed, 0) and found[-1] == (every, three)
