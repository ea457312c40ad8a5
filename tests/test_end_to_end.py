"""Random networks as generated C: exact on the host under sanitizers, and on emulated cores."""

from __future__ import annotations

import pytest
from executors import assert_exact, assert_reference_is_tflm, plan_of
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from random_graphs import Sketch, networks

from tinyfuse.cmsis_nn import find_cmsis_nn
from tinyfuse.options import FUSION, OPTIMIZE


@settings(max_examples=12, deadline=None)
@given(networks(), st.sampled_from(FUSION), st.sampled_from(OPTIMIZE), st.none() | st.integers(1, 5000))
def test_networks_are_exact_on_the_host(data: bytes, fusion: str, optimize: str, max_ram: int | None) -> None:
    assert_exact(plan_of(data, fusion=fusion, optimize=optimize, max_ram=max_ram))


@settings(max_examples=12, deadline=None)
@given(networks())
def test_references_of_networks_are_tflm(data: bytes) -> None:
    assert_reference_is_tflm(data)


@pytest.mark.campaign
@settings(max_examples=400, deadline=None)
@given(networks(most_layers=40), st.sampled_from(FUSION), st.sampled_from(OPTIMIZE), st.none() | st.integers(1, 9000))
def test_many_networks_are_exact_on_the_host(data: bytes, fusion: str, optimize: str, max_ram: int | None) -> None:
    assert_exact(plan_of(data, fusion=fusion, optimize=optimize, max_ram=max_ram))


@pytest.mark.campaign
@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m55"])
@settings(max_examples=3, deadline=None, derandomize=True, phases=[Phase.generate])
@given(data=networks())
def test_networks_are_exact_on_emulated_cores(target: str, data: bytes) -> None:
    assert_exact(plan_of(data, target, kernels="tinyfuse"))


def separable(rows: int, columns: int, channels: int, seed: int) -> bytes:
    """Depthwise -> pointwise, odd sizes, and a residual around a second pair."""
    sketch = Sketch(seed)
    x = sketch.value((1, rows, columns, channels))
    y = sketch.conv(sketch.depthwise(x, (3, 3), activation="RELU"), channels + 3, (1, 1))
    z = sketch.conv(sketch.depthwise(y, (5, 2)), channels + 3, (1, 1), activation="RELU6")
    return sketch.build([x], [sketch.add(y, z)])


@pytest.mark.emulated
@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m55"])
@pytest.mark.parametrize(("rows", "columns", "channels"), [(1, 1, 1), (7, 5, 13), (12, 9, 8)])
def test_row_groups_call_cmsis_nn(target: str, rows: int, columns: int, channels: int) -> None:
    tree = find_cmsis_nn(None)
    if tree is None or tree.version != (4, 0):
        pytest.skip("needs CMSIS-NN 4.0, which PyPI's bakenn carries")
    data, options = separable(rows, columns, channels, 1), {"kernels": "cmsis-nn", "cmsis_nn_version": "4.0"}
    options["optimize"] = "ram"
    lacks = tree.missing(plan_of(data, target, **options).cmsis_nn_functions)
    plan = plan_of(data, target, **options, cmsis_nn_lacks=tuple(sorted(lacks)))
    assert [len(group.ops) for group in plan.groups][:2] == [2, 2]
    assert_exact(plan, tree=tree)
