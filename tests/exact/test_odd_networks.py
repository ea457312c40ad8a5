"""Small and odd networks of every dtype, for every core: exact, or refused where their interpreter refuses them too.

The campaigns are 3,600 networks on the host, 1,000 of uint8 against LiteRT among them, 600 on emulated cores, and some
hundred each that are fed, slide, run in steps, or are what clang -O2 makes of them:

    pytest --campaign tests/exact/test_odd_networks.py
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from campaigns import assert_batches_are_exact
from executors import assert_all_exact, assert_exact
from fed_program import assert_fed_anywhere
from odd_networks import SORTS, odd_network
from odd_plans import odd_plans, plans_that_may
from stream_program import assert_all_stream
from test_cursors import assert_only_cursors_that_steps_left

from tinyfuse.plan import Plan

needs_cross = pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")), reason="no cross compiler, or no QEMU"
)
CORES = ("cortex-m0plus", "cortex-m3", "cortex-m4", "cortex-m33", "cortex-m55")
#: the first of a campaign's seeds, behind all that other tests here take
_FIRST = 1000


def test_a_seed_says_all_of_a_network() -> None:
    assert odd_network(7, "int8") == odd_network(7, "int8") != odd_network(8, "int8")


def test_networks_are_exact() -> None:
    """Eight of each dtype, with the kernels of any core, in one program."""
    plans = [plan for number, sort in enumerate(SORTS) for plan in odd_plans(sort, range(8 * number, 8 * number + 8))]
    assert_all_exact(plans, 4, on_host=True)


@needs_cross
@pytest.mark.emulated
def test_networks_are_exact_on_a_core() -> None:
    seeds = iter(range(100, 200, 4))
    plans = [plan for sort in SORTS for plan in odd_plans(sort, (next(seeds), next(seeds)), ("cortex-m3",))]
    assert_all_exact(plans, 3)


@pytest.mark.skipif(shutil.which("clang") is None, reason="no clang")
def test_clang_optimizes_networks() -> None:
    """On a PC vector instructions rely on alignment that declarations promise."""
    plans = [plan for number, sort in enumerate(SORTS) for plan in odd_plans(sort, range(200 + number, 210, 5))]
    assert_all_exact(plans, 4, on_host=True, compiler="clang", flags=["-O2"])


def assert_all_steps_are_exact(plans: list[Plan]) -> None:
    for plan in plans:
        assert_exact(plan, 4, on_host=True)


#: name -> options, and what holds for the plans
_MODES: dict[str, tuple[dict[str, Any], Callable[[list[Plan]], None]]] = {
    "fed": ({"feed_rows": True, "fusion": "rows"}, assert_fed_anywhere),
    "slides": ({"slide": 1}, assert_all_stream),
    "slides by rows": ({"slide": 1, "feed_rows": True}, assert_all_stream),
    "steps": ({"step": True}, assert_all_steps_are_exact),
    "short steps": ({"step": True, "max_step": 1500}, assert_all_steps_are_exact),
}


@pytest.mark.parametrize("mode", ["fed", "slides by rows"])
def test_rows_lie_anywhere(mode: str) -> None:
    """Frames and rows at every address that their type allows."""
    options, holds = _MODES[mode]
    plans = [
        p for number, sort in enumerate(SORTS) for p in plans_that_may(sort, range(300 + number, 320, 5), **options)
    ]
    assert len(plans) > 2
    holds(plans)


def test_steps_take_no_other_cursors(tmp_path: Path) -> None:
    plans = [p for sort in SORTS for p in plans_that_may(sort, range(5), step=True)]
    plan = next(plan for plan in plans if any(plan.cursor_rows(group) > 1 for group in plan.groups))
    assert_only_cursors_that_steps_left(tmp_path, plan, 3000, 1)


# --- campaigns --------------------------------------------------------------------------------


def part_of(number: int, count: int) -> range:
    return range(_FIRST + count * number, _FIRST + count * (number + 1))


@pytest.mark.campaign
@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.parametrize("number", range(10))
def test_many_networks_are_exact(sort: str, number: int) -> None:
    count = 100 if sort == "uint8" else 65
    assert_batches_are_exact(odd_plans(sort, part_of(number, count)), 4, on_host=True)


@needs_cross
@pytest.mark.campaign
@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.parametrize("core", CORES)
def test_many_networks_are_exact_on_cores(core: str, sort: str) -> None:
    assert_batches_are_exact(odd_plans(sort, part_of(CORES.index(core) + 100, 24), (core,)), 3)


@pytest.mark.campaign
@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.parametrize("level", ["-O2", "-O3"])
def test_clang_optimizes_many_networks(level: str, sort: str) -> None:
    plans = odd_plans(sort, part_of(200, 48))
    for start in range(0, len(plans), 24):
        assert_all_exact(plans[start : start + 24], 4, on_host=True, compiler="clang", flags=[level])


@pytest.mark.campaign
@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.parametrize("mode", _MODES)
def test_many_networks_that_stream(mode: str, sort: str) -> None:
    options, holds = _MODES[mode]
    plans = plans_that_may(sort, part_of(300, 100), **options)
    for start in range(0, len(plans), 24):
        holds(plans[start : start + 24])


@pytest.mark.campaign
@pytest.mark.parametrize("sort", SORTS)
def test_many_networks_take_no_other_cursors(tmp_path: Path, sort: str) -> None:
    for number, plan in enumerate(plans_that_may(sort, part_of(400, 30), step=True)):
        if any(plan.cursor_rows(group) for group in plan.groups):
            (folder := tmp_path / str(number)).mkdir()
            assert_only_cursors_that_steps_left(folder, plan, 20_000, number, least=1)
