"""Kernels are chosen by measured costs, within the user's options."""

from __future__ import annotations

from dataclasses import replace

import pytest
from contexts import context_of
from random_graphs import Sketch
from test_rewrites import graph_of

from tinyfuse.cost import cost_table
from tinyfuse.ir import Op
from tinyfuse.kernels.core.context import Context, with_objective
from tinyfuse.schedule.kernel_choice.select import candidates, row_kernel, whole_kernel
from tinyfuse.targets import all_targets, load_target

M4 = context_of(load_target("cortex-m4"), optimize="speed")
MIXED = replace(M4, kernels="mixed")


def depthwise(channels: int, width: int = 24) -> Op:
    sketch = Sketch(1)
    x = sketch.value((1, 12, width, channels))
    return graph_of(sketch.build([x], [sketch.depthwise(x, (3, 3))])).ops[0]


def predicted(op: Op, context: Context) -> dict[str, float | None]:
    """Predictions of all kernels that compute the whole operator, by kernel name."""
    table = cost_table(context.target.cost_table)
    return {k.name: table.kernel(op, k, not k.whole, context) for k in candidates(op, context)}


@pytest.mark.parametrize("channels", [3, 8, 16])
@pytest.mark.parametrize("width", [1, 24])
@pytest.mark.parametrize("target", ["cortex-m0plus", "cortex-m3", "cortex-m4", "cortex-m55"])
def test_no_kernel_is_surely_faster_than_the_one_that_is_taken(target: str, width: int, channels: int) -> None:
    context, op = replace(MIXED, target=load_target(target)), depthwise(channels, width)
    costs = predicted(op, context)
    kernel, _ = whole_kernel(op, context)
    least = min(cost for cost in costs.values() if cost is not None)
    assert 0.9 * costs[kernel.name] <= least or costs[kernel.name] <= least + 5000


def test_loops_in_c_must_be_surely_faster() -> None:
    """Regression: they were predicted to take 3 % less than the packed kernel, and took twice as many."""
    sketch = Sketch(1)
    x = sketch.value((1, 64, 1, 4))
    op = graph_of(sketch.build([x], [sketch.depthwise(x, (9, 1), activation="RELU")])).ops[0]
    costs = predicted(op, M4)
    assert row_kernel(op, M4, rings=False).name == "tinyfuse_depthwise_packed_row_s8"
    assert costs["tinyfuse_depthwise_row_s8"] > 0.9 * costs["tinyfuse_depthwise_packed_row_s8"]


def test_a_library_is_not_called_for_little() -> None:
    sketch = Sketch(1)
    x = sketch.value((1, 5, 5, 3))
    op = graph_of(sketch.build([x], [sketch.depthwise(x, (3, 3))])).ops[0]
    costs = predicted(op, MIXED)
    kernel, _ = whole_kernel(op, MIXED)
    assert min(costs, key=costs.get).startswith("arm_") and kernel.library == "tinyfuse"


@pytest.mark.parametrize("kernels", ["auto", "tinyfuse"])
def test_no_library_is_called_unless_the_user_names_one(kernels: str) -> None:
    """A depthwise convolution of three channels is one that CMSIS-NN computes faster."""
    for channels in (3, 8):
        found = candidates(depthwise(channels), replace(M4, kernels=kernels))
        assert found and {kernel.library for kernel in found} == {"tinyfuse"}


def test_cmsis_nn_is_mixed_in_where_it_is_faster() -> None:
    op = depthwise(3)  # ours takes four channels at a time
    assert whole_kernel(op, MIXED)[0].library == "cmsis-nn"
    # its scratch costs RAM
    assert whole_kernel(op, with_objective(MIXED, optimize="ram"))[0].library == "tinyfuse"
    # a copy of CMSIS-NN may lack the function
    lacks = frozenset({"arm_depthwise_conv_wrapper_s8"})
    assert whole_kernel(op, replace(MIXED, lacks=lacks))[0].library == "tinyfuse"


def test_ours_is_taken_where_it_is_faster_unless_cmsis_nn_is_asked_for() -> None:
    op = depthwise(8)
    assert whole_kernel(op, MIXED)[0].library == "tinyfuse"
    assert whole_kernel(op, replace(M4, kernels="cmsis-nn"))[0].library == "cmsis-nn"


def test_rows_of_rings_are_the_surely_faster_ones_too() -> None:
    """Rings that slide keep the rows in order that CMSIS-NN wants. With `ram` they are ours."""
    assert row_kernel(depthwise(3), MIXED, rings=True).library == "cmsis-nn"
    assert row_kernel(depthwise(3), with_objective(MIXED, optimize="ram"), rings=True).library == "tinyfuse"


def test_a_call_makes_as_many_rows_as_pay() -> None:
    """With five pixels in a row, each call has one pixel left over; with 48 there is little to save."""
    context = with_objective(replace(M4, kernels="cmsis-nn"), at_once=4)

    def rows(width: int, context: Context) -> int:
        sketch = Sketch(2)
        x = sketch.value((1, 25, width, 64))
        op = graph_of(sketch.build([x], [sketch.conv(x, 64, (1, 1))])).ops[0]
        return row_kernel(op, context, rings=True).rows_a_call

    assert rows(5, context) == 4
    assert rows(48, context) == 1
    assert rows(5, with_objective(context, at_once=2)) == 2
    assert rows(5, with_objective(context, at_once=1)) == 1
    assert rows(5, replace(context, divided=True)) == 1


def test_without_a_cost_table_the_familys_order_decides() -> None:
    context = replace(MIXED, target=replace(M4.target, cost_table=None))
    assert whole_kernel(depthwise(3), context)[0].library == "tinyfuse"


def test_every_cost_table_that_a_target_names_is_there() -> None:
    targets = all_targets()
    named = {name: target.cost_table for name, target in targets.items()}
    assert all(cost_table(table) for name, table in named.items() if targets[name].cpu)
    assert named["host"] is named["generic32"] is None
    # without Helium or DSP extension a core runs other kernels
    assert (named["cortex-m55+nomve"], named["cortex-m33+nodsp"]) == ("cortex-m4", "cortex-m3")
