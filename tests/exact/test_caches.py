"""Caches in variables, of which a run replaces a part where they lie: frame by frame, in streams that take turns, on
the host under sanitizers and on cores."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from attention_networks import decoder
from cache_models import Caches, cache_models, caches
from core_rotation import on_one_core
from executors import assert_exact, assert_reference_is_tflm, plan_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from stream_program import assert_all_stream
from test_op_kernels import target_or_skip

from tinyfuse.ops import FAMILIES
from tinyfuse.options import OPTIMIZE
from tinyfuse.plan import Plan

CORES = ("cortex-m0plus", "cortex-m4", "cortex-m55")
_DTYPES = ("int8", "int16", "float32")


def drawn(seeds: range) -> list[bytes]:
    return [
        caches(seed, _DTYPES[seed % 3], (1, 2, 5)[seed // 3 % 3], wide=seed % 5 == 0, initialized=seed % 2 == 0)
        for seed in seeds
    ]


def planned(models: list[bytes], target: str) -> list[Plan]:
    return [
        plan_of(
            data, target, kernels="tinyfuse", optimize=OPTIMIZE[n % 3], fusion=("rows", "rows", "basic")[n // 3 % 3]
        )
        for n, data in enumerate(models)
    ]


def decoders(target: str) -> list[Plan]:
    """Decoder steps of one token and of several (whose rows stream), under every objective."""
    ways = [(tokens, dtype) for tokens in (1, 4) for dtype in ("int8", "float32")]
    return [
        plan_of(decoder(dtype=dtype, tokens=tokens), target, kernels="tinyfuse", optimize=optimize)
        for (tokens, dtype), optimize in zip(ways, (*OPTIMIZE, "ram"), strict=True)
    ]


def test_references_are_tflm() -> None:
    pytest.importorskip("tflite_micro")
    for data in [*drawn(range(24)), decoder(tokens=4)]:
        assert_reference_is_tflm(data, runs=8)


def test_on_the_host() -> None:
    """Old and new contents are read, out of the variables and from copies of them."""
    plans = planned(drawn(range(18)), "host")
    found = Counter((op.kind, bool(op.states)) for plan in plans for group in plan.groups for op in group.ops)
    assert found["UPDATE_STATE", True] > 45 and found["READ_VARIABLE", True] > 10
    assert found["BATCH_MATMUL", True] > 10 and found["BATCH_MATMUL", False] > 10
    assert_all_stream([*plans, *decoders("cortex-m4")])


def test_rows_of_tokens_stream_over_caches() -> None:
    """Operators that read variables stand inside a group, and no cache is in the arena."""
    plan = plan_of(decoder(24, 16, tokens=8), "cortex-m4", optimize="ram")
    (group,) = (group for group in plan.groups if len(group.states) == 2)
    assert "ROWS_MATMUL ADD SOFTMAX ROWS_MATMUL" in " ".join(op.kind for op in group.ops)
    assert plan.arena_bytes < 24 * 16 * 2


@pytest.mark.emulated
@on_one_core(*CORES)
def test_on_cores(target: str) -> None:
    target_or_skip(target)
    first = 30 + 6 * CORES.index(target)
    assert_all_stream([*planned(drawn(range(first, first + 6)), target), *decoders(target)], on_core=True)


@pytest.mark.parametrize("wide", [False, True])
def test_starts_far_outside_are_moved_inside(monkeypatch, wide: bool) -> None:
    info = np.iinfo(np.int64 if wide else np.int32)
    family = type(FAMILIES["DYNAMIC_UPDATE_SLICE"])
    monkeypatch.setattr(family, "indexes", lambda self, op, index: (info.min, info.max) if index == 2 else None)
    c = Caches(5, rows=2, wide=wide)
    one, other = c.cache(6, 4), c.cache(5, 3)
    for cache in (one, other, one):
        c.results.append(c.scores(c.update(cache)))
    plan = plan_of(c.build())
    assert [op.kind for op in plan.graph.ops].count("UPDATE_STATE") == 3
    assert_all_stream([plan])


@pytest.mark.parametrize("options", [{"step": True}, {"step": True, "max_step": 500}])
def test_steps_stop_between_updates(options: dict) -> None:
    assert_exact(plan_of(decoder(), "cortex-m4", kernels="tinyfuse", **options), runs=8, on_host=True)


@settings(max_examples=2, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(cache_models(), min_size=6, max_size=6))
def test_random_caches(models: list[bytes]) -> None:
    assert_all_stream(planned(models, "host"))


@pytest.mark.campaign
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(cache_models())
def test_many_references_are_tflm(data: bytes) -> None:
    assert_reference_is_tflm(data, runs=8)


@pytest.mark.campaign
@pytest.mark.parametrize("target", ["host", *CORES])
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(models=st.lists(cache_models(), min_size=12, max_size=12))
def test_many_random_caches(target: str, models: list[bytes]) -> None:
    assert_all_stream(planned(models, target), on_core=target != "host")
