"""Variables that are updated and read in place (rewrite/update_states.py, read_states.py): which ones may be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from attention_networks import decoder
from cache_models import Cache, Caches, caches
from cases.common import flexbuffer
from executors import plan_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_graphs import Value
from stream_models import STREAM_MODELS

from tinyfuse.cost.predict import plan_stages
from tinyfuse.errors import InternalFault
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.ir import Graph
from tinyfuse.plan.check.player import verify_plan
from tinyfuse.plan.check.state import check_states
from tinyfuse.report.report_json import report_json
from tinyfuse.rewrite import rewrite
from tinyfuse.rewrite.computed_weights import computed_weights
from tinyfuse.rewrite.invariants import check_graph
from tinyfuse.rewrite.read_states import read_states
from tinyfuse.rewrite.update_states import update_states
from tinyfuse.verify.emulation.inputs import input_set
from tinyfuse.verify.oracle import ReferenceOracle


def rewritten(data: bytes) -> Graph:
    """The graph after both rewrites; references of all three graphs agree in each run."""
    before = computed_weights(read_tflite("m.tflite", data))
    after = read_states(update_states(before))
    check_graph(after, "the rewrites of variables")
    inputs = [input_set(before, 8, 1)]
    for found in (update_states(before), after):
        for wanted, got in zip(*(ReferenceOracle(g).run_streams(inputs)[0] for g in (before, found)), strict=True):
            for a, b in zip(wanted, got, strict=True):
                np.testing.assert_array_equal(a, b)
    return after


def kinds(graph: Graph) -> list[str]:
    return [op.kind for op in graph.ops]


def test_a_decoder_copies_no_cache() -> None:
    plan = plan_of(decoder(32, 16, 2), "cortex-m4")
    found = kinds(plan.graph)
    assert found.count("UPDATE_STATE") == 2
    assert not {"READ_VARIABLE", "DYNAMIC_UPDATE_SLICE", "ASSIGN_VARIABLE"} & set(found)
    assert sum(op.kind == "ROWS_MATMUL" and bool(op.states) for op in plan.graph.ops) == 2
    assert plan.arena_bytes < 32 * 16 and plan.state_bytes == 2 * 32 * 16
    assert [state["updated_in_place"] for state in report_json(plan, 0, None)["states"]] == [True, True]
    copied = {saving.rewrite: saving.copied_bytes for saving in plan.graph.savings}
    assert copied["update_states"] == copied["read_states"] == 2 * 32 * 16


def test_without_fusion_the_file_is_followed() -> None:
    found = kinds(plan_of(decoder(), fusion="none").graph)
    assert "UPDATE_STATE" not in found and found.count("DYNAMIC_UPDATE_SLICE") == 2


@pytest.mark.parametrize("fusion", ["basic", "rows"])
@pytest.mark.parametrize("kernels", ["auto", "mixed", "cmsis-nn"])
def test_whatever_fuses_and_computes(fusion: str, kernels: str) -> None:
    graph = read_tflite("m.tflite", decoder())
    assert kinds(rewrite(graph, fusion, kernels)).count("UPDATE_STATE") == 2


# --- one cache, and what is done to it -----------------------------------------------------------


def of_one(make: Callable[[Caches, Cache], Value]) -> list[str]:
    c = Caches(3, rows=2)
    c.results.append(make(c, c.cache(6, 4)))
    return kinds(rewritten(c.build()))


def _old_after(c: Caches, cache: Cache) -> Value:
    """A model that reads the old contents after the update."""
    old = c.read(cache)
    new = c.replaced(old)
    c.assign(cache, new)
    c.results.append(c.scores(new))
    return c.scores(old)


def _old_before(c: Caches, cache: Cache) -> Value:
    old = c.read(cache)
    c.results.append(c.scores(old))
    c.assign(cache, c.replaced(old))
    return c.scores(c.read(cache))


def _twice(c: Caches, cache: Cache) -> Value:
    c.results.append(c.scores(c.update(cache)))
    return c.mixed(c.update(cache))


def _one_after_the_other(c: Caches, cache: Cache) -> Value:
    between = c.replaced(c.read(cache))
    c.results.append(c.scores(between))
    new = c.replaced(between)
    c.assign(cache, new)
    return c.scores(new)


def _between_afterwards(c: Caches, cache: Cache) -> Value:
    """A model of two updates that reads the result of the first one after the second one."""
    between = c.replaced(c.read(cache))
    new = c.replaced(between)
    c.assign(cache, new)
    c.results.append(c.scores(between))
    return c.scores(new)


def _by_itself(c: Caches, cache: Cache) -> Value:
    """A model that updates with a part of the old contents."""
    old, new = c.read(cache), c.like(cache.like)
    part = c.sketch.slice(old, (0, 1, 0), (1, 2, 4))
    where = c.starts((0, 4, 0))
    c.sketch.model.op("DYNAMIC_UPDATE_SLICE", [old.index, part.index, where], [new.index], table=False)
    c.assign(cache, new)
    return c.scores(new)


def _left(c: Caches, cache: Cache) -> Value:
    return c.left(c.update(cache))


def _an_output(c: Caches, cache: Cache) -> Value:
    new = c.update(cache)
    c.results.append(c.scores(new))
    return new


def _weights(c: Caches, cache: Cache) -> Value:
    """Weights of a dense layer, which becomes a product of matrices if they are computed."""
    s, new = c.sketch, c.update(cache)
    x, y = c.input(1, 4), s.value((1, 6), 3.0)
    s.model.op("FULLY_CONNECTED", [x.index, s.reshape(new, (6, 4)).index, -1], [y.index])
    return y


def _both(c: Caches, cache: Cache) -> Value:
    new = c.update(cache)
    return c.sketch.matmul(new, new, adj_y=True)


_MATMUL = "BATCH_MATMUL"


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (_old_after, ["READ_VARIABLE", "UPDATE_STATE", _MATMUL, _MATMUL]),
        (_old_before, [_MATMUL, "UPDATE_STATE", _MATMUL]),
        (_twice, ["UPDATE_STATE", _MATMUL, "UPDATE_STATE", _MATMUL]),
        (_one_after_the_other, ["UPDATE_STATE", _MATMUL, "UPDATE_STATE", _MATMUL]),
        (_between_afterwards, ["UPDATE_STATE", "READ_VARIABLE", "UPDATE_STATE", _MATMUL, _MATMUL]),
        (_by_itself, ["READ_VARIABLE", "SLICE", "UPDATE_STATE", _MATMUL]),
        (_left, ["UPDATE_STATE", _MATMUL]),
        (_weights, ["UPDATE_STATE", _MATMUL]),
        (_an_output, ["UPDATE_STATE", "READ_VARIABLE", _MATMUL]),
        (_both, ["UPDATE_STATE", _MATMUL]),
    ],
)
def test_what_is_copied(make: Callable[[Caches, Cache], Value], expected: list[str]) -> None:
    assert of_one(make) == expected


def _assigned_between(c: Caches, cache: Cache) -> Value:
    old = c.read(cache)
    c.assign(cache, c.input(*cache.like.shape))
    new = c.replaced(old)
    c.assign(cache, new)
    return c.scores(new)


def _read_between(c: Caches, cache: Cache) -> Value:
    new = c.replaced(c.read(cache))
    c.results.append(c.scores(c.read(cache)))
    c.assign(cache, new)
    return c.scores(new)


def _of_another(c: Caches, cache: Cache) -> Value:
    other = c.cache(6, 4)
    c.update(other)
    new = c.replaced(c.read(other))
    c.assign(cache, new)
    return c.scores(new)


def _computed(c: Caches, cache: Cache) -> Value:
    new = c.sketch.relu(c.replaced(c.read(cache)))
    c.assign(cache, new)
    return c.scores(new)


@pytest.mark.parametrize("make", [_assigned_between, _read_between, _of_another, _computed])
def test_what_is_no_update_in_place(make: Callable[[Caches, Cache], Value]) -> None:
    assert "DYNAMIC_UPDATE_SLICE" in of_one(make)


def test_a_run_that_may_end_between_is_left_alone() -> None:
    """The file assigns nothing where it ends."""
    c = Caches(3)
    cache = c.cache(4, 3)
    new = c.replaced(c.read(cache))
    frame = c.input(1, 1, 1, 3)
    model = c.sketch.model
    quant = {"scale": frame.stored_scale, "zero_point": frame.zero_point}
    frames = model.tensor("frames", (1, 2, 1, 3), "int8", is_variable=True, **quant)
    model.op(
        "CUSTOM", [frame.index], [frames], custom_code="CIRCULAR_BUFFER", custom_options=flexbuffer({"cycles_max": 2})
    )
    c.assign(cache, new)
    c.results.append(c.scores(new))
    assert "DYNAMIC_UPDATE_SLICE" in kinds(update_states(read_tflite("m.tflite", c.build())))


def test_other_models_stay_as_they_are() -> None:
    for data in STREAM_MODELS.values():
        graph = read_tflite("m.tflite", data)
        assert update_states(graph) is graph


@pytest.mark.slow
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 2, 5]), st.booleans())
def test_random_caches_keep_every_bit(seed: int, rows: int, wide: bool) -> None:
    rewritten(caches(seed, rows=rows, wide=wide, initialized=seed % 2 == 0))


# --- what predictions and the report say ----------------------------------------------------------


def test_the_copy_is_predicted_where_it_is_made() -> None:
    """A tensor that only its update reads needs no copy; one that is needed afterwards is copied whole."""

    def predicted(needed: bool) -> float:
        c = Caches(4)
        x = c.sketch.relu(c.input(1, 40, 16))
        c.results += [c.replaced(x, shape=(1, 1, 16)), *([c.sketch.with_constant(x, "ADD")] if needed else [])]
        plan = plan_of(c.build(), "cortex-m4", kernels="tinyfuse", optimize="ram")
        (found,) = (
            value
            for group, values in zip(plan.groups, plan_stages(plan), strict=True)
            for op, value in zip(group.ops, values, strict=True)
            if op.kind == "DYNAMIC_UPDATE_SLICE"
        )
        return found

    assert predicted(False) < 150 < 300 < predicted(True) < 700


# --- the checker of plans ------------------------------------------------------------------------


def test_a_group_that_changes_what_it_reads_by_rows_is_a_fault() -> None:
    plan = plan_of(decoder(tokens=4), "cortex-m4", optimize="ram")
    verify_plan(plan)
    (reads,) = (group for group in plan.groups if len(group.ops) > 1 and group.states)
    changes = next(group for group in plan.groups if group.ops[0].kind == "UPDATE_STATE")
    joined = replace(reads, stages=(*changes.stages, *reads.stages))
    groups = tuple(joined if group is reads else group for group in plan.groups if group is not changes)
    with pytest.raises(InternalFault, match="changes a state while its rows|changed places"):
        check_states(replace(plan, groups=groups))


def test_a_reader_before_the_update_is_a_fault() -> None:
    plan = plan_of(decoder(), "cortex-m4")
    on_states = [group.index for group in plan.groups if group.states]
    groups = list(plan.groups)
    update, reader = on_states[1], on_states[2]
    groups[update], groups[reader] = groups[reader], groups[update]
    with pytest.raises(InternalFault, match="changed places"):
        check_states(replace(plan, groups=tuple(groups)))
