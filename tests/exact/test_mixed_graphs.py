"""Random networks of int8, int16 and float32 parts: references against TFLM, the generated C against the references."""

from __future__ import annotations

import pytest
from campaigns import assert_batches_are_exact, drawn_plans
from executors import assert_reference_is_tflm
from hypothesis import HealthCheck, given, settings
from mixed_graphs import DTYPES, mixed_networks

_SETTINGS = {"deadline": None, "suppress_health_check": list(HealthCheck)}

#: dtypes of a campaign's networks: each by itself, and all of them
_SORTS = [*((dtype,) for dtype in DTYPES), DTYPES]


@settings(max_examples=15, **_SETTINGS)
@given(mixed_networks())
def test_references_equal_tflm(data: bytes) -> None:
    assert_reference_is_tflm(data, runs=4)


def test_modules_are_exact() -> None:
    assert_batches_are_exact(drawn_plans(mixed_networks(), 12, 0), runs=4)


@pytest.mark.campaign
@settings(max_examples=2000, **_SETTINGS)
@given(mixed_networks())
def test_many_references_equal_tflm(data: bytes) -> None:
    assert_reference_is_tflm(data, runs=4)


@pytest.mark.campaign
@pytest.mark.parametrize("dtypes", _SORTS, ids="-".join)
@pytest.mark.parametrize("number", range(10))
def test_many_modules_are_exact(dtypes: tuple[str, ...], number: int) -> None:
    assert_batches_are_exact(drawn_plans(mixed_networks(dtypes=dtypes), 240, number), runs=4)


@pytest.mark.campaign
@pytest.mark.parametrize("dtypes", _SORTS, ids="-".join)
@pytest.mark.parametrize("target", ["cortex-m0plus", "cortex-m4", "cortex-m55"])
def test_many_modules_are_exact_on_cores(target: str, dtypes: tuple[str, ...]) -> None:
    assert_batches_are_exact(drawn_plans(mixed_networks(dtypes=dtypes), 48, 1, target), runs=3)
