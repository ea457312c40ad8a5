"""Faults seeded into plans (plan_mutations.py): verify_plan, the only guard against them, finds each fault that does
harm.

What survives the checker is generated and run on the host: only where every output of it is exact, as of a
buffer that was moved to bytes that nobody uses, is it equivalent. Where generated code would not show the
fault (what a buffer promises to hold), none may survive."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from random import Random

import pytest
from attention_networks import decoder
from executors import assert_all_exact, assert_exact, grouped_plan, plan_of
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from nchw_networks import FIRST, LAST
from plan_mutations import KINDS, Fault, faults
from planar_networks import segmentation
from random_graphs import Sketch, networks
from resizing_graphs import longest_plans, resizing_chains
from stacked_networks import residual, stacked
from stream_models import STREAM_MODELS

from tinyfuse.errors import CompileError, InternalFault
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.core.family import RowWindow
from tinyfuse.options import OPTIMIZE
from tinyfuse.plan import Plan
from tinyfuse.plan.check.player import verify_plan
from tinyfuse.rewrite.rows_of_planes import rows_of_planes

#: kinds of which the generated code would not tell: survivors can't be shown to be harmless
NEVER = {"a buffer too small", "scratch 4 bytes short", "scratch 16 bytes short", "a state elsewhere",
         "counters of a fed group short"}  # fmt: skip


def sliding() -> Plan:
    """Plans with sliding rings, some with readers that count in fractions of a row; scratch; overlaps."""
    sketch = Sketch(5)
    x = sketch.value((1, 6, 4, 4))
    y = sketch.resize(sketch.conv(x, 4, (3, 2)), (12, 4))
    y = sketch.transpose_conv(y, 4, (3, 3), (2, 1))
    y = sketch.depthwise(sketch.conv(y, 4, (3, 3)), (3, 3))
    (plan,) = longest_plans([sketch.build([x], [sketch.depthwise(y, (3, 3), (2, 2))])], slide=True)
    return plan


def branches() -> Plan:
    """Plans with several groups, views by concatenation and slice, tensors that live over other groups."""
    sketch = Sketch(6)
    x = sketch.value((1, 8, 6, 4))
    y = sketch.conv(x, 4, (3, 3))
    left, right = sketch.split(y, 1, 2)
    parts = [sketch.depthwise(left, (3, 3)), sketch.relu(right)]
    joined = sketch.concatenate([sketch.requantize_to(part, y) for part in parts], 1)
    return plan_of(sketch.build([x], [sketch.fully_connected(joined, 5), sketch.add(joined, y)]), optimize="speed")


def fed() -> Plan:
    sketch = Sketch(7)
    x = sketch.value((1, 9, 5, 4))
    y = sketch.conv(sketch.depthwise(sketch.conv(x, 8, (3, 3)), (3, 3)), 8, (1, 1))
    return plan_of(sketch.build([x], [sketch.mean(y)]), feed_rows=True)


def by_four() -> Plan:
    """Plans with rows in rings that are made and read four at a time, the last time three. On the host C twins run."""
    sketch = Sketch(8)
    x = sketch.value((1, 11, 6, 4))
    y = sketch.conv(sketch.conv(sketch.depthwise(x, (3, 3)), 4, (3, 3)), 4, (3, 3))
    data = sketch.build([x], [sketch.depthwise(y, (3, 3))])
    return grouped_plan(data, (4,), "cortex-m4", kernels="tinyfuse", optimize="ram", weights="winograd")


def streaming() -> Plan:
    return plan_of(STREAM_MODELS["streaming convolutions"])


def in_a_stack() -> Plan:
    """Plans with rings in a stack that overwrite first rows of others, and an eager projection."""
    return stacked(residual(8, blocks=1))


def on_an_output() -> Plan:
    """Plans with a stack on an output that grows below it; the next group reads one such output."""
    return longest_plans([residual(8, blocks=1)], stack=True, growing=True, longest=5)[0]


def caching() -> Plan:
    """Caches that are updated in place, and a group by rows that reads them there."""
    return plan_of(decoder(tokens=3), "cortex-m4", kernels="tinyfuse")


def of_planes() -> Plan:
    """Planes written over planes, and planes made by a second group."""
    sketch = Sketch(9)
    image = sketch.value((1, 3, 9, 8))
    x = sketch.conv(sketch.conv(sketch.transpose(image, LAST), 4, (3, 3)), 3, (3, 3))
    y = sketch.transpose(x, FIRST)
    other = sketch.transpose(sketch.conv(sketch.transpose(sketch.softmax(y), LAST), 5, (3, 3), (2, 2)), FIRST)
    return longest_plans([sketch.build([image], [y, other])], slide=True, rewritten=rows_of_planes)[0]


def planes_over_planes() -> Plan:
    (plan,) = longest_plans([segmentation(9, 3, 3)], stack=True, rewritten=rows_of_planes)
    assert len(plan.groups) == 1 and len({plan.offset(t) for t in plan.storage if t.planes > 1}) == 1
    return plan


MODELS = {
    "caching": caching,
    "of planes": of_planes,
    "planes over planes": planes_over_planes,
    "in a stack": in_a_stack,
    "on an output": on_an_output,
    "sliding": sliding,
    "branches": branches,
    "fed": fed,
    "streaming": streaming,
    "by four": by_four,
}


def judged(found: Iterable[Fault], counts: Counter) -> list[Fault]:
    """Verdicts on faults that the checker doesn't find."""
    survivors = []
    for fault in found:
        try:
            verify_plan(fault.plan)
        except InternalFault:
            counts[fault.kind, "caught"] += 1
        else:
            counts[fault.kind, "survived, exact"] += 1
            survivors.append(fault)
    return survivors


def assert_harmless(survivors: list[Fault]) -> None:
    assert not [f"{fault.kind}: {fault.what}" for fault in survivors if fault.kind in NEVER]
    together = [f for f in survivors if not f.plan.state_bytes and f.plan.fed is None]
    for start in range(0, len(together), 12):
        assert_all_exact([fault.plan for fault in together[start : start + 12]], runs=3, on_host=True)
    for fault in survivors:
        if fault not in together:
            assert_exact(fault.plan, runs=4, on_host=True)


def table(counts: Counter) -> str:
    rows = [f"{'fault':34}{'caught':>8}{'survived, exact':>17}"]
    return "\n".join(rows + [f"{k:34}{counts[k, 'caught']:8}{counts[k, 'survived, exact']:17}" for k in KINDS])


def few_of_each(found: Iterable[Fault], most: int, seed: int = 0) -> list[Fault]:
    by_kind: dict[str, list[Fault]] = {}
    for fault in found:
        by_kind.setdefault(fault.kind, []).append(fault)
    return [f for some in by_kind.values() for f in Random(seed).sample(some, min(most, len(some)))]


@pytest.mark.slow
def test_a_sample_of_faults() -> None:
    counts: Counter = Counter()
    survivors = []
    for make in MODELS.values():
        survivors += judged(faults(make()), counts)
    print("\n" + table(counts))
    assert not [kind for kind in KINDS if not counts[kind, "caught"]], "kinds that no plan has, or never caught"
    assert_harmless([f for f in survivors if f.kind in NEVER] + few_of_each(survivors, 2))


@pytest.mark.campaign
@pytest.mark.parametrize("name", MODELS)
def test_every_fault(name: str) -> None:
    counts: Counter = Counter()
    survivors = judged(faults(MODELS[name]()), counts)
    print(f"\n{name}\n{table(counts)}")
    assert_harmless(survivors)


@pytest.mark.campaign
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
@given(networks(most_layers=8) | resizing_chains(), st.sampled_from(OPTIMIZE), st.booleans())
def test_faults_in_random_plans(data: bytes, optimize: str, feed: bool) -> None:
    try:
        plan = plan_of(data, optimize=optimize, feed_rows=feed)
    except CompileError:
        plan = plan_of(data, optimize=optimize)
    survivors = judged(few_of_each(faults(plan), 8), Counter())
    assert_harmless([f for f in survivors if f.kind in NEVER] + few_of_each(survivors, 3))


# --- what the whole schedule believes ----------------------------------------------------------


def _believed(monkeypatch, kind: str, change) -> None:
    family = type(FAMILIES[kind])
    right = family.row_window

    def wrong(self, op, index):
        window = right(self, op, index)
        return window if window is None or op.kind != kind else change(window)

    monkeypatch.setattr(family, "row_window", wrong)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["RESIZE_BILINEAR", "TRANSPOSE_CONV", "CONV_2D", "DEPTHWISE_CONV_2D"])
@pytest.mark.parametrize("fault", ["a row less", "a padding of one more", "a padding of one less"])
def test_a_wrong_window_that_the_whole_schedule_believes(monkeypatch, kind: str, fault: str) -> None:
    """Rings, order and overlaps all follow from it, so the plan agrees with itself. Where the window begins
    too high, rows are missing below; too low, above; the latter shows where rings are tight."""
    changes = {
        "a row less": lambda w: RowWindow(w.kernel - 1, w.stride, w.pad_top, w.spread),
        "a padding of one more": lambda w: RowWindow(w.kernel, w.stride, w.pad_top + 1, w.spread),
        "a padding of one less": lambda w: RowWindow(w.kernel, w.stride, w.pad_top - 1, w.spread),
    }
    _believed(monkeypatch, kind, changes[fault])
    with pytest.raises(InternalFault, match="overwritten|sliding ring"):
        sliding()


@pytest.mark.parametrize("target", ["host", "cortex-m4", "cortex-m55"])
@pytest.mark.parametrize("less", [4, 16])
def test_a_kernel_that_asks_for_too_little_scratch(monkeypatch, target: str, less: int) -> None:
    from tinyfuse.schedule.kernel_choice import stages

    sound = stages._stage

    def wrong(op, kernel, by_row, context):
        stage = sound(op, kernel, by_row, context)
        object.__setattr__(stage, "scratch_bytes", max(0, stage.scratch_bytes - less))
        return stage

    sketch = Sketch(1)
    x = sketch.value((1, 9, 7, 8))
    data = sketch.build([x], [sketch.conv(x, 16, (3, 3))])
    plan_of(data, target, kernels="tinyfuse")
    monkeypatch.setattr(stages, "_stage", wrong)
    with pytest.raises(InternalFault, match="bytes of scratch and has"):
        plan_of(data, target, kernels="tinyfuse")
