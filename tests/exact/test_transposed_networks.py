"""Networks with TRANSPOSEs, most of which cancel: their C on the host and on cores."""

from __future__ import annotations

import pytest
from campaigns import assert_batches_are_exact, assert_part_is_exact, drawn_plans
from core_rotation import share_of_core
from executors import assert_all_exact, assert_reference_is_tflm, plan_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from nchw_networks import TWINS, transposed_networks
from test_op_kernels import drawn, target_or_skip

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
    mine = share_of_core(target, models, pytestconfig)
    assert_all_exact([plan_of(data, target, kernels="tinyfuse") for data in mine], runs=3)


@pytest.mark.campaign
@settings(max_examples=2000, **_SETTINGS)
@given(transposed_networks())
def test_many_references_equal_tflm(data: bytes) -> None:
    assert_reference_is_tflm(data, runs=3)


@pytest.mark.campaign
@pytest.mark.parametrize("number", range(15))
def test_many_networks_are_exact(number: int) -> None:
    assert_part_is_exact(transposed_networks(most=20), 240, number, runs=3)


@pytest.mark.campaign
@pytest.mark.parametrize("target", ["cortex-m0plus", "cortex-m4", "cortex-m55"])
def test_many_networks_are_exact_on_cores(target: str) -> None:
    assert_batches_are_exact(drawn_plans(transposed_networks(), 72, 15, target), runs=3)
