"""Random networks of int8, int16 and float32 parts: references against TFLM, the generated C against the references."""

from __future__ import annotations

import pytest
from executors import assert_exact, assert_reference_is_tflm, plan_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mixed_graphs import mixed_networks

_SETTINGS = {"deadline": None, "suppress_health_check": list(HealthCheck)}
_FUSION = st.sampled_from(["none", "basic", "rows", "rows"])
_OPTIMIZE = st.sampled_from(["speed", "balanced", "ram"])


@settings(max_examples=15, **_SETTINGS)
@given(mixed_networks())
def test_references_equal_tflm(data: bytes) -> None:
    assert_reference_is_tflm(data, runs=4)


@settings(max_examples=6, **_SETTINGS)
@given(mixed_networks(), _FUSION, _OPTIMIZE)
def test_modules_are_exact(data: bytes, fusion: str, optimize: str) -> None:
    assert_exact(plan_of(data, fusion=fusion, optimize=optimize), runs=4)


@pytest.mark.campaign
@settings(max_examples=2000, **_SETTINGS)
@given(mixed_networks())
def test_many_references_equal_tflm(data: bytes) -> None:
    assert_reference_is_tflm(data, runs=4)


@pytest.mark.campaign
@settings(max_examples=300, **_SETTINGS)
@given(mixed_networks(), _FUSION, _OPTIMIZE)
def test_many_modules_are_exact(data: bytes, fusion: str, optimize: str) -> None:
    assert_exact(plan_of(data, fusion=fusion, optimize=optimize), runs=4)


@pytest.mark.campaign
@pytest.mark.parametrize("target", ["cortex-m0plus", "cortex-m4", "cortex-m55"])
@settings(max_examples=40, **_SETTINGS)
@given(data=mixed_networks(), fusion=_FUSION, optimize=_OPTIMIZE)
def test_many_modules_are_exact_on_cores(target: str, data: bytes, fusion: str, optimize: str) -> None:
    assert_exact(plan_of(data, target, fusion=fusion, optimize=optimize), runs=3)
