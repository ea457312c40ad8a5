"""Predicted bytes of code: tables, the parts of a plan's code, and that `balanced` counts it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from executors import plan_of
from random_graphs import Sketch
from sized_networks import sized_network
from test_rewrites import graph_of

import tinyfuse.schedule.plan_graph
from tinyfuse.cost.code import CALL, CodeTable, code_table, estimated_code_bytes, plan_code, specialized
from tinyfuse.cost.predict import predicted_total
from tinyfuse.errors import ToolMissing
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import Kernel
from tinyfuse.kernels.registry import KERNELS
from tinyfuse.plan import Plan
from tinyfuse.schedule.improve.fit_flash import fits_flash
from tinyfuse.schedule.kernel_choice.select import whole_kernel
from tinyfuse.targets import all_targets, load_target

TABLES = sorted({target.cost_table for target in all_targets().values() if target.cost_table})
M4 = Context(load_target("cortex-m4"), kernels="tinyfuse")


def every_kernel() -> Iterator[Kernel]:
    return (kernel for of_kind in KERNELS.values() for kernel in of_kind)


@pytest.mark.parametrize("name", TABLES)
def test_a_table_has_the_functions_of_its_kernels(name: str) -> None:
    table = code_table(name)
    assert table is not None and table.usual > 0
    assert {each for sizes in table.kernels.values() for each in sizes} - {CALL} == table.functions.keys()
    assert all(CALL in sizes for sizes in table.kernels.values())
    assert {entry.partition(" ")[0] for entry in table.kernels} <= {kernel.name for kernel in every_kernel()}


def test_a_table_that_is_not_there_is_missed() -> None:
    assert code_table(None) is None
    with pytest.raises(ToolMissing, match="targets/code/cortex-m9.toml was not found"):
        code_table("cortex-m9")


def test_a_kernel_has_the_sizes_of_its_most_similar_path() -> None:
    small, large = {CALL: 30}, {CALL: 300}
    table = CodeTable({}, 90, {}, {"tinyfuse_conv_row_s8 wide, odd": large, "tinyfuse_conv_row_s8 wide": small})
    conv = next(kernel for kernel in every_kernel() if kernel.name == "tinyfuse_conv_row_s8")
    assert table.sizes(conv, "tinyfuse_conv_row_s8 wide") == small
    assert table.sizes(conv, "tinyfuse_conv_row_s8 narrow, odd") == large
    other = next(kernel for kernel in every_kernel() if kernel.name == "tinyfuse_copy")
    assert table.sizes(other, "tinyfuse_copy") == {CALL: 90}
    assert table.sizes(next(kernel for kernel in every_kernel() if kernel.library == "cmsis-nn"), "any") is None


def test_the_only_call_of_a_function_is_specialized() -> None:
    one, other = {CALL: 50, "dispatch": 80, "narrow": 200, "deep": 0}, {CALL: 50, "narrow": 150}
    assert specialized([one]) == [True] == specialized([other])
    assert specialized([one, one]) == [False, False]
    # the second call shares the only function that it has
    assert specialized([one, other]) == [True, False]


@pytest.mark.parametrize("target", ["cortex-m0plus", "cortex-m4", "cortex-m55"])
def test_code_is_calls_functions_and_the_modules_own(target: str) -> None:
    plan = plan_of(sized_network(3, "int8"), target, kernels="tinyfuse")
    code = plan_code(plan)
    stages = [stage for group in code.stages for stage in group]
    assert len(stages) == sum(len(group.stages) for group in plan.groups) and code.guessed == 0
    calls = sum(stage[CALL] for stage in stages)
    assert estimated_code_bytes(plan) == code.total == code.module + calls + sum(code.functions.values())
    # a function is paid once, whoever calls it
    used = [name for stage in stages for name in stage if name != CALL]
    assert set(used) == set(code.functions) and len(used) > len(set(used)) and all(code.functions.values())


def test_code_of_other_libraries_is_guessed() -> None:
    data = sized_network(3, "int8")
    host = plan_code(plan_of(data, "host"))
    stages = sum(map(len, host.stages))
    assert host.functions == {} and host.total > 250 * stages
    cmsis = plan_code(plan_of(data, "cortex-m4", kernels="cmsis-nn"))
    unknown = [stage for group in cmsis.stages for stage in group if not stage]
    assert unknown and cmsis.guessed >= 250 * len(unknown)


def test_a_layer_of_short_rows_has_code_of_its_own() -> None:
    s = Sketch(1)
    image, deep = s.value((1, 12, 12, 3)), s.value((1, 12, 12, 16))
    own, common = graph_of(s.build([image, deep], [s.conv(image, 8, (3, 3)), s.conv(deep, 8, (3, 3))])).ops
    paths = [whole_kernel(op, M4)[0].code_path(op, True, M4) for op in (own, common)]
    assert paths[0].endswith(" of its own") and not paths[1].endswith(" of its own")


def of_two_sorts() -> bytes:
    """Fully connected layers, of which some are so small that a kernel for them alone isn't worth it."""
    s = Sketch(1)
    x = y = s.value((1, 1024))
    for channels in (32, 10, 4):
        y = s.fully_connected(y, channels)
    return s.build([x], [y])


def kernels_of(plan: Plan) -> set[str]:
    return {stage.kernel.name for group in plan.groups for stage in group.stages}


def test_few_instructions_are_worth_no_kernel_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """`balanced` has a price of a byte of flash, which code has too; `speed` has next to none."""
    data = of_two_sorts()
    spared, fast = (plan_of(data, "cortex-m4", kernels="tinyfuse", optimize=o) for o in ("balanced", "speed"))
    monkeypatch.setattr(tinyfuse.schedule.plan_graph, "drop_rare_kernels", lambda plan, builder: plan)
    plain, still_fast = (plan_of(data, "cortex-m4", kernels="tinyfuse", optimize=o) for o in ("balanced", "speed"))
    assert "tinyfuse_dense_wide_s8" in kernels_of(plain) - kernels_of(spared)
    assert estimated_code_bytes(spared) + spared.weight_bytes < estimated_code_bytes(plain) + plain.weight_bytes - 100
    assert spared.arena_bytes <= plain.arena_bytes
    assert predicted_total(spared) <= 1.01 * predicted_total(plain)
    assert kernels_of(fast) == kernels_of(still_fast)


def test_for_speed_a_kernel_saves_more_than_next_to_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    s = Sketch(2)
    x = s.value((1, 24, 24, 16))
    y = s.pool(s.conv(s.conv(x, 32, (3, 3)), 32, (3, 3), (2, 2)), "AVERAGE_POOL_2D", (12, 12), (1, 1))
    data = s.build([x], [s.fully_connected(y, 10)])
    fast = plan_of(data, "cortex-m4", kernels="tinyfuse", optimize="speed", count="cycles")
    monkeypatch.setattr(tinyfuse.schedule.plan_graph, "drop_rare_kernels", lambda plan, builder: plan)
    fastest = plan_of(data, "cortex-m4", kernels="tinyfuse", optimize="speed", count="cycles")
    assert "tinyfuse_dense_five_outputs_s8" in kernels_of(fastest) - kernels_of(fast)
    assert estimated_code_bytes(fast) < estimated_code_bytes(fastest) - 1000
    assert fast.arena_bytes <= fastest.arena_bytes and predicted_total(fast) <= 1.001 * predicted_total(fastest)


def test_a_limit_of_flash_counts_code() -> None:
    """Where weights and code are too many, kernels go that are worth more than their price."""
    data = sized_network(3, "int8")
    usual = plan_of(data, "cortex-m4", kernels="tinyfuse")
    limit = usual.weight_bytes + estimated_code_bytes(usual)
    small = plan_of(data, "cortex-m4", kernels="tinyfuse", max_flash=limit)
    assert not fits_flash(replace(usual, options=small.options)) and fits_flash(small)
    assert small.arena_bytes <= usual.arena_bytes and predicted_total(small) > predicted_total(usual)
