"""Campaigns over many random networks, several in each program: starting compiler, linker and emulator takes as long as
some tens of networks."""

from __future__ import annotations

from typing import Any

from executors import assert_all_exact, plan_of
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tinyfuse.plan import Plan

#: whose plans a campaign's parts on the host have, in turn; of its own, kernels are the general ones
_PLANNED_FOR = ("host", "cortex-m4", "cortex-m55", "cortex-m0plus")

#: networks that are one program
_TOGETHER = 24

_FUSION = st.sampled_from(["none", "basic", "rows", "rows"])
_OPTIMIZE = st.sampled_from(["speed", "balanced", "ram"])
#: options of plan_of
_WAYS = st.fixed_dictionaries({"fusion": _FUSION, "optimize": _OPTIMIZE})


def drawn_plans(
    networks: st.SearchStrategy[bytes], count: int, number: int, target: str = "host", **more: Any
) -> list[Plan]:
    """`count` plans of random networks, which depend on `number`, for any --fusion and --optimize; `more`: options for
    all."""
    plans: list[Plan] = []

    @seed(number)
    @settings(
        max_examples=count, phases=[Phase.generate], database=None, deadline=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(networks, _WAYS)
    def draw(data: bytes, options: dict[str, Any]) -> None:
        plans.append(plan_of(data, target, kernels="tinyfuse", **options, **more))

    draw()
    return plans


def assert_batches_are_exact(plans: list[Plan], runs: int, on_host: bool = False) -> None:
    """Checks networks in batches; if a program fails, the message has the graph of the network that failed."""
    for start in range(0, len(plans), _TOGETHER):
        assert_all_exact(plans[start : start + _TOGETHER], runs, on_host=on_host)


def assert_part_is_exact(networks: st.SearchStrategy[bytes], count: int, number: int, runs: int) -> None:
    """Checks one part of a campaign on the host: `count` networks, each planned for one of several cores."""
    target = _PLANNED_FOR[number % len(_PLANNED_FOR)]
    assert_batches_are_exact(drawn_plans(networks, count, number, target), runs, on_host=True)
