"""Kernels with the least scratch for --optimize ram: used where they make the arena smaller."""

from __future__ import annotations

import pytest
from executors import assert_exact, plan_of
from random_graphs import Sketch

from tinyfuse.cost.predict import plan_instructions
from tinyfuse.schedule.improve import upgrade_kernels
from tinyfuse.schedule.plans import search_variants


def deep() -> bytes:
    """Convolutions with windows of 36 and then 288 inputs, whose im2col takes most of the arena, and dense layers with
    few inputs."""
    sketch = Sketch(4)
    x = sketch.value((1, 10, 6, 4))
    y = sketch.conv(x, 32, (3, 3), activation="RELU")
    y = sketch.conv(y, 8, (3, 3), activation="RELU")
    return sketch.build([x], [sketch.conv(y, 8, (1, 1))])


def test_the_arena_is_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    least = plan_of(deep(), "cortex-m4", optimize="ram", recompute=1.0)
    monkeypatch.setattr(search_variants, "with_least_scratch", lambda variants: [])
    usual = plan_of(deep(), "cortex-m4", optimize="ram", recompute=1.0)
    assert least.context.min_scratch and not usual.context.min_scratch
    assert least.arena_bytes < usual.arena_bytes


def test_usual_kernels_come_back_where_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of(deep(), "cortex-m4", optimize="ram", recompute=1.0)
    assert plan.context.allow_scratch_for
    monkeypatch.setattr(upgrade_kernels, "_with", lambda plan, allow_scratch_for, builder: plan)
    min_scratch = plan_of(deep(), "cortex-m4", optimize="ram", recompute=1.0)
    assert plan.arena_bytes == min_scratch.arena_bytes and plan_instructions(plan) < plan_instructions(min_scratch)


def test_they_are_taken_where_max_ram_leaves_no_others() -> None:
    least, usual = (plan_of(deep(), "cortex-m4", optimize=how, recompute=1.0) for how in ("ram", "balanced"))
    assert least.arena_bytes < usual.arena_bytes
    assert plan_of(deep(), "cortex-m4", max_ram=least.arena_bytes).arena_bytes <= least.arena_bytes


@pytest.mark.slow
@pytest.mark.parametrize("target", ["host", "cortex-m0plus"])
def test_what_is_mixed_is_exact(target: str) -> None:
    """Blocks of one pixel and of two in one group; on Cortex-M4 test_conv_kernels.py has both."""
    assert_exact(plan_of(deep(), target, optimize="ram", recompute=1.0), runs=3)
