"""Predicted cycles: boards, tables, and the choices of --count cycles. test_cost.py compares predictions with
`profile`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from random_graphs import Sketch
from test_emulation import needs_qemu
from test_rewrites import graph_of

import tinyfuse
from tinyfuse.api.settings import make_options
from tinyfuse.board_timing import BoardTiming, find_timing
from tinyfuse.cli.profile import profile
from tinyfuse.cli.request import Request
from tinyfuse.compiler import compile_graph
from tinyfuse.cost.cycles import predicted_cycles, predicted_ms
from tinyfuse.cost.predict import plan_instructions, predicted_total
from tinyfuse.cost.table import board_table, cycle_rates, instructions_table
from tinyfuse.errors import UsageError
from tinyfuse.options import OPTIMIZE, Options, ProfileOptions
from tinyfuse.profile.cycles import core
from tinyfuse.schedule.pick_by_cycles import pick_fewer_cycles
from tinyfuse.schedule.plans.pick_plan import MAX_SLOWDOWN
from tinyfuse.targets import all_targets, load_target

M4 = load_target("cortex-m4")
L4R5 = "nucleo-l4r5zi"
SLOW_FLASH = "100MHz,wait=8,line=4,reads=2"


def mixed(channels: int = 32) -> bytes:
    """A network of a wide convolution with many weights, and depthwise and pointwise ones."""
    sketch = Sketch(7)
    x = sketch.value((1, 16, 12, 8))
    y = sketch.conv(x, channels, (3, 3), activation="RELU")
    y = sketch.conv(sketch.depthwise(y, (3, 3), activation="RELU"), channels, (1, 1), activation="RELU")
    y = sketch.conv(y, channels, (3, 3), activation="RELU")
    y = sketch.pool(y, "AVERAGE_POOL_2D", y.shape[1:3], (1, 1))
    return sketch.build([x], [sketch.softmax(sketch.fully_connected(y, 10))])


def pointwise(channels: int, layers: int = 1) -> bytes:
    sketch = Sketch(7)
    x = image = sketch.value((1, 12, 12, channels))
    for _ in range(layers):
        x = sketch.conv(x, channels, (1, 1), activation="RELU")
    return sketch.build([image], [x])


def read_by_two() -> bytes:
    sketch = Sketch(9)
    x = sketch.value((1, 9, 7, 16))
    y = sketch.depthwise(x, (3, 3), activation="RELU")
    return sketch.build([x], [sketch.add(sketch.conv(y, 16, (1, 1)), sketch.conv(y, 16, (3, 3)))])


# --- boards --------------------------------------------------------------------------------------


def test_a_board_is_named_or_described() -> None:
    assert find_timing(None, M4.boards) == BoardTiming()
    assert find_timing(" Nucleo-L4R5ZI ", M4.boards) is M4.boards[0]
    found = find_timing("64.5 mhz,line=16,wait=3,reads=1.5,fetch=1.25", ())
    assert (found.mhz, found.wait_states, found.line, found.reads, found.fetch) == (64.5, 3, 16, 1.5, 1.25)
    assert found.cycles(1000, 32) == pytest.approx(1250 + 32 * 1.5 * 3 / 16)
    assert found.milliseconds(64_500) == 1 and found.milliseconds(None) is None
    assert find_timing("120MHz", ()).flash_byte == 0


@pytest.mark.parametrize(
    "text, message",
    [
        ("l4r5", "the target has nucleo-l4r5zi; or write a clock"),
        ("", "or write a clock"),
        ("120", "or write a clock"),
        ("0.0MHz", "a clock of 0 MHz never ends"),
        ("120MHz,wait=5", "how many bytes come after these wait states"),
        ("120MHz,wait=-1,line=8", "wait is a number from 0 to 100"),
        ("120MHz,wait=101,line=8", "wait is a number from 0 to 100"),
        ("120MHz,wait=5,line=0", "line is a number from 1 to 256"),
        ("120MHz,fetch=0.5", "fetch is a number from 1 to 99"),
        ("120MHz,fetch=nan", "fetch is a number"),
        ("120MHz,ways=2", "ways is not one of wait, line, reads, fetch"),
        ("120MHz,line=8,line=8", "line is not one of wait, line, reads, fetch, each once"),
        ("120MHz,", "is not one of wait, line, reads, fetch|or write a clock"),
        ("\N{FULLWIDTH DIGIT ONE}20MHz\n", "or write a clock"),
    ],
)
def test_another_text_is_no_board(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        find_timing(text, M4.boards)
    with pytest.raises(UsageError, match="--timing"):
        tinyfuse.compile(mixed(8), "cortex-m4", timing=text)


def test_a_core_without_a_table_has_no_cycles_to_count() -> None:
    for target in ("host", "cortex-m55+nomve"):
        assert predicted_cycles(compile_graph(graph_of(mixed(8)), load_target(target), Options("net"))) is None
        with pytest.raises(
            UsageError, match=f"--count cycles: {target.replace('+', '.')} has no table .*take one of cortex-m"
        ):
            tinyfuse.estimate(mixed(8), target, count="cycles")


@pytest.mark.parametrize(
    "target, options, count",
    [
        ("cortex-m4", {"optimize": "speed"}, "instructions"),
        ("cortex-m4", {"timing": L4R5}, "cycles"),
        ("cortex-m4", {"timing": "120MHz", "count": "instructions"}, "instructions"),
        ("cortex-m7", {"optimize": "speed"}, "cycles"),
        ("cortex-m7", {}, "instructions"),
        ("cortex-m55+nomve", {"timing": "120MHz"}, "instructions"),
    ],
)
def test_cycles_count_by_default_where_they_are_known(target: str, options: dict[str, str], count: str) -> None:
    assert make_options(options, "net", load_target(target)).count == count


# --- tables --------------------------------------------------------------------------------------


def test_every_core_has_rates_of_its_kernels() -> None:
    for name, target in all_targets().items():
        table, rates = instructions_table(target), cycle_rates(target.cycle_table)
        assert target.cycle_table is not None or target.cpu is None or "+" in name, name
        assert rates is None or (table is not None and core(target.cpu) is not None), name
        if table is not None and rates is not None:
            assert min(rates.kernels.values()) >= 0.4 and max(rates.kernels.values()) < 8, name
            assert rates.kernels.keys() <= table.kernels.keys(), name


def test_a_boards_table_adds_its_waits() -> None:
    core, rates, board = instructions_table(M4), cycle_rates("cortex-m4"), find_timing(SLOW_FLASH, ())
    table = board_table(M4, board)
    assert core is not None and table is not None and board_table(load_target("host"), board) is None
    entry = "tinyfuse_pointwise_s8 single_rounding, blocks of 2"
    for feature, factor in table.kernels[entry].items():
        instructions, loaded = (each[entry].get(feature, 0) for each in (core.kernels, core.flash))
        assert factor == pytest.approx(rates.kernels[entry] * instructions + 4 * loaded)


# --- choice --------------------------------------------------------------------------------------


@pytest.mark.parametrize("board", [None, L4R5, SLOW_FLASH])
def test_counting_cycles_takes_no_more_of_them_than_counting_instructions(board: str | None) -> None:
    for data in (mixed(), pointwise(24), read_by_two()):
        graph = graph_of(data)
        options = Options("net", optimize="speed", weights="auto", timing=board)
        by_instructions = compile_graph(graph, M4, options)
        by_cycles = compile_graph(graph, M4, replace(options, count="cycles"))
        there = replace(options, timing=board or L4R5)  # without a board, the target's first one is meant
        assert predicted_cycles(replace(by_cycles, options=there)) <= predicted_cycles(
            replace(by_instructions, options=there)
        )


def test_without_a_board_weights_are_taken_to_wait_in_flash() -> None:
    """Weights of int16 of a fully connected layer are read once: they spare 2 % of the core's cycles, for twice the
    bytes."""
    sketch = Sketch(5)
    x = sketch.value((1, 256))
    data = sketch.build([x], [sketch.fully_connected(x, 64)])

    def weights(**options: str) -> set[str]:
        module = tinyfuse.compile(data, "cortex-m4", optimize="speed", **options)
        return {stage.kernel.weights for group in module.plan.groups for stage in group.stages}

    assert weights() == {"unpacked"}
    assert weights(count="cycles") == weights(count="cycles", timing=L4R5) == {"packed"}
    told = "optimize speed, count cycles{}\n"
    for timing_, words in ((None, f" as on {L4R5}"), (L4R5, ""), ("120MHz", "")):
        module = tinyfuse.compile(data, "cortex-m4", optimize="speed", count="cycles", timing=timing_)
        assert told.format(words) in module.report_text()


def test_slow_flash_changes_the_choice() -> None:
    """Weights that take twice the flash have fewer instructions, and wait longer."""
    graph = graph_of(pointwise(64, 2))  # what choices count, predictions count too where no kernel is called once
    options = Options("net", optimize="speed", weights="auto", timing=SLOW_FLASH)
    by_instructions = compile_graph(graph, M4, options)
    by_cycles = compile_graph(graph, M4, replace(options, count="cycles"))
    assert predicted_cycles(by_cycles) < predicted_cycles(by_instructions)
    assert predicted_total(by_cycles) > predicted_total(by_instructions)
    assert by_cycles.weight_bytes < by_instructions.weight_bytes
    assert round(plan_instructions(by_cycles)) == predicted_cycles(by_cycles)
    assert predicted_ms(by_cycles) == round(predicted_cycles(by_cycles) / 100_000, 3)


def test_what_instructions_find_is_taken_where_it_has_fewer_cycles() -> None:
    graph = graph_of(pointwise(64))
    options = Options("net", optimize="speed", weights="auto", count="cycles", timing=SLOW_FLASH)
    slow = compile_graph(graph, M4, replace(options, count="instructions"))
    fast = compile_graph(graph, M4, options)
    assert pick_fewer_cycles(fast, slow) is fast
    found = pick_fewer_cycles(replace(slow, options=options, context=fast.context), fast)
    assert found.options == options and predicted_cycles(found) == predicted_cycles(fast)
    # with `balanced`, and within a limit, it may take no more RAM
    for changed in (replace(options, optimize="balanced"), replace(options, max_ram=slow.ram_bytes)):
        other = replace(slow, options=changed, context=fast.context)
        larger = replace(fast, placement=replace(fast.placement, arena_bytes=slow.arena_bytes + 16))
        assert pick_fewer_cycles(other, larger) is other


def test_each_way_to_optimize_keeps_its_promise_in_cycles() -> None:
    graph = graph_of(mixed())
    plans = {o: compile_graph(graph, M4, Options("net", optimize=o, count="cycles", timing=L4R5)) for o in OPTIMIZE}
    fast, balanced, small = (plans[o] for o in OPTIMIZE)
    assert small.arena_bytes <= balanced.arena_bytes <= fast.arena_bytes
    assert plan_instructions(fast) <= plan_instructions(balanced) + 1
    # `speed` may take weights that `balanced` doesn't
    packed = compile_graph(graph, M4, replace(fast.options, weights="packed"))
    assert plan_instructions(balanced) <= plan_instructions(packed) * (1 + MAX_SLOWDOWN) + 1


def test_limits_hold_and_other_options_change_nothing() -> None:
    graph = graph_of(mixed())
    plain = compile_graph(graph, M4, Options("net"))
    timed = compile_graph(graph, M4, Options("net", timing=L4R5))
    assert plain.arena_bytes == timed.arena_bytes
    assert [[(str(stage.op), stage.kernel.name) for stage in group.stages] for group in plain.groups] == [
        [(str(stage.op), stage.kernel.name) for stage in group.stages] for group in timed.groups
    ]
    fast = Options("net", optimize="speed", count="cycles", timing=SLOW_FLASH)
    limited = compile_graph(graph, M4, replace(fast, max_ram=plain.ram_bytes))
    assert limited.ram_bytes <= plain.ram_bytes
    for fusion in ("none", "basic"):
        plan = compile_graph(graph, M4, replace(fast, fusion=fusion))
        assert predicted_cycles(plan) is not None


def test_results_and_reports_tell_estimated_cycles() -> None:
    module = tinyfuse.compile(mixed(16), "cortex-m4", count="cycles", timing=L4R5)
    data = module.report()
    assert data["predicted_cycles"] == module.predicted_cycles and data["predicted_ms"] == module.predicted_ms
    assert module.predicted_ms == round(module.predicted_cycles / 120_000, 3)
    assert sum(g.predicted_cycles for g in module.groups) == pytest.approx(
        module.predicted_cycles, abs=len(module.groups)
    )
    told = f"{module.predicted_cycles:,} per inference, estimated on {L4R5}, {module.predicted_ms:,} ms at 120 MHz"
    text = module.report_text()
    assert told in " ".join(text.split())
    assert "optimize balanced, count cycles\n" in text
    estimate_mark = tinyfuse.estimate(mixed(16), "cortex-m4", count="cycles", timing=L4R5)
    assert (
        estimate_mark.predicted_cycles == pytest.approx(module.predicted_cycles, rel=0.05)
        and estimate_mark.predicted_ms is not None
    )
    plain = tinyfuse.compile(mixed(16), "cortex-m4")
    assert "estimated on" not in plain.report_text() and plain.report()["timing"] is plain.predicted_ms is None


# --- against profile -----------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.emulated
@needs_qemu
@pytest.mark.parametrize("target", ["cortex-m55"])
def test_predicted_cycles_are_what_profile_estimates(target: str, tmp_path: Path) -> None:
    path, board = tmp_path / "model.tflite", "100MHz,wait=4,line=8"
    path.write_bytes(mixed(12))
    given = {"kernels": "tinyfuse", "fusion": "none", "optimize": "speed", "count": "cycles", "timing": board}
    request = Request(str(path), target, **given)
    data = profile(request, lambda text: None, ProfileOptions(emulator="qemu", timeout=60))
    assert data["predicted_cycles"] == pytest.approx(data["estimated_cycles"], rel=0.06)
    assert data["estimated_ms"] == pytest.approx(data["estimated_cycles"] / 100_000, abs=0.001)
