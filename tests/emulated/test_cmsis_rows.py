"""Groups of CMSIS-NN's calls: rows in order in rings that slide, one or several rows a call."""

from __future__ import annotations

import numpy as np
import pytest
from cmsis_chains import CHAINS, drawn_chain, model_of, one_group
from cmsis_harness import tree_or_skip
from executors import assert_all_exact, assert_exact, plan_of
from plan_parts import prepare
from random_graphs import Sketch

from tinyfuse.frontend.reader import read_tflite
from tinyfuse.kernels.cmsis.common import SEVERAL_ROWS
from tinyfuse.options import Options
from tinyfuse.plan import Plan, Stage
from tinyfuse.schedule.groups.legality import Legality
from tinyfuse.targets import load_target
from tinyfuse.toolchain.cmsis_nn import Tree

#: rows a call, at most
AT_ONCE = (1, *SEVERAL_ROWS)


def of_library(plan: Plan) -> list[Stage]:
    """Stages that CMSIS-NN computes by rows."""
    return [s for group in plan.groups for s in group.stages if s.by_row and s.kernel.library == "cmsis-nn"]


def chains(tree: Tree, target: str, dtype: str = "int8") -> list[Plan]:
    """Plans of every chain as one group: calls of up to one and four rows, or of up to two and eight."""
    options = {"cmsis_nn_version": ".".join(map(str, tree.version))}
    plans = [
        one_group(model_of(chain, dtype=dtype), target, f"{name}_{rows}", rows, **options)
        for number, (name, chain) in enumerate(CHAINS.items())
        for rows in AT_ONCE[number % 2 :: 2]
    ]
    return [plan for plan in plans if not tree.missing(plan.cmsis_nn_functions)]


@pytest.mark.emulated
@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m55"])
@pytest.mark.parametrize("wanted", ["4.0", "newest"])
def test_chains_in_one_group_are_exact(wanted: str, target: str) -> None:
    """Odd heights, strides, paddings, dilation, two readers of a ring, rows that nobody reads; rings begin anywhere."""
    tree = tree_or_skip(wanted)
    plans = chains(tree, target)
    stages = [stage for plan in plans for stage in of_library(plan)]
    assert {stage.kernel.rows_a_call for stage in stages} >= {1, 2, 4}
    sliding = [plan.storage[t].ring_rows for plan in plans for t in plan.storage if plan.storage[t].slides]
    assert len(plans) >= 8 and len(sliding) > 20 and max(sliding) > 8
    assert_all_exact(plans, 2, tree=tree)


@pytest.mark.emulated
@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m55"])
def test_chains_of_int16_are_exact(target: str) -> None:
    tree = tree_or_skip("newest")
    if tree.version < (7, 0):
        pytest.skip("needs CMSIS-NN 7.0 or later: CMSIS_NN_PATH names an older one")
    plans = chains(tree, target, "int16")
    assert any(stage.kernel.name == "arm_depthwise_conv_wrapper_s16" for plan in plans for stage in of_library(plan))
    assert_all_exact(plans, 2, tree=tree)


@pytest.mark.emulated
@pytest.mark.campaign
@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m55"])
def test_random_chains_are_exact(target: str) -> None:
    """300 chains in one group each, and as the search groups them."""
    tree, rng = tree_or_skip("newest"), np.random.default_rng(24)
    for _ in range(15):
        plans = []
        for number in range(20):
            data = model_of(drawn_chain(rng), int(rng.integers(2**20)))
            plans.append(one_group(data, target, f"n{number}", int(rng.choice(AT_ONCE))))
            optimize = str(rng.choice(["speed", "balanced", "ram"]))
            plans.append(plan_of(data, target, f"s{number}", kernels="cmsis-nn", optimize=optimize))
        assert_all_exact([plan for plan in plans if not tree.missing(plan.cmsis_nn_functions)], 1, tree=tree)


def network() -> bytes:
    """A network with five pixels a row: a call for one row leaves one pixel over."""
    sketch = Sketch(3)
    image = sketch.value((1, 51, 5, 2))
    x = sketch.conv(image, 16, (3, 3), (2, 1))
    for _ in range(3):
        x = sketch.conv(sketch.depthwise(x, (3, 3), activation="RELU"), 16, (1, 1), activation="RELU")
    return sketch.build([image], [sketch.pool(x, "MAX_POOL_2D", (5, 5), (5, 5))])


@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m55"])
def test_the_search_makes_long_groups_of_calls_for_several_rows(target: str) -> None:
    """The least RAM in one group, a row a call; balanced, calls share what they set up. RAM and rows grow together."""
    found = {
        optimize: plan_of(network(), target, kernels="cmsis-nn", optimize=optimize) for optimize in ("ram", "balanced")
    }
    assert {group.library for plan in found.values() for group in plan.groups} == {"cmsis-nn"}
    assert [len(group.stages) for group in found["ram"].groups] == [8]
    at_once = [max(stage.kernel.rows_a_call for stage in of_library(plan)) for plan in found.values()]
    assert at_once[0] == 1 < at_once[1]
    alone = plan_of(network(), target, kernels="cmsis-nn", fusion="none").arena_bytes
    assert found["ram"].arena_bytes < found["balanced"].arena_bytes < alone


def test_no_group_calls_our_kernel_where_cmsis_nn_has_one() -> None:
    """The softmax over channels streams with ours alone: CMSIS-NN computes it whole, and the group ends there."""
    sketch = Sketch(4)
    image = sketch.value((1, 9, 4, 8))
    x = sketch.softmax(sketch.conv(image, 6, (3, 3)))
    data = sketch.build([image], [sketch.conv(x, 5, (3, 3))])
    for kernels, rule in (("tinyfuse", None), ("auto", None), ("cmsis-nn", "library")):
        graph, context = prepare(
            read_tflite("m.tflite", data), load_target("cortex-m4"), Options("net", kernels=kernels)
        )
        refusal = Legality(graph, context).refusal(graph.ops)
        assert (refusal and (refusal.rule, refusal.op.kind)) == (rule and (rule, "SOFTMAX"))
    groups = plan_of(data, "cortex-m4", kernels="cmsis-nn", optimize="ram").groups
    assert [[stage.kernel.name for stage in group.stages] for group in groups][1] == ["arm_softmax_s8"]


@pytest.mark.emulated
@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m55"])
def test_an_image_that_is_fed_is_a_sliding_ring(target: str) -> None:
    tree = tree_or_skip("4.0")
    plan = plan_of(network(), target, kernels="cmsis-nn", cmsis_nn_version="4.0", feed_rows=True)
    assert plan.fed is not None and plan.storage[plan.fed].slides
    assert {stage.kernel.library for stage in plan.fed_group.stages[1:]} == {"cmsis-nn"}
    assert_exact(plan, 2, tree=tree)
