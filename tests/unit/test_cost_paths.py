"""Which entry of a cost table a layer has, by the code that gathers its windows; and which counts are fitted to it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from random_graphs import Sketch
from scripts import scripts_of

from tinyfuse.compiler import plan_groups
from tinyfuse.cost import cost_table
from tinyfuse.cost.fit import fit_once
from tinyfuse.cost.predict import called_once, group_stream, plan_stages
from tinyfuse.cost.table import Alone, entry_name, is_once, loop_features, rows_made
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.ir import Op
from tinyfuse.kernels.base import Context, Kernel
from tinyfuse.kernels.compressed import CompressedConvRow
from tinyfuse.kernels.conv import AT_BORDERS, PackedConvRow
from tinyfuse.kernels.depthwise import LISTS_OF_TAPS, PackedDepthwiseRow
from tinyfuse.kernels.int4 import Int4ConvRow
from tinyfuse.kernels.mve import COPIED_WINDOWS, MveConvRow, MveDepthwiseRow, MveRunsConvRow
from tinyfuse.kernels.registry import kernels_for, kernels_of
from tinyfuse.kernels.unpacked import UnpackedConvRow
from tinyfuse.ops.looked_up import looked_up
from tinyfuse.ops.table import Table
from tinyfuse.options import Options
from tinyfuse.schedule.lower import stage_of
from tinyfuse.targets import load_target

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
CONTEXT = Context(load_target("cortex-m4"))


def convolution(channels: int, kernel: tuple[int, int]) -> Op:
    sketch = Sketch(0)
    image = sketch.value((1, 8, 8, channels))
    return read_tflite("model.tflite", sketch.build([image], [sketch.conv(image, 6, kernel, activation="RELU")])).ops[0]


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
    for kernel in (PackedConvRow(), UnpackedConvRow()):
        path, code = kernel.path(op, True, CONTEXT), kernel.code_path(op, True, CONTEXT)
        assert path.partition("of ")[2].endswith(kind) if kind else "odd" not in path and "own" not in path
        assert kernel.own_code(op) == code.endswith("of its own") == (kind == "its own")
        assert "odd" not in code  # a call's code is the same
    for kernel in (CompressedConvRow(), Int4ConvRow()):  # whose rows have one C function, however short they are
        assert not kernel.own_code(op)
    compressed = replace(CONTEXT, weights="compressed")
    if CompressedConvRow().accepts(op, compressed):
        assert CompressedConvRow().path(op, True, compressed).endswith(" of odd rows") == (op.input.shape[3] % 4 != 0)


def with_table(op: Op) -> tuple[Op, Kernel]:
    """A convolution with a table of its outputs, and the kernel of both."""
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
    """Its C function is another one than that of the kernel that it costs as."""
    kernel = next(each for each in kernels_of("CONV_2D") if each.costs_with == "tinyfuse_look_up")
    op, table = convolution(8, (3, 3)), cost_table("cortex-m4")
    assert table is not None
    stage, once = replace(stage_of(op, True, CONTEXT), kernel=kernel), {kernel.copy_of_code(op, CONTEXT)}
    entry = entry_name(op, kernel, True, CONTEXT)
    shares = {
        name: replace(table, alone={name: Alone(0.8)}).share(stage, CONTEXT, once)
        for name in (entry, "tinyfuse_look_up")
    }
    assert shares == {entry: 1.0, "tinyfuse_look_up": 0.8}


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
    """What a SOFTMAX takes beside its exps would be what these inputs have more or less of them than the mean."""
    samples = [(1000.0 + 50 * n, {"calls": 1.0, "exps": float(n)}, 1000.0 + 20 * n) for n in range(30)]
    assert "exps" not in fit_once(samples).more
    assert (
        "terms" in fit_once([(said, {"calls": 1.0, "terms": each["exps"]}, took) for said, each, took in samples]).more
    )


def test_a_first_layer_may_be_all_that_has_windows_at_borders() -> None:
    """What other layers share calls that code too: one of whole words leaves it out, after compilers have decided."""

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
    """With Helium both kernels of depthwise layers list taps by one function, and runs have windows copied as another
    kernel has them copied."""
    context, op = Context(load_target("cortex-m55")), convolution(16, (3, 3))
    assert {kernel.copy_of_code(op, context) for kernel in (MveDepthwiseRow(), PackedDepthwiseRow())} == {LISTS_OF_TAPS}
    assert MveConvRow().copy_of_code(op, context) == MveRunsConvRow().calls_too(op) == COPIED_WINDOWS


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
