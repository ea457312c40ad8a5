"""Networks with TRANSPOSEs, most of which cancel: their C on the host and on cores."""

from __future__ import annotations

import pytest
from executors import assert_all_exact, assert_exact, assert_reference_is_tflm, plan_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from nchw_networks import TWINS, transposed_networks
from test_op_kernels import drawn, target_or_skip
from turns import turn_of

from tinyfuse.options import OPTIMIZE

_SETTINGS = {"deadline": None, "suppress_health_check": list(HealthCheck)}


@settings(max_examples=6, **_SETTINGS)
@given(transposed_networks())
def test_references_equal_tflm(data: bytes) -> None:
    assert_reference_is_tflm(data, runs=3)


@settings(max_examples=2, **_SETTINGS)
@given(st.lists(st.tuples(transposed_networks(), st.sampled_from(OPTIMIZE)), min_size=6, max_size=6))
def test_networks_are_exact(models: list[tuple[bytes, str]]) -> None:
    how = {"kernels": "tinyfuse"}
    assert_all_exact([plan_of(data, "cortex-m4", optimize=o, **how) for data, o in models], on_host=True)


@pytest.mark.emulated
@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m55"])
def test_networks_on_cores(target: str, pytestconfig: pytest.Config) -> None:
    target_or_skip(target)
    models = [*(twin(True) for twin in TWINS.values()), *(data for data, _ in drawn(transposed_networks(), 3))]
    mine = turn_of(target, models, pytestconfig)
    assert_all_exact([plan_of(data, target, kernels="tinyfuse") for data in mine], runs=3)


@pytest.mark.campaign
@settings(max_examples=2000, **_SETTINGS)
@given(transposed_networks())
def test_many_references_equal_tflm(data: bytes) -> None:
    assert_reference_is_tflm(data, runs=3)


@pytest.mark.campaign
@settings(max_examples=3000, **_SETTINGS)
@given(transposed_networks(most=20), st.sampled_from(["basic", "rows"]), st.sampled_from(OPTIMIZE))
def test_many_networks_are_exact(data: bytes, fusion: str, optimize: str) -> None:
    assert_exact(plan_of(data, fusion=fusion, optimize=optimize), runs=3)


@pytest.mark.campaign
@pytest.mark.parametrize("target", ["cortex-m0plus", "cortex-m4", "cortex-m55"])
@settings(max_examples=60, **_SETTINGS)
@given(data=transposed_networks(), optimize=st.sampled_from(OPTIMIZE))
def test_many_networks_are_exact_on_cores(target: str, data: bytes, optimize: str) -> None:
    assert_exact(plan_of(data, target, optimize=optimize), runs=3)
