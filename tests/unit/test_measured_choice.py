"""`--measure`: which plans are measured, and which of them --optimize picks."""

from __future__ import annotations

from dataclasses import replace

import pytest
from executors import plan_of
from test_pareto import narrowing

from tinyfuse.api.measured_choice import PLANS, MeasuredPlan, measured_lines, pick_measured, plans_to_measure
from tinyfuse.report.pareto import FrontPlan, pareto_front


@pytest.fixture(scope="module")
def front() -> list[FrontPlan]:
    found = pareto_front(plan_of(narrowing(), "cortex-m4"))
    assert len(found) >= 4, "too few plans to choose from"
    return found


def asked(front: list[FrontPlan], optimize: str) -> FrontPlan:
    return next(each for each in front if optimize in each.optimize)


def test_speed_is_compared_with_the_next_fastest(front: list[FrontPlan]) -> None:
    others = plans_to_measure(front, "speed", asked(front, "speed").ram_bytes, 0.08)
    assert others == sorted(front, key=lambda each: each.slower)[1:PLANS]


def test_ram_is_compared_with_the_next_smallest(front: list[FrontPlan]) -> None:
    others = plans_to_measure(front, "ram", front[0].ram_bytes, 0.08)
    assert others == front[1:PLANS]


def test_balanced_is_compared_with_the_fastest_and_one_between_them(front: list[FrontPlan]) -> None:
    smallest = front[0]
    between, fastest = plans_to_measure(front, "balanced", smallest.ram_bytes, 10.0)
    assert fastest is asked(front, "speed")
    assert smallest.ram_bytes < between.ram_bytes < fastest.ram_bytes


def test_balanced_leaves_out_plans_that_are_too_slow(front: list[FrontPlan]) -> None:
    assert plans_to_measure(front, "balanced", front[0].ram_bytes, 0.0) == [asked(front, "speed")]


def test_the_fastest_plan_is_compared_with_no_other_for_balanced(front: list[FrontPlan]) -> None:
    assert plans_to_measure(front, "balanced", asked(front, "speed").ram_bytes, 0.08) == []


def test_a_plan_that_is_smaller_and_faster_is_compared(front: list[FrontPlan]) -> None:
    fastest = asked(front, "speed")
    slow = replace(fastest, settings=({"optimize": "balanced"},), slower=0.2)
    found = [replace(fastest, plan=front[0].plan), slow]
    assert plans_to_measure(found, "balanced", slow.ram_bytes, 0.08) == found[:1]


def measured(instructions: int, arena: int, stack: int = 0, cycles: int | None = None) -> MeasuredPlan:
    return MeasuredPlan({}, arena, 0, stack, 1000, instructions, instructions, cycles)


SMALL, MEDIUM, FAST = measured(1100, 500), measured(1060, 800), measured(1000, 2000)


@pytest.mark.parametrize(("optimize", "best"), [("speed", FAST), ("balanced", MEDIUM), ("ram", SMALL)])
def test_each_rule_picks_its_plan(optimize: str, best: MeasuredPlan) -> None:
    assert pick_measured([SMALL, MEDIUM, FAST], optimize, "instructions", 0.08) is best


@pytest.mark.parametrize("optimize", ["balanced", "ram"])
def test_stack_counts_as_ram(optimize: str) -> None:
    plain, deep = measured(1000, 600, stack=100), measured(1010, 500, stack=300)
    assert pick_measured([deep, plain], optimize, "instructions", 0.08) is plain


def test_cycles_decide_if_they_are_counted() -> None:
    fewer_instructions, fewer_cycles = measured(1000, 500, cycles=2000), measured(1200, 500, cycles=1500)
    assert pick_measured([fewer_instructions, fewer_cycles], "speed", "cycles", 0.08) is fewer_cycles
    assert pick_measured([fewer_instructions, fewer_cycles], "speed", "instructions", 0.08) is fewer_instructions


def test_equal_plans_are_chosen_by_the_other_figure() -> None:
    small, large = measured(1000, 500), measured(1000, 600)
    assert pick_measured([large, small], "speed", "instructions", 0.08) is small
    slow = measured(1010, 500)
    assert pick_measured([slow, small], "ram", "instructions", 0.08) is small


def test_the_table_marks_the_chosen_plan() -> None:
    rows = [
        {
            "options": options, "arena_bytes": 1000, "state_bytes": 20, "stack_bytes": 300, "code_bytes": 4000,
            "predicted_instructions": 1, "instructions": 123456, "estimated_cycles": 200000, "chosen": chosen,
        }
        for options, chosen in (("", False), ("--optimize speed --max-ram 1020 --weights packed", True))
    ]  # fmt: skip
    lines = measured_lines(rows, "instructions")
    assert lines[1].split() == ["1,320", "4,000", "123,456", "the", "options", "as", "given"]
    assert lines[2].startswith("->") and "--max-ram 1020" in " ".join(lines[2:])
    assert "200,000" in measured_lines(rows, "cycles")[1]
    assert max(map(len, lines)) <= 80
