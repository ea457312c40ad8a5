"""The row loop: formulas for all its events against a simulation of each iteration, and the number of iterations that
are simulated."""

from __future__ import annotations

import pytest
from contexts import context_of
from hypothesis import HealthCheck, given, settings
from random_graphs import Sketch, networks
from set_limits import set_limits
from test_branchy_graphs import branchy
from test_partition_search import long_network

from tinyfuse import limits
from tinyfuse.compiler import compile_graph
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.ir import Graph
from tinyfuse.kernels.core.context import Context
from tinyfuse.options import OPTIMIZE, Options
from tinyfuse.plan import loop
from tinyfuse.plan.loop import StageRows
from tinyfuse.plan.places import is_alias
from tinyfuse.plan.rows import Stream
from tinyfuse.rewrite import rewrite
from tinyfuse.schedule import plan_graph
from tinyfuse.schedule.groups import order
from tinyfuse.schedule.groups.legality import Legality
from tinyfuse.schedule.groups.order import _Units, least_peak
from tinyfuse.schedule.kernel_choice.stages import make_stages
from tinyfuse.targets import load_target

M4 = load_target("cortex-m4")


class Played:
    """Simulates a loop iteration by iteration, from the definitions in tinyfuse/plan/rows.py."""

    def __init__(self, stages: tuple[StageRows, ...]):
        self.stages, self.done, self.order = stages, [0] * len(stages), []
        self.snapshots: list[list[int]] = []
        while (s := next((s for s in reversed(range(len(stages))) if self.can_run(s)), None)) is not None:
            self.snapshots.append(list(self.done))
            self.order.append(s)
            self.done[s] = self.after(s, self.done[s])

    def after(self, s: int, rows: int) -> int:
        """Number of rows of a stage after its next event."""
        return min(rows + self.stages[s].at_once, self.stages[s].height)

    def readers(self, s: int):
        return [(c, window) for c, stage in enumerate(self.stages) for maker, window in stage.reads if maker == s]

    def can_run(self, s: int) -> bool:
        stage, row = self.stages[s], self.done[s]
        wanted = stage.leaves or any(
            self.done[c] < self.stages[c].height and window.needed(self.after(c, self.done[c]) - 1, stage.height) > row
            for c, window in self.readers(s)
        )
        there = row < stage.height and all(
            self.done[maker] >= window.needed(self.after(s, row) - 1, self.stages[maker].height)
            for maker, window in stage.reads
        )
        return wanted and there

    def oldest(self, s: int, done: list[int]) -> int | None:
        rows = [window.first(done[c]) for c, window in self.readers(s) if done[c] < self.stages[c].height]
        return min(rows, default=None)

    def begins(self, s: int) -> list[int]:
        """Before each event, the first row in the ring of `s`, if it slides."""
        first, found = 0, []
        for computes, done in zip(self.order, self.snapshots, strict=True):
            found.append(first)
            if computes in {c for c, _ in self.readers(s)}:
                after = [self.after(n, rows) if n == computes else rows for n, rows in enumerate(done)]
                oldest = self.oldest(s, after)
                first = after[s] if oldest is None else min(oldest, after[s])
        return found

    def ring(self, s: int) -> int:
        held, slid = [1], [1]
        for computes, done, first in zip(self.order, self.snapshots, self.begins(s), strict=True):
            oldest = self.oldest(s, done)
            if computes == s and oldest is not None:
                held.append(self.after(s, done[s]) - oldest)
            slid += [self.after(s, done[s]) - first] if computes == s else []
        # one that must slide has room for rows that nobody reads, too
        if max(held) > 1 and any(self.stages[c].in_order for c, _ in self.readers(s)):
            held = slid
        blocks = self.stages[s].at_once if self.stages[s].in_order else 1
        return min(-(-max(held) // blocks) * blocks, self.stages[s].height)

    def held(self, s: int, slides: bool) -> list[int]:
        found = []
        for computes, done, first in zip(self.order, self.snapshots, self.begins(s), strict=True):
            oldest, stage = self.oldest(s, done), self.stages[s]
            writes = (self.after(s, done[s]) - done[s]) * (computes == s)
            if stage.leaves:
                found.append(done[s] + writes)
            elif slides:
                found.append(done[s] - first + writes)
            else:
                there = oldest is not None and done[s] > 0 and (oldest < done[s] or stage.accumulates)
                found.append(self.ring(s) if there or writes else 0)
        return found

    def moved(self, s: int) -> int:
        """Rows that the ring of `s` moves down after rows of its readers."""
        first = total = 0
        for computes, done in zip(self.order, self.snapshots, strict=True):
            if computes in {c for c, _ in self.readers(s)}:
                after = [self.after(n, rows) if n == computes else rows for n, rows in enumerate(done)]
                oldest = self.oldest(s, after)
                oldest = after[s] if oldest is None else min(oldest, after[s])
                if oldest > first:
                    total, first = total + after[s] - oldest, oldest
        return total


def check(data: bytes) -> None:
    """Checks plans with our kernels, and with kernels that need contiguous rows, one or more for each call."""
    graph = rewrite(read_tflite("model.tflite", data), "rows", "auto", "ram")
    _check(graph, Context(M4))
    _check(graph, context_of(M4, kernels="cmsis-nn", at_once=4))


def _check(graph: Graph, context: Context) -> None:
    ops, legality = [op for op in graph.ops if not is_alias(op)], Legality(graph, context)
    for i in range(0, len(ops), 2):
        group = next((ops[i:j] for j in range(min(len(ops), i + 7), i, -1) if not legality.refusal(ops[i:j])), [])
        stages = make_stages(group, context) if group else ()
        if not stages or not stages[0].by_row:
            continue
        found = Stream(stages, legality.leaving(group)).loop
        played = Played(found.stages)
        assert found.order.tolist() == played.order
        assert found.rings == {s: played.ring(s) for s, stage in enumerate(found.stages) if not stage.leaves}
        for sliding in (frozenset(), found.sliding):
            columns = found.live_rows(sliding).T.tolist()
            assert columns == [played.order, *(played.held(s, s in sliding) for s in range(len(stages)))]
        for s in found.sliding:
            assert sum(moves.get(s, 0) for moves in found.slides.values()) == played.moved(s)


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(networks())
def test_loops_of_networks_are_what_playing_them_gives(data: bytes) -> None:
    check(data)


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(branchy(most_operators=16))
def test_loops_of_branches_are_what_playing_them_gives(data: bytes) -> None:
    check(data)


# --- work, counted ---------------------------------------------------------------------------


def rows_played(blocks: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Rows that are simulated to compile a network of `blocks` equal blocks."""
    rows, play = [], loop._play
    monkeypatch.setattr(loop, "_play", lambda *of: rows.append(order := play(*of)) or order)
    loop.play.cache_clear()
    compile_graph(read_tflite("model.tflite", long_network(blocks)), M4, Options("net"))
    monkeypatch.undo()
    return sum(map(len, rows))


@pytest.mark.slow
def test_blocks_that_repeat_are_played_once(monkeypatch) -> None:
    few, many = rows_played(9, monkeypatch), rows_played(18, monkeypatch)
    assert few > 0 and many <= 1.3 * few


def test_plans_that_are_only_compared_are_not_verified(monkeypatch) -> None:
    verified, check_plan = [], plan_graph.verify_plan
    monkeypatch.setattr(plan_graph, "verify_plan", lambda plan: verified.append(plan) or check_plan(plan))
    source = read_tflite("model.tflite", long_network(2))
    for fusion in ("none", "rows"):
        verified.clear()
        plan = compile_graph(source, M4, Options("net", fusion=fusion))
        assert [p.placement for p in verified] == [plan.placement]


def test_aims_that_rewrite_alike_share_their_graph() -> None:
    source, known = read_tflite("model.tflite", long_network(2)), {}
    balanced, ram = (
        rewrite(source, "rows", "auto", objective, known=known) for objective in OPTIMIZE if objective != "speed"
    )
    assert balanced is ram and balanced is not rewrite(source, "rows", "auto", "ram")


def test_the_least_peak_looks_at_a_bounded_number_of_ways(monkeypatch) -> None:
    sketch = Sketch(1)
    image = sketch.value((1, 2, 2, 1))
    branches = [sketch.conv(image, 1 + k % 5, (1, 1)) for k in range(60)]
    graph = read_tflite("model.tflite", sketch.build([image], branches))
    looked, new_bytes = [], order._Step.new_bytes
    monkeypatch.setattr(order._Step, "new_bytes", lambda step, ran: looked.append(ran) or new_bytes(step, ran))
    set_limits(monkeypatch, ORDER_WAYS=6_000)
    units = _Units(graph, lambda a, b: False)
    found, _, reached = least_peak(units)
    assert sorted(found) == list(range(60)) and reached == {limits.ORDER_WAYS}
    # a hundred ways for each number of operators, and those from the start
    assert len(looked) <= 6_000 + 60
