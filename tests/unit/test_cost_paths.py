"""Selects a layer's entry in a cost table, which depends on the code that gathers its windows, and the counts that are
fitted for it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from compressed_cases import few_values
from plan_parts import plan_groups
from random_graphs import Sketch
from scripts import scripts_of

from tinyfuse.cost import cost_table
from tinyfuse.cost.fit import fit_once
from tinyfuse.cost.predict import called_once, group_stream, plan_stages
from tinyfuse.cost.table import Alone, entry_name, is_once, is_sole, loop_features, rows_made
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.ir import Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import Kernel
from tinyfuse.kernels.layers.common.column_blocks import ColumnBlocks
from tinyfuse.kernels.layers.common.taps import LISTS_OF_TAPS
from tinyfuse.kernels.layers.int4.conv_dsp import Int4ConvRow
from tinyfuse.kernels.layers.int8_dsp.conv import AT_BORDERS, ConvRow, PackedConvRow
from tinyfuse.kernels.layers.int8_dsp.depthwise import PackedDepthwiseRow
from tinyfuse.kernels.layers.int8_dsp.int16_weights import Int16WeightsConvRow
from tinyfuse.kernels.layers.int8_helium.conv_2x4 import COPIED_WINDOWS, MveConvRow, MveDepthwiseRow
from tinyfuse.kernels.layers.palettized.dsp import PalettizedConvRow
from tinyfuse.kernels.registry import kernels_for
from tinyfuse.ops.elementwise.table import Table
from tinyfuse.ops.layers.looked_up import looked_up
from tinyfuse.options import Options
from tinyfuse.schedule.kernel_choice.stages import stage_of
from tinyfuse.targets import load_target

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
CONTEXT = Context(load_target("cortex-m4"))


def convolution(channels: int, kernel: tuple[int, int], filters: int = 6) -> Op:
    sketch = Sketch(0)
    image = sketch.value((1, 8, 8, channels))
    output = sketch.conv(image, filters, kernel, activation="RELU")
    return read_tflite("model.tflite", sketch.build([image], [output])).ops[0]


#: whole words; few enough bytes for code of its own, of one channel too; more
KINDS = {
    (4, (3, 3)): "",
    (3, (3, 3)): "its own",
    (1, (5, 5)): "its own",
    (15, (1, 1)): "its own",
    (5, (5, 5)): "odd rows",
}


@pytest.mark.parametrize("shape", KINDS)
def test_windows_have_entries_by_the_code_that_gathers_them(shape: tuple[int, tuple[int, int]]) -> None:
    op, kind = convolution(*shape), KINDS[shape]
    for kernel in (PackedConvRow(), Int16WeightsConvRow()):
        path, code = kernel.path(op, True, CONTEXT), kernel.code_path(op, True, CONTEXT)
        assert path.partition("of ")[2].endswith(kind) if kind else "odd" not in path and "own" not in path
        assert kernel.own_code(op) == code.endswith("of its own") == (kind == "its own")
        assert "odd" not in code  # a call's code is the same
    for kernel in (PalettizedConvRow(), Int4ConvRow()):  # whose rows have one C function, however short they are
        assert not kernel.own_code(op)
    compressed = replace(CONTEXT, weights="compressed")
    if PalettizedConvRow().accepts(op, compressed):
        assert PalettizedConvRow().path(op, True, compressed).endswith(" of odd rows") == (op.input.shape[3] % 4 != 0)


def with_table(op: Op) -> tuple[Op, Kernel]:
    """A convolution with a fused lookup table, and the kernel for both."""
    rng = np.random.default_rng(3)
    results = rng.integers(-128, 128, 256).astype(np.int8)
    found = looked_up(op, Op("TABLE", (op.output,), (op.output,), Table(())), results)
    return found, next(kernel for kernel in kernels_for(found) if kernel.by_row and kernel.accepts(found, CONTEXT))


@pytest.mark.parametrize("shape", KINDS)
def test_convolutions_with_tables_cost_as_those_without(shape: tuple[int, tuple[int, int]]) -> None:
    op, kernel = with_table(convolution(*shape))
    entry, table = entry_name(op, kernel, True, CONTEXT), cost_table("cortex-m4")
    assert entry.startswith("tinyfuse_conv_packed_row_s8 ") and entry.endswith(KINDS[shape])
    assert table is not None and {entry, kernel.costs_with} <= table.kernels.keys()
    copy = kernel.copy_of_code(op, CONTEXT)
    assert copy == AT_BORDERS if kernel.own_code(op) else copy.startswith(f"{kernel.name} ")  # a form's


def test_what_costs_with_another_entry_has_its_single_calls_there() -> None:
    """The kernel shares the cost entry of another kernel, but has its own C function."""
    kernel, table, context = PalettizedConvRow(), cost_table("cortex-m4"), replace(CONTEXT, weights="compressed")
    op = few_values(convolution(8, (3, 3)), 4, np.random.default_rng(1), each=False)
    assert table is not None
    stage, once = replace(stage_of(op, True, context), kernel=kernel), {kernel.copy_of_code(op, context)}
    entry = entry_name(op, kernel, True, context)
    shares = {
        name: replace(table, alone={name: Alone(0.8)}).share(stage, context, once)
        for name in (entry, "tinyfuse_expand_palette")
    }
    assert shares == {entry: 1.0, "tinyfuse_expand_palette": 0.8}


def test_an_entry_is_fitted_to_blocks_of_its_own_size() -> None:
    with scripts_of(BENCHMARKS):
        from cost_fits import _of_path

    op = convolution(8, (3, 3))
    for pixels in (1, 2, 3):
        counts = _of_path(f"tinyfuse_conv_packed_row_s8 lanes, blocks of {pixels}", PackedConvRow().counts(op, True))
        assert {name[:5] for name in counts if name.startswith("by_")} == {f"by_{pixels}_"}
        assert not counts.keys() & {"blocks", "two_pairs"} and counts["pixels"] == 64
    assert counts["by_3_threes"] == 16 and counts["by_3_twos"] == 8
    plain = {"blocks": 3.0, "macs": 9.0}
    assert _of_path("tinyfuse_dense_s8 blocks of 2", plain) == plain


def test_counts_of_values_tell_nothing_of_single_calls() -> None:
    """SOFTMAX depends on its inputs: deviations from the mean number of exps would be attributed to single calls."""
    samples = [(1000.0 + 50 * n, {"calls": 1.0, "exps": float(n)}, 1000.0 + 20 * n) for n in range(30)]
    assert "exps" not in fit_once(samples).more
    assert (
        "terms" in fit_once([(said, {"calls": 1.0, "terms": each["exps"]}, took) for said, each, took in samples]).more
    )


def test_a_first_layer_may_be_all_that_has_windows_at_borders() -> None:
    """Other layers share this code too, unless they read whole words and the compiler drops it."""

    def once(*channels: int) -> bool:
        sketch = Sketch(0)
        x = image = sketch.value((1, 8, 8, 3))
        for count in channels:
            x = sketch.conv(x, count, (3, 3), activation="RELU")
        graph = read_tflite("model.tflite", sketch.build([image], [x]))
        plan = plan_groups(graph, graph, [[op] for op in graph.ops], CONTEXT, Options("net"))
        stage = plan.groups[0].stages[0]
        assert stage.kernel.own_code(stage.op)
        return is_once(stage, CONTEXT, called_once(plan))

    assert once(8)
    assert not once(8, 8) and not once(8, 8, 8) and not once(7, 8) and not once(5, 8)


def test_kernels_that_share_code_are_not_called_once() -> None:
    """On Helium both depthwise kernels list taps by one shared function."""
    context, op = Context(load_target("cortex-m55")), convolution(16, (3, 3))
    assert PackedDepthwiseRow().copy_of_code(op, context) == LISTS_OF_TAPS
    assert MveDepthwiseRow().calls_too(op) == (MveDepthwiseRow().windows_by(op, context),) == (LISTS_OF_TAPS,)
    assert MveConvRow().calls_too(op) == (MveConvRow().windows_by(op, context),) == (COPIED_WINDOWS,)
    assert MveConvRow().copy_of_code(op, context).startswith(f"{MveConvRow.name} ")  # a form's


def test_pools_are_inlined_into_each_call() -> None:
    """A pool among few is as cheap as one alone: 138 % too many instructions were predicted on Cortex-M55."""
    sketch = Sketch(0)
    image = sketch.value((1, 8, 8, 4))
    pool = sketch.pool(image, "MAX_POOL_2D", (2, 2), (2, 2))
    graph = read_tflite("model.tflite", sketch.build([image], [pool]))
    plan = plan_groups(graph, graph, [[op] for op in graph.ops], CONTEXT, Options("net"))
    assert not is_once(plan.groups[0].stages[0], CONTEXT, called_once(plan))


def test_a_layer_may_be_all_that_gathers_windows() -> None:
    """Each form of a convolution has code of its own, and both call what gathers windows at borders, of words and of
    odd rows; a first layer whose rows are short has it all for itself."""

    def sole(*channels: int) -> list[bool]:
        sketch = Sketch(0)
        x = image = sketch.value((1, 8, 8, channels[0]))
        for count, activation in zip(channels[1:], ("RELU6", "NONE"), strict=False):
            x = sketch.conv(x, count, (3, 3), activation=activation)
        graph = read_tflite("model.tflite", sketch.build([image], [x]))
        plan = plan_groups(graph, graph, [[op] for op in graph.ops], CONTEXT, Options("net"))
        stages, once = [group.stages[0] for group in plan.groups], called_once(plan)
        assert len({stage.kernel.copy_of_code(stage.op, CONTEXT) for stage in stages}) == len(stages)
        return [is_sole(stage, CONTEXT, once) for stage in stages]

    assert sole(16, 16) == [True] and sole(22, 16) == [True]
    assert sole(3, 8, 8) == [False, True]  # of short rows all windows are the layer's own
    assert sole(16, 16, 16) == [False, False] and sole(16, 22, 16) == [False, False]


def test_single_calls_of_columns_know_no_row() -> None:
    """Regression: a Conv1D layer along a column, whose calls compute rows of different lengths, was predicted to save as
    much as one along a row: 20 % of its instructions instead of 1 %."""

    def counts(kernel: Kernel, size: tuple[int, int], window: tuple[int, int]) -> dict[str, float]:
        sketch = Sketch(0)
        image = sketch.value((1, *size, 6))
        graph = read_tflite("model.tflite", sketch.build([image], [sketch.conv(image, 8, window)]))
        return {name: count for name, count in kernel.counts(graph.ops[0], True).items() if name.startswith("known_")}

    along_row = counts(PackedConvRow(), (1, 64), (1, 3))
    assert along_row["known_pixels"] == 64 and along_row["known_border_pixel_rows"] == 2
    along_column = counts(ColumnBlocks(PackedConvRow()), (64, 1), (3, 1))
    assert along_column.keys() == along_row.keys() and not any(along_column.values())


def test_depthwise_forms_share_what_single_calls_save() -> None:
    with scripts_of(BENCHMARKS):
        from cost_fits import _windows

    kernel = PackedDepthwiseRow.name
    assert {_windows(f"{kernel} {form}") for form in ("single_rounding", "own_shifts", "bounded", "shifted")} == {
        kernel
    }


def test_what_is_saved_with_windows_is_of_every_form_and_block() -> None:
    """Forms and blocks gather windows by the same code: samples of all of them tell what single calls take, those that
    are all that calls it apart."""
    with scripts_of(BENCHMARKS):
        from cost_fits import Figures, Sample, called_once_fits

    entries = ["tinyfuse_conv_packed_row_s8 " + form for form in ("lanes, blocks of 2", "single_rounding, blocks of 3")]
    rng, by_entry = np.random.default_rng(1), {entry: [] for entry in entries}
    for number in range(60):
        counts = {"pixels": float(rng.integers(20, 200)), "border_taps": float(rng.integers(5, 80))}
        terms = float(rng.integers(20_000, 200_000))
        saved = 50 * counts["pixels"] + 30 * counts["border_taps"] * (number % 4 > 1)
        by_entry[entries[number % 2]].append(
            Sample(
                "CONV_2D",
                PackedConvRow(),
                entries[number % 2],
                counts | {"terms": terms},
                {},
                Figures(round(terms - saved)),
                Figures(),
                alone=True,
                windows=True,
                sole=number % 4 > 1,
            )
        )
    alone, sole = called_once_fits(by_entry, {entry: {"terms": 1.0} for entry in entries}, {})
    for entry in entries:
        assert alone[entry].more == {"pixels": pytest.approx(-50, abs=1)}
        assert sole[entry].more == {"pixels": pytest.approx(-50, abs=1), "border_taps": pytest.approx(-30, abs=1)}


def test_a_pass_that_no_sample_had_takes_what_it_does_in_other_forms() -> None:
    """No layer in lanes that was drawn had a clamp, and one that had was predicted to take nothing for it."""
    with scripts_of(BENCHMARKS):
        from cost_fits import Figures, Sample, fit_all

    samples = [
        Sample(
            "CONV_2D", PackedConvRow(), f"tinyfuse_conv_packed_row_s8 {form}",
            {"outputs": float(outputs), "clamped_outputs": float(outputs * clamped)}, {"groups": 1},
            Figures(outputs * (20 + 10 * clamped) + 5), Figures(5),
        )
        for form, clamps in (("lanes, blocks of 2", (0,)), ("single_rounding, blocks of 2", (0, 1)))
        for clamped in clamps for outputs in (300, 500, 800, 1300)
    ]  # fmt: skip
    found = fit_all(samples, [("CONV_2D", PackedConvRow.name)]).kernels
    lanes, line = (
        found[f"tinyfuse_conv_packed_row_s8 {form}, blocks of 2"]["instructions"]
        for form in ("lanes", "single_rounding")
    )
    assert lanes.factors["clamped_outputs"] == line.factors["clamped_outputs"] == pytest.approx(10, abs=0.5)


def test_rows_that_nobody_reads_take_nothing() -> None:
    """A pool of two rows leaves the last one of five out, which the layer before it then doesn't make."""
    sketch = Sketch(0)
    image = sketch.value((1, 5, 4, 16))
    pooled = sketch.pool(sketch.conv(image, 24, (3, 3)), "MAX_POOL_2D", (2, 2), (2, 2))
    graph = read_tflite("model.tflite", sketch.build([image], [pooled]))
    plan = plan_groups(graph, graph, [list(graph.ops)], CONTEXT, Options("net"))
    (group,) = plan.groups
    loops = loop_features(group.stages, group_stream(plan, group))
    assert [rows_made(*each) for each in zip(group.stages, loops, strict=True)] == [0.8, 1.0]
    alone = plan_groups(graph, graph, [[op] for op in graph.ops], CONTEXT, Options("net"))
    together, apart = (sum(map(sum, plan_stages(each))) for each in (plan, alone))
    assert together < 0.85 * apart


def test_general_convolutions_of_one_channel_divide_nothing() -> None:
    """Regression: convolutions with one output channel were predicted 9 to 37 % too high, those with few terms a tap up
    to 12 % too low."""
    for channels, out, several, short in ((8, 1, 0, False), (8, 5, 320, False), (3, 1, 0, True), (4, 5, 320, True)):
        counts = ConvRow().counts(convolution(channels, (3, 3), out), True)
        assert counts["several_outputs"] == several
        assert counts["short_macs"] == counts["inner_macs"] * short
