"""Networks over sequences, which stand up and are computed in blocks of rows: the C of them on the host and on cores."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from core_rotation import on_one_core
from executors import assert_all_exact, assert_exact, assert_reference_is_tflm, grouped_plan, plan_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_graphs import Sketch
from sequence_networks import sequence_networks
from test_op_kernels import drawn, target_or_skip
from test_several_rows_per_call import shorter_ring

from tinyfuse.errors import InternalFault
from tinyfuse.kernels.layers.common.column_blocks import ColumnBlocks
from tinyfuse.options import OPTIMIZE
from tinyfuse.plan import Plan
from tinyfuse.plan.check.player import verify_plan

_SETTINGS = {"deadline": None, "suppress_health_check": list(HealthCheck)}
_DTYPES = ("int8", "int8", "int16", "float32")


def chain(length: int, dtype: str = "int8", seed: int = 3) -> bytes:
    """Layers with readers by blocks of rows and by single rows, padding at both ends, and a window that skips rows."""
    s = Sketch(seed, dtype=dtype)
    x = s.value((1, 1, length, 3))
    y = s.conv(x, 4, (1, 5), activation="RELU")
    z = s.conv(y, 4, (1, 7), dilation=(1, 2))
    y = s.pool(s.add(y, z), "MAX_POOL_2D", (1, 3), (1, 2))
    y = s.conv(s.conv(s.conv(y, 5, (1, 3)), 5, (1, 2), (1, 3)), 6, (1, 3), (1, 2), "VALID")
    return s.build([x], [y])


def in_blocks(plan: Plan) -> int:
    return sum(isinstance(stage.kernel, ColumnBlocks) for group in plan.groups for stage in group.stages)


def grouped(target: str) -> list[Plan]:
    """Plans in one group, in several, and in groups of one operator; lengths that are multiples of a block, and
    others."""
    sizes: Sequence[tuple[int, Sequence[int]]] = (
        (48, (7,)), (61, (7,)), (30, (2, 3, 2)), (37, (1,) * 7), (100, (4, 3)),
    )  # fmt: skip
    return [
        grouped_plan(chain(length, seed=length), (1, *lengths, 1), target, kernels="tinyfuse", optimize="balanced")
        for length, lengths in sizes
    ]


def test_groups_of_blocks_are_exact() -> None:
    plans = grouped("cortex-m4")
    assert min(map(in_blocks, plans)) > 0 and max(map(in_blocks, plans)) == 5
    assert any(where.slides for plan in plans for where in plan.storage.values())
    assert_all_exact(plans, on_host=True)


def test_blocks_of_other_dtypes_are_exact() -> None:
    plans = [grouped_plan(chain(40, dtype), (1, 7, 1), "cortex-m4", kernels="tinyfuse") for dtype in _DTYPES[2:]]
    assert_all_exact(plans, on_host=True)


def test_helium_convolutions_are_exact_in_blocks() -> None:
    """Helium convolutions of sequences, by blocks of rows, with windows that reach into the padding."""
    plans = []
    for length, kernel, stride, padding in ((29, 3, 1, "SAME"), (40, 5, 1, "SAME"), (31, 2, 2, "VALID")):
        s = Sketch(4)
        x = s.value((1, 1, length, 16))
        y = s.conv(s.conv(x, 16, (1, kernel), (1, stride), padding), 8, (1, 3))
        plans.append(grouped_plan(s.build([x], [y]), (1, 2, 1), "cortex-m55", kernels="tinyfuse"))
    assert min(map(in_blocks, plans)) == 2
    assert_all_exact(plans, on_host=True)


def test_the_checker_knows_of_the_rows_of_a_block() -> None:
    """A ring that would be long enough if calls made a row each."""
    plan = grouped("cortex-m4")[0]
    verify_plan(plan)
    with pytest.raises(InternalFault):
        verify_plan(shorter_ring(plan))


@settings(max_examples=2, **_SETTINGS)
@given(st.lists(st.tuples(sequence_networks(dtypes=_DTYPES), st.sampled_from(OPTIMIZE)), min_size=5, max_size=5))
def test_networks_are_exact(models: list[tuple[bytes, str]]) -> None:
    how = {"kernels": "tinyfuse"}
    assert_all_exact([plan_of(data, "cortex-m4", optimize=o, **how) for data, o in models], on_host=True)


@pytest.mark.emulated
@on_one_core("cortex-m4", "cortex-m55")
def test_networks_on_cores(target: str) -> None:
    target_or_skip(target)
    plans = [plan_of(data, target) for data, _ in drawn(sequence_networks(dtypes=_DTYPES), 4)]
    assert_all_exact([*plans, grouped(target)[1]], runs=3)


@pytest.mark.campaign
@settings(max_examples=1000, **_SETTINGS)
@given(sequence_networks())
def test_many_references_equal_tflm(data: bytes) -> None:
    assert_reference_is_tflm(data, runs=4)


@pytest.mark.campaign
@settings(max_examples=2000, **_SETTINGS)
@given(sequence_networks(most_layers=10, longest=90, dtypes=_DTYPES), st.sampled_from(OPTIMIZE))
def test_many_networks_are_exact(data: bytes, optimize: str) -> None:
    assert_exact(plan_of(data, "cortex-m4", optimize=optimize, kernels="tinyfuse"), runs=4, on_host=True)


@pytest.mark.campaign
@pytest.mark.parametrize("target", ["cortex-m0plus", "cortex-m4", "cortex-m55"])
@settings(max_examples=60, **_SETTINGS)
@given(data=sequence_networks(dtypes=_DTYPES), optimize=st.sampled_from(OPTIMIZE))
def test_many_networks_are_exact_on_cores(target: str, data: bytes, optimize: str) -> None:
    assert_exact(plan_of(data, target, optimize=optimize), runs=3)
