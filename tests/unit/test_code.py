"""Predicted bytes of code: what a table says, what a plan's code is made of, and that `balanced` counts it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from executors import plan_of
from random_graphs import Sketch
from sized_networks import sized_network
from test_rewrites import graph_of

import tinyfuse.schedule.plan_graph
from tinyfuse.cost.code import code_table, estimated_code_bytes, plan_code
from tinyfuse.cost.predict import predicted_total
from tinyfuse.errors import ToolMissing
from tinyfuse.kernels.core.kernel import Context, Kernel
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
def test_a_table_knows_the_functions_that_its_entries_share(name: str) -> None:
    table = code_table(name)
    assert table is not None and {"api", "row_loops", "slides"} == set(table.module)
    for entry in (*table.kernels.values(), *table.module.values()):
        assert set(entry.shared) <= set(table.functions)
    assert {entry.partition(" ")[0] for entry in table.kernels} <= {kernel.name for kernel in every_kernel()}


def test_a_table_that_is_not_there_is_missed() -> None:
    assert code_table(None) is None
    with pytest.raises(ToolMissing, match="targets/code/cortex-m9.toml was not found"):
        code_table("cortex-m9")


@pytest.mark.parametrize("target", ["cortex-m0plus", "cortex-m4", "cortex-m55"])
def test_code_is_calls_functions_and_the_modules_own(target: str) -> None:
    plan = plan_of(sized_network(3, "int8"), target, kernels="tinyfuse")
    code, table = plan_code(plan), code_table(plan.context.target.cost_table)
    stages = [stage for group in code.stages for stage in group]
    assert len(stages) == sum(len(group.stages) for group in plan.groups) and code.guessed == 0
    calls = sum(stage.call for stage in stages if stage.call is not None)
    assert estimated_code_bytes(plan) == code.total == code.module + calls + sum(code.functions.values())
    # a function is paid once, whoever calls it
    used = [name for stage in stages for name in stage.shared]
    assert set(used) <= set(code.functions) and len(used) > len(set(used))
    assert all(size in table.functions[name] for name, size in code.functions.items())


def test_what_was_not_measured_is_guessed() -> None:
    data = sized_network(3, "int8")
    host = plan_code(plan_of(data, "host"))
    stages = sum(map(len, host.stages))
    assert host.functions == {} and host.total > 600 + 250 * stages
    cmsis = plan_code(plan_of(data, "cortex-m4", kernels="cmsis-nn"))
    unknown = [stage for group in cmsis.stages for stage in group if stage.call is None]
    assert unknown and cmsis.guessed >= 250 * len(unknown)


def test_longer_expressions_take_more_code() -> None:
    def code(parts: int) -> int:
        s = Sketch(1)
        x, other = s.value((1, 24, 24, 16)), s.value((1, 24, 24, 16))
        y = x
        for _ in range(parts):
            y = s.add(y, other, kind="MUL")
        return estimated_code_bytes(plan_of(s.build([x, other], [y]), "cortex-m55", kernels="tinyfuse"))

    assert code(2) < code(3) < code(5)


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
