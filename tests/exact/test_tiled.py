"""Convolutions in tiles of rows and columns: random chains of them, in tiles of random shapes."""

from __future__ import annotations

import pytest
from executors import assert_all_exact
from hypothesis import strategies as st
from test_op_kernels import drawn, target_or_skip
from tiled_networks import shapes_of_tiles, tiled_networks, tiled_plan
from turns import turn_of

_CASES = st.tuples(tiled_networks(), shapes_of_tiles(), st.booleans())


def exact_modules(target: str, cases: list) -> int:
    """Each of these in one program; how many have tiles."""
    plans = [tiled_plan(data, target, shapes, together) for data, shapes, together in cases]
    assert_all_exact(plans, runs=3)
    return sum(any(op.kind == "TILED" for op in plan.graph.ops) for plan in plans)


@pytest.mark.parametrize("target", ["host", "cortex-m4", "cortex-m55"])
def test_tiles_are_exact(target: str, pytestconfig: pytest.Config) -> None:
    target_or_skip(target)
    cases = turn_of(target, [case for case, _ in drawn(_CASES, 12)], pytestconfig)
    assert exact_modules(target, cases) >= len(cases) // 2


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("target", "count"), [("host", 2000), ("cortex-m0plus", 40), ("cortex-m4", 100), ("cortex-m55", 100)]
)
def test_many_tiles_are_exact(target: str, count: int) -> None:
    cases = [case for case, _ in drawn(_CASES, count)]
    assert sum(exact_modules(target, cases[n : n + 20]) for n in range(0, count, 20)) > count / 2
