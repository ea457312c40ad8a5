"""Random networks of int8, int16 and float32 parts: references against TFLM, the generated C against the references."""

from __future__ import annotations

import pytest
from executors import assert_all_exact, assert_reference_is_tflm, plan_of
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from mixed_graphs import DTYPES, mixed_networks

from tinyfuse.plan import Plan

_SETTINGS = {"deadline": None, "suppress_health_check": list(HealthCheck)}
_FUSION = st.sampled_from(["none", "basic", "rows", "rows"])
_OPTIMIZE = st.sampled_from(["speed", "balanced", "ram"])

#: dtypes of a campaign's networks: each by itself, and all of them
_SORTS = [*((dtype,) for dtype in DTYPES), DTYPES]

#: networks that are one program: starting compiler, linker and emulator takes as long as some tens of them
_TOGETHER = 24


def drawn_plans(count: int, number: int, target: str = "host", dtypes: tuple[str, ...] = DTYPES) -> list[Plan]:
    """`count` plans of random networks, other ones for every `number`."""
    plans: list[Plan] = []

    @seed(number)
    @settings(max_examples=count, phases=[Phase.generate], database=None, **_SETTINGS)
    @given(mixed_networks(dtypes=dtypes), _FUSION, _OPTIMIZE)
    def draw(data: bytes, fusion: str, optimize: str) -> None:
        plans.append(plan_of(data, target, kernels="tinyfuse", fusion=fusion, optimize=optimize))

    draw()
    return plans


def assert_batches_are_exact(plans: list[Plan], runs: int) -> None:
    """Where a program fails, the message has the graph of the network that did."""
    for start in range(0, len(plans), _TOGETHER):
        assert_all_exact(plans[start : start + _TOGETHER], runs)


@settings(max_examples=15, **_SETTINGS)
@given(mixed_networks())
def test_references_equal_tflm(data: bytes) -> None:
    assert_reference_is_tflm(data, runs=4)


def test_modules_are_exact() -> None:
    assert_batches_are_exact(drawn_plans(12, 0), runs=4)


@pytest.mark.campaign
@settings(max_examples=2000, **_SETTINGS)
@given(mixed_networks())
def test_many_references_equal_tflm(data: bytes) -> None:
    assert_reference_is_tflm(data, runs=4)


@pytest.mark.campaign
@pytest.mark.parametrize("dtypes", _SORTS, ids="-".join)
@pytest.mark.parametrize("number", range(10))
def test_many_modules_are_exact(dtypes: tuple[str, ...], number: int) -> None:
    assert_batches_are_exact(drawn_plans(240, number, dtypes=dtypes), runs=4)


@pytest.mark.campaign
@pytest.mark.parametrize("dtypes", _SORTS, ids="-".join)
@pytest.mark.parametrize("target", ["cortex-m0plus", "cortex-m4", "cortex-m55"])
def test_many_modules_are_exact_on_cores(target: str, dtypes: tuple[str, ...]) -> None:
    assert_batches_are_exact(drawn_plans(48, 1, target, dtypes), runs=3)
