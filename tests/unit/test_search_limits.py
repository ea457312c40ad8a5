"""Limits of every search: `gen` and `report` name each limit that was reached, and no other."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from attention_networks import Blocks
from click.testing import CliRunner
from executors import plan_of
from nchw_networks import classifier
from random_graphs import Sketch
from set_limits import set_limits
from skip_networks import unet
from sliding_models import padded, steps_of_model
from stacked_networks import inverted, residual
from test_arena_parts import network as divided_network
from test_compressed import network as few_weights
from test_operator_order import two_towers
from test_pareto import narrowing
from test_recompute import far_readers

from tinyfuse import limits
from tinyfuse.banks import parse_banks
from tinyfuse.cli.main import main
from tinyfuse.cost.code import estimated_code_bytes
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.limits import Limit, Reached, merge_limits
from tinyfuse.options import Options
from tinyfuse.plan import Plan
from tinyfuse.report.limits import reached_limits
from tinyfuse.report.pareto import pareto_json
from tinyfuse.rewrite import rewrite
from tinyfuse.rewrite.recompute import recomputable
from tinyfuse.rewrite.rematerialize import rematerializations
from tinyfuse.schedule.banks.place_arena import place_ram
from tinyfuse.schedule.pick_step import candidate_steps

EVERY = {name: limit for name, limit in vars(limits).items() if isinstance(limit, Limit)}


def chain(length: int = 5) -> bytes:
    sketch = Sketch(3)
    x = y = sketch.value((1, 12, 8, 8))
    for k in range(length):
        y = sketch.depthwise(y, (3, 3)) if k % 2 else sketch.conv(y, 8, (1, 1))
    return sketch.build([x], [y])


def sums() -> bytes:
    sketch = Sketch(7)
    x, other = y, _ = sketch.value((1, 8, 8, 8)), sketch.value((1, 8, 8, 8))
    for _ in range(5):
        y = sketch.add(y, other)
    return sketch.build([x, other], [y])


def of_a_normalization() -> tuple[Limit, ...]:
    blocks, reached = Blocks(3), Reached()
    x = blocks.sketch.value((1, 12, 8))
    data = blocks.sketch.build([x], [blocks.sketch.add(x, blocks.attention(blocks.normalized(x), 2))])
    assert recomputable(rewrite(read_tflite("model.tflite", data), "rows", "tinyfuse"), reached)
    return reached.found


def of_a_skip() -> tuple[Limit, ...]:
    reached = Reached()
    rematerializations(read_tflite("model.tflite", unet("ADD", 8, 1, (4, 4))), 10**9, reached)
    return reached.found


def of_step_graphs() -> tuple[Limit, ...]:
    reached = Reached()
    candidate_steps(steps_of_model(padded(13), 2), Options("net", optimize="ram"), reached)
    return reached.found


def planned(data: Callable[[], bytes], target: str = "host", **options: object) -> Callable[[], tuple[Limit, ...]]:
    """The limits that planning reaches; with the current limits, planned once for all cases."""

    def reached() -> tuple[Limit, ...]:
        known = (data, target, *options.items(), *(getattr(limits, name) for name in EVERY))
        if known not in _REACHED:
            _REACHED[known] = reached_limits(plan_of(data(), target, **options))
        return _REACHED[known]

    return reached


_REACHED: dict[tuple, tuple[Limit, ...]] = {}


def with_little_flash() -> tuple[Limit, ...]:
    packed = plan_of(few_weights(), "cortex-m4")
    most = int(packed.weight_bytes * 0.9 + 1.25 * estimated_code_bytes(packed))
    return reached_limits(plan_of(few_weights(), "cortex-m4", weights="auto", max_flash=most))


def with_enough_flash() -> tuple[Limit, ...]:
    return reached_limits(plan_of(few_weights(), "cortex-m4", weights="auto", max_flash=1 << 20))


def of_a_plan_that_can_be_divided() -> tuple[Limit, ...]:
    """Skips the first of two sizes, whose plan can't be divided."""
    least = plan_of(divided_network(), "cortex-m4", optimize="ram")
    large = plan_of(divided_network(), "cortex-m4", optimize="speed", fusion="none")
    banks, reached = parse_banks((f"a={least.arena_bytes - 8}", "b=1500")), Reached()

    def fitting(options: Options) -> Plan:
        return least if options.max_ram is not None and options.max_ram <= least.arena_bytes else large

    found = place_ram(fitting, Options("net"), banks, reached)
    assert found.parts
    return reached.found


def divided_at_once() -> tuple[Limit, ...]:
    return reached_limits(plan_of(divided_network(), "cortex-m4", memory=("a=1800", "b=1500")))


def with_weights_copied() -> tuple[Limit, ...]:
    options = {"fusion": "none", "kernels": "tinyfuse"}
    size = plan_of(divided_network(), "cortex-m4", **options).arena_bytes
    return planned(divided_network, "cortex-m4", memory=(f"sram={size}", "qspi=1M:slow"), **options)()


def of_the_front(data: Callable[[], bytes] = narrowing) -> tuple[Limit, ...]:
    reached = Reached()
    pareto_json(plan_of(data(), "cortex-m4"), reached=reached)
    return reached.found


@dataclass(frozen=True)
class Case:
    """A model that reaches a limit of `few`, and one (possibly the same) that doesn't reach the current limit, or one
    of `plenty`."""

    few: int
    reaching: Callable[[], tuple[Limit, ...]]
    not_reaching: Callable[[], tuple[Limit, ...]] | None = None
    plenty: Mapping[str, int] = field(default_factory=dict)


CASES = {
    "GROUP_ROWS": Case(5, planned(chain)),
    "GROUP_LENGTH": Case(2, planned(chain)),
    "PARTITIONS": Case(2, planned(inverted)),
    "PLACED": Case(1, planned(lambda: chain(8)), plenty={"PLACED": 1000}),
    "UPGRADED": Case(0, planned(residual, optimize="ram")),
    "RECOMPUTED": Case(0, planned(far_readers, optimize="ram", feed_rows=True)),
    "RECOMPUTED_TOGETHER": Case(2, of_a_normalization),
    "REMATERIALIZED": Case(0, planned(lambda: unet("ADD", 24, 1, (8, 8, 8), 1), optimize="ram")),
    "REMATERIALIZED_TOGETHER": Case(1, of_a_skip),
    "FRONT": Case(0, of_the_front, lambda: of_the_front(lambda: chain(2))),
    "STEPS": Case(3, of_step_graphs, plenty={"STEPS": 9}),
    "STEP_PAIRS": Case(100, of_step_graphs, plenty={"STEPS": 9, "STEP_PAIRS": 10**6}),
    "STEP_CHOICES": Case(2, planned(lambda: padded(13), slide=2)),
    "ORDERS": Case(0, planned(two_towers, optimize="ram")),
    "ORDER_SETS": Case(1, planned(two_towers, optimize="ram")),
    "ORDER_WAYS": Case(1, planned(two_towers, optimize="ram")),
    "CHAIN": Case(2, planned(inverted, optimize="ram")),
    "TILED_GROUPS": Case(1, planned(inverted, optimize="ram")),
    "PLACEMENT": Case(0, planned(two_towers, "cortex-m4")),
    "BANK_SHARES": Case(5, of_a_plan_that_can_be_divided, divided_at_once),
    "BANK_FILLINGS": Case(0, planned(divided_network, "cortex-m7", memory=("dtcm=1K", "sram=256K"))),
    "COPIES": Case(1, with_weights_copied),
    "FLASH_PRICES": Case(2, with_little_flash, with_enough_flash),
    "COMPRESSED_PRICES": Case(2, with_little_flash, plenty={"COMPRESSED_PRICES": 100}),
    "LOOP": Case(2, planned(sums, "cortex-m4")),
    "TRANSPOSES": Case(0, planned(lambda: classifier(True))),
}


def test_every_limit_is_forced() -> None:
    assert CASES.keys() == EVERY.keys()


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_a_limit_is_named_where_it_is_reached(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = CASES[name]
    with monkeypatch.context() as patch:
        set_limits(patch, **{name: case.few})
        assert getattr(limits, name) in case.reaching()
    set_limits(monkeypatch, **case.plenty)
    assert getattr(limits, name) not in (case.not_reaching or case.reaching)()


@pytest.mark.parametrize("command", ["gen", "report", "explain"])
def test_commands_say_it_or_nothing(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """JSON of all, and the text of explain alone."""
    monkeypatch.chdir(tmp_path)
    Path("m.tflite").write_bytes(chain())

    def said(*words: str) -> str:
        done = CliRunner().invoke(main, [command, "m.tflite", "--target", "generic32", *words])
        assert done.exit_code == 0, done.output
        return done.stdout

    assert json.loads(said("--json"))["limits"] == [] and "searches that stopped at a limit" not in said()
    set_limits(monkeypatch, GROUP_LENGTH=2, PARTITIONS=2)
    found = [{"search": "groups", "most": 2, "of": limits.GROUP_LENGTH.of}]
    assert json.loads(said("--json"))["limits"] == found
    if command != "explain":
        assert "searches that stopped at a limit" not in said()
        return
    _, after = said().split("searches that stopped at a limit; a better plan may exist\n")
    assert after.splitlines()[0].split(maxsplit=2) == ["groups", "2", limits.GROUP_LENGTH.of]


def test_what_runs_a_graph_says_what_was_reached_for_it() -> None:
    outer, inner = plan_of(chain()), plan_of(chain(3))
    assert reached_limits(outer) == ()
    vars(outer)["subplans"] = {1: replace(inner, limits=(limits.GROUP_ROWS,))}
    assert reached_limits(outer) == (limits.GROUP_ROWS,)


def test_a_limit_is_told_once() -> None:
    reached = Reached()
    reached.note(limits.FRONT, limits.CHAIN, limits.FRONT)
    assert reached.found == (limits.FRONT, limits.CHAIN) == merge_limits(reached.found, [limits.CHAIN])
