"""Random networks as generated C: exact on the host under sanitizers, and on emulated cores."""

from __future__ import annotations

import pytest
from executors import assert_all_exact, assert_exact, assert_reference_is_tflm, grouped_plan, plan_of
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from random_graphs import Sketch, networks

from tinyfuse.options import FUSION, OPTIMIZE
from tinyfuse.toolchain.cmsis_nn import find_cmsis_nn

# Several networks go into one program: building it and starting an emulator take longer than they do.


def cases(count: int, most_layers: int = 8, largest_limit: int = 5000):
    """Draws lists of (network, options)."""
    options = {
        "fusion": st.sampled_from(FUSION),
        "optimize": st.sampled_from(OPTIMIZE),
        "max_ram": st.none() | st.integers(1, largest_limit),
    }
    case = st.tuples(networks(most_layers=most_layers), st.fixed_dictionaries(options))
    return st.lists(case, min_size=count, max_size=count)


@settings(max_examples=3, deadline=None)
@given(cases(8))
def test_networks_are_exact_on_the_host(models: list[tuple[bytes, dict]]) -> None:
    assert_all_exact([plan_of(data, **options) for data, options in models])


@settings(max_examples=12, deadline=None)
@given(networks())
def test_references_of_networks_are_tflm(data: bytes) -> None:
    assert_reference_is_tflm(data)


@pytest.mark.emulated
@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m55"])
@settings(max_examples=1, deadline=None, derandomize=True, phases=[Phase.generate])
@given(models=cases(10))
def test_networks_are_exact_on_emulated_cores(target: str, models: list[tuple[bytes, dict]]) -> None:
    assert_all_exact([plan_of(data, target, kernels="tinyfuse", **options) for data, options in models])


@pytest.mark.campaign
@settings(max_examples=25, deadline=None)
@given(cases(8, most_layers=40, largest_limit=9000), st.booleans())
def test_many_networks_are_exact_on_the_host(models: list[tuple[bytes, dict]], shared: bool) -> None:
    assert_all_exact([plan_of(data, **options) for data, options in models], shared=shared)


@pytest.mark.campaign
@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m55"])
@settings(max_examples=4, deadline=None)
@given(models=cases(10, most_layers=14))
def test_many_networks_are_exact_on_emulated_cores(target: str, models: list[tuple[bytes, dict]]) -> None:
    assert_all_exact([plan_of(data, target, kernels="tinyfuse", **options) for data, options in models])


@pytest.mark.parametrize("target", ["host", "cortex-m4"])
def test_a_row_loop_ends_where_its_last_rows_are_padding_alone(target: str) -> None:
    """A PAD below alone takes the input's row of its own row's number, until there is none."""
    sketch = Sketch(4)
    x = sketch.value((1, 5, 4, 3))
    padded = sketch.scale_channels(sketch.pad(sketch.scale_channels(x, "MUL"), 0, 2, 1, 0), "ADD")
    pooled = sketch.pool(padded, "AVERAGE_POOL_2D", (7, 5), (1, 1))
    plan = grouped_plan(sketch.build([x], [pooled]), [5], target, kernels="tinyfuse")
    (group,) = plan.groups
    assert [op.kind for op in group.ops] == ["MUL", "PAD", "ADD", "ROW_SUM", "AVERAGE_OF_SUM"]
    assert_exact(plan)


def separable(rows: int, columns: int, channels: int, seed: int) -> bytes:
    """Depthwise and pointwise layers, odd sizes, and a residual around a second pair."""
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
    lacks = tree.missing(grouped_plan(data, [2, 2, 1], target, **options).cmsis_nn_functions)
    plan = grouped_plan(data, [2, 2, 1], target, **options, cmsis_nn_lacks=tuple(sorted(lacks)))
    assert_exact(plan, tree=tree)
