"""Tiled convolutions: which ones are tiled, their costs, and what reports say about them."""

from __future__ import annotations

from functools import cache

import pytest
from executors import plan_of
from random_graphs import Sketch

from tinyfuse.explain.explain_json import explain_json
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.layers.tiled import rows_computed, tile_sizes, tiled
from tinyfuse.plan import Plan
from tinyfuse.plan.check.scratch import rows_made, scratch_needed
from tinyfuse.report.report_json import report_json
from tinyfuse.report.text import summary_lines


@cache
def expanding() -> bytes:
    """Two expansions before depthwise layers; their rings take more RAM than everything else."""
    s = Sketch(4)
    x = s.value((1, 24, 25, 4))
    y = s.conv(s.depthwise(s.conv(x, 24, (1, 1)), (5, 5)), 4, (1, 1))
    y = s.conv(s.depthwise(s.conv(y, 24, (1, 1)), (3, 3), (2, 2)), 6, (1, 1))
    return s.build([x], [y])


@cache
def planned(**options) -> Plan:
    return plan_of(expanding(), "cortex-m4", feed_rows=True, **options)


def of_model(plan: Plan) -> float:
    return plan.macs / sum(FAMILIES[op.kind].macs(op) for op in plan.source.ops)


def tiles(plan: Plan) -> list:
    return [op for op in plan.graph.ops if op.kind == "TILED"]


def test_none_unless_ram_is_all() -> None:
    assert not tiles(planned())
    assert not tiles(planned(optimize="speed"))
    assert not tiles(planned(optimize="ram", recompute=1.0))
    assert not tiles(planned(optimize="ram", kernels="cmsis-nn"))


def test_the_more_may_be_computed_again_the_less_is_kept() -> None:
    plans = [planned(optimize="ram", recompute=most) for most in (1.0, 1.2, 1.6, 3.0)]
    for most, plan in zip((1.0, 1.2, 1.6, 3.0), plans, strict=True):
        assert of_model(plan) <= most
    arenas = [plan.arena_bytes for plan in plans]
    assert arenas == sorted(arenas, reverse=True)
    assert arenas[-1] < 0.7 * arenas[0]
    assert tiles(plans[-1])


def test_the_default_is_1_3_for_the_least_ram() -> None:
    plan = planned(optimize="ram")
    assert 1 < of_model(plan) <= 1.3
    assert plan.arena_bytes == planned(optimize="ram", recompute=1.3).arena_bytes


def test_a_limit_of_ram_is_met_by_tiles_where_they_are_allowed() -> None:
    least = planned(optimize="ram").arena_bytes
    assert planned(max_ram=least).arena_bytes > least
    met = planned(max_ram=least, recompute=1.3)
    assert met.arena_bytes <= least
    assert tiles(met)


def test_what_is_said() -> None:
    plan = planned(optimize="ram")
    data = explain_json(plan)
    assert [found["macs_again"] > 0 for found in data["tiled"]]
    assert {kind for found in data["tiled"] for kind in found["kinds"]} >= {"CONV_2D", "DEPTHWISE_CONV_2D"}
    assert (
        sum(found["macs_again"] for found in data["tiled"]) == plan.macs - planned(optimize="ram", recompute=1.0).macs
    )
    assert any(f"{of_model(plan):.3f} times the model's" in line for line in summary_lines(report_json(plan, 0, None)))


@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (3, 8), (4, 2)])
def test_rows_and_columns_of_tiles(shape: tuple[int, int]) -> None:
    """Rows are counted one by one, and columns: no tile reaches further than there is room for."""
    parts = planned().graph.ops[1:4]
    assert [op.kind for op in parts] == ["CONV_2D", "DEPTHWISE_CONV_2D", "CONV_2D"]
    op = tiled(parts, *shape)
    height, width, window = op.output.shape[1], op.output.shape[2], 5
    rows = [range(y, min(y + shape[0], height)) for y in range(0, height, shape[0])]
    read = [{r for y in of_call for r in range(y - 2, y + 3) if 0 <= r < height} for of_call in rows]
    assert rows_computed(op) == (sum(map(len, read)), height, height)
    first, second, last = tile_sizes(op)
    assert first.rows == max(map(len, read))
    assert (second.reached, last.reached) == (min(shape[1], width) + window - 1, min(shape[1], width))
    assert first.columns <= second.reached


def test_the_checkers_contracts_say_the_same() -> None:
    plan = planned(optimize="ram")
    for group in plan.groups:
        for stage in group.stages:
            if stage.op.kind == "TILED":
                assert scratch_needed(stage.op, stage.kernel, True, plan.context) == stage.scratch_bytes
                assert rows_made(stage.op, stage.kernel, plan.context) == stage.kernel.rows_a_call
