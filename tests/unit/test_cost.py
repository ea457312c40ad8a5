"""Cost tables: fits to synthetic data, counts, and predictions against measurements."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from plan_parts import plan_groups
from random_graphs import Sketch
from test_emulation import needs_qemu

from tinyfuse.cli.profile import profile
from tinyfuse.cli.request import Request
from tinyfuse.cost import cost_table
from tinyfuse.cost.fit import fit, fit_once, nnls
from tinyfuse.cost.predict import called_once, known_total, plan_stages
from tinyfuse.cost.table import Alone, loop_features, read_table, rows_made
from tinyfuse.errors import ToolMissing
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.layers.int8_dsp.conv import CODE_OF_WINDOWS
from tinyfuse.options import Options, ProfileOptions
from tinyfuse.plan import Plan
from tinyfuse.plan.rows import Stream
from tinyfuse.targets import all_targets, load_target


def test_the_fit_finds_the_factors_that_made_the_data() -> None:
    rng = np.random.default_rng(1)
    truth = {"calls": 70.0, "pixels": 12.0, "macs": 0.6, "useless": 0.0}
    samples = []
    for _ in range(60):
        counts = {name: float(rng.integers(1, 2000)) for name in truth}
        samples.append((counts, sum(factor * counts[name] for name, factor in truth.items())))
    found = fit(samples)
    assert set(found.factors) == {"calls", "pixels", "macs"}
    for name, factor in found.factors.items():
        assert factor == pytest.approx(truth[name], rel=0.01)
    assert found.worst < 0.01


def test_the_fit_never_gives_a_negative_factor_and_says_its_error() -> None:
    counts = [{"calls": 1.0, "rows": float(n)} for n in range(1, 20)]
    found = fit([(c, 50_000 - 1000 * c["rows"]) for c in counts])
    assert all(factor > 0 for factor in found.factors.values())
    assert found.mean > 0.05


@pytest.mark.parametrize("seed", range(20))
def test_nnls_is_the_best_of_all_choices_of_columns(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(12, 5)), rng.normal(size=12)
    a[:, 4] = 2 * a[:, 3]  # of two alike, one will do
    best = np.inf
    for size in range(6):
        for columns in itertools.combinations(range(5), size):
            x = np.zeros(5)
            if columns:
                x[list(columns)] = np.linalg.lstsq(a[:, columns], b, rcond=None)[0]
            if (x >= 0).all():
                best = min(best, np.linalg.norm(a @ x - b))
    x = nnls(a, b)
    assert (x >= 0).all() and np.linalg.norm(a @ x - b) == pytest.approx(best)


@pytest.mark.parametrize("seed", range(20))
def test_nnls_takes_back_what_it_chose(seed: int) -> None:
    """Of nearly equal columns the steepest one is chosen first and may be dropped later; the Karush-Kuhn-Tucker
    conditions hold at the end."""
    rng = np.random.default_rng(seed)
    shared = rng.normal(size=(12, 1))
    a, b = shared + 0.3 * rng.normal(size=(12, 8)), rng.normal(size=12) + 2 * shared[:, 0]
    x = nnls(a, b)
    gradient = a.T @ (b - a @ x)
    assert (x >= 0).all()
    assert np.abs(gradient[x > 0]).max() < 1e-8
    assert gradient[x == 0].max(initial=0) < 1e-6


def separable() -> bytes:
    sketch = Sketch(1)
    x = sketch.value((1, 20, 12, 16))
    y = sketch.conv(sketch.depthwise(x, (3, 3), activation="RELU"), 24, (1, 1), activation="RELU")
    y = sketch.conv(y, 16, (3, 3), (2, 2), activation="RELU")
    y = sketch.pool(y, "AVERAGE_POOL_2D", y.shape[1:3], (1, 1))
    return sketch.build([x], [sketch.softmax(sketch.fully_connected(y, 10))])


def test_rows_are_calls_and_the_loop_asks_every_stage_behind() -> None:
    sketch = Sketch(2)
    x = sketch.value((1, 5, 4, 8))
    data = sketch.build([x], [sketch.relu(sketch.relu(x, same=False), same=False)])
    graph = read_tflite("model.tflite", data)
    plan = plan_groups(graph, graph, [list(graph.ops)], Context(load_target("cortex-m4")), Options("net"))
    (group,) = plan.groups
    stream = Stream(group.stages, frozenset(group.outputs))
    assert group.stages[0].kernel.counts(group.ops[0], by_row=False)["calls"] == 1
    assert group.stages[0].kernel.counts(group.ops[0], by_row=True)["calls"] == 5
    # ten iterations; the first stage is asked in the five in which the second can't run
    assert [counts["checks"] for counts in loop_features(group.stages, stream)] == [5, 10]


def test_a_kernel_that_was_not_measured_has_no_prediction(monkeypatch) -> None:
    def predicted(target: str) -> list:
        graph = read_tflite("model.tflite", separable())  # what an operator's kernel takes is worked out once
        context = Context(load_target(target))
        plan: Plan = plan_groups(graph, graph, [[op] for op in graph.ops], context, Options("net"))
        return list(itertools.chain.from_iterable(plan_stages(plan)))

    assert known_total(predicted("cortex-m4")) > 0
    assert set(predicted("host")) == {None} and known_total([1.0, None]) is None
    table = cost_table("cortex-m4")
    monkeypatch.delitem(table.kernels, "tinyfuse_softmax_s8")
    assert predicted("cortex-m4").count(None) == 1


def test_what_a_kernel_takes_that_is_called_once(monkeypatch) -> None:
    """Compilers know the constants of a single call: it takes a share of its entry, and something less where it begins."""
    graph = read_tflite("model.tflite", separable())
    context = Context(load_target("cortex-m4"))
    plan = plan_groups(graph, graph, [[op] for op in graph.ops], context, Options("net"))
    names = [group.stages[0].kernel.copy_of_code(group.ops[0], context) for group in plan.groups]
    once = names.index("tinyfuse_softmax_s8")
    assert called_once(plan) == {*names, *CODE_OF_WINDOWS} - {""} and not called_once(
        replace(plan, groups=2 * plan.groups)
    )
    table = cost_table("cortex-m4")
    found = []
    for alone in (Alone(), Alone(0.75), Alone(1.0, {"calls": -25.0}), Alone(0.0, {"calls": -25.0})):
        monkeypatch.setitem(table.alone, "tinyfuse_softmax_s8", alone)
        found.append(list(itertools.chain.from_iterable(plan_stages(plan))))
    loops = table.loops(plan.groups[once].stages, None)
    assert found[1][once] - loops[0] == pytest.approx((found[0][once] - loops[0]) * 0.75)
    assert found[0][:once] == found[1][:once]
    assert found[2][once] == pytest.approx(found[0][once] - 25) and loops[0] < found[3][once] < found[1][once]


def test_each_form_of_a_kernel_has_code_of_its_own() -> None:
    """Compilers copy a function for each form that is a constant: of two calls of other forms each is the only one."""

    def once(*activations: str) -> frozenset[str]:
        sketch = Sketch(0)
        x = image = sketch.value((1, 8, 8, 16))
        for activation in activations:
            x = sketch.conv(x, 16, (1, 1), activation=activation)
        graph = read_tflite("model.tflite", sketch.build([image], [x]))
        context = Context(load_target("cortex-m4"))
        plan = plan_groups(graph, graph, [[op] for op in graph.ops], context, Options("net"))
        assert {group.stages[0].kernel.name for group in plan.groups} == {"tinyfuse_pointwise_s8"}
        return called_once(plan)

    assert once("RELU", "NONE") == {"tinyfuse_pointwise_s8 single_rounding", "tinyfuse_pointwise_s8 lanes"}
    assert once("RELU", "NONE", "RELU") == {"tinyfuse_pointwise_s8 lanes"}


def test_a_table_says_what_a_kernel_takes_that_is_called_once() -> None:
    text = """
        [about]
        [loop]
        factors = {}
        [kernels."conv"]
        factors = {macs = 2.0, calls = 100.0}
        alone = {share = 0.9, calls = -40.5}
        sole = {share = 1, pixels = -2.5}
        """
    assert read_table(text).alone == {"conv": Alone(0.9, {"calls": -40.5})}
    assert read_table(text).sole == {"conv": Alone(1, {"pixels": -2.5})}
    for wrong in ("{calls = 1}", "{share = -1}", '{share = 1, calls = "few"}', "0.9"):
        with pytest.raises(ValueError):  # noqa: PT011 - the first of several checks says so
            read_table(text.replace("{share = 0.9, calls = -40.5}", wrong))


def test_what_is_saved_where_a_kernel_is_called_once() -> None:
    """A share where loops are better, instructions a call where the beginning is; of few samples no more than one figure,
    and one that has nothing to do with the others tells nothing."""
    rng = np.random.default_rng(1)

    def once(count: int, share: float, a_call: float) -> Alone:
        sizes = [{"calls": float(rng.integers(4, 33)), "macs": float(rng.integers(400, 9000))} for _ in range(count)]
        samples = [(100 * each["calls"] + each["macs"], each) for each in sizes]
        found = [(said, each, share * said + a_call * each["calls"]) for said, each in samples]
        return fit_once([(said, each, 3 * took if n == 0 else took) for n, (said, each, took) in enumerate(found)])

    for count in (5, 20):
        assert once(count, 0.9, 0).share == pytest.approx(0.9, abs=0.01) and not once(count, 0.9, 0).more
        alone = once(count, 1.0, -60)
        assert alone.share == 1 and alone.more == {"calls": pytest.approx(-60, abs=2)}
    sizes = [{name: float(rng.integers(4, 400)) for name in ("calls", "pixels", "taps", "macs")} for _ in range(40)]
    saved = [
        (1000 * each["macs"], each, 1000 * each["macs"] - 90 * each["pixels"] - 60 * each["taps"]) for each in sizes
    ]
    more = fit_once(saved).more
    assert {"pixels": more["pixels"], "taps": more["taps"]} == pytest.approx({"pixels": -90, "taps": -60}, abs=1)
    assert all(abs(figure) < 1 for name, figure in more.items() if name not in ("pixels", "taps"))
    alone = once(20, 1.1, -60)
    assert alone.share == pytest.approx(1.1, abs=0.01) and alone.more == {"calls": pytest.approx(-60, abs=2)}


def test_every_target_that_names_a_table_has_one() -> None:
    for target in all_targets().values():
        assert (cost_table(target.cost_table) is None) == (target.cost_table is None)


def test_a_table_that_is_not_there_is_an_error() -> None:
    """An installation without tables would make other plans, silently."""
    assert cost_table(None) is None
    with pytest.raises(ToolMissing, match="targets/costs/cortex-m9.toml was not found: .* install it again"):
        cost_table("cortex-m9")


@pytest.mark.slow
@pytest.mark.emulated
@needs_qemu
@pytest.mark.parametrize("target", ["cortex-m4"])
@pytest.mark.parametrize("optimize", ["speed", "ram"])
def test_predictions_are_what_is_measured(target: str, optimize: str, tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(separable())
    request = Request(str(path), target, kernels="tinyfuse", optimize=optimize, fusion="rows")
    data = profile(request, lambda text: None, ProfileOptions(emulator="qemu", timeout=60))
    assert data["predicted_instructions"] == pytest.approx(data["instructions"], rel=0.1)
    assert data["predicted_cycles"] == pytest.approx(data["estimated_cycles"], rel=0.1)
    assert sum(g["predicted_instructions"] for g in data["groups"]) == pytest.approx(
        data["predicted_instructions"], abs=len(data["groups"])
    )


@pytest.mark.parametrize(("calls", "share"), [(1, 12 / 13), (2, 1.0)])
def test_rows_of_a_last_call_count_as_rows(calls: int, share: float) -> None:
    """A pool that reads 12 of 13 rows: half of the convolution's instructions were predicted (-25 % for a network)."""
    output = SimpleNamespace(shape=(1, 13, 1, 32))
    stage = SimpleNamespace(by_row=True, kernel=SimpleNamespace(rows_a_call=12), op=SimpleNamespace(output=output))
    assert rows_made(cast(Any, stage), {"rows": calls}) == share
