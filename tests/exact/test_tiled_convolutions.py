"""Convolutions in tiles of rows and columns: random chains of them, in tiles of random shapes."""

from __future__ import annotations

import pytest
from core_rotation import share_of_core
from executors import assert_all_exact
from hypothesis import strategies as st
from plan_parts import prepare
from random_graphs import Sketch
from test_op_kernels import drawn, target_or_skip
from tiled_networks import shapes_of_tiles, tiled_networks, tiled_plan

from tinyfuse.frontend.reader import read_tflite
from tinyfuse.ops.layers.tiled import tiled
from tinyfuse.options import Options
from tinyfuse.schedule.kernel_choice.select import row_kernel
from tinyfuse.targets import load_target

_CASES = st.tuples(tiled_networks(), shapes_of_tiles(), st.booleans())


def exact_modules(target: str, cases: list) -> int:
    """Checks all networks in one program; returns how many of them have tiles."""
    plans = [tiled_plan(data, target, shapes, together) for data, shapes, together in cases]
    assert_all_exact(plans, runs=3)
    return sum(any(op.kind == "TILED" for op in plan.graph.ops) for plan in plans)


@pytest.mark.parametrize("target", ["host", "cortex-m4", "cortex-m55"])
def test_tiles_are_exact(target: str, pytestconfig: pytest.Config) -> None:
    target_or_skip(target)
    cases = share_of_core(target, [case for case, _ in drawn(_CASES, 12)], pytestconfig)
    assert exact_modules(target, cases) >= len(cases) // 2


def test_a_layer_alone_in_tiles_writes_while_it_reads() -> None:
    """Regression: such a layer was assumed to read its tile before writing, as the last one of several does. In a stack
    of rings its output row overlapped the row that it read."""
    sketch = Sketch(5)
    x = sketch.value((1, 9, 8, 8))
    data = sketch.build([x], [sketch.conv(sketch.depthwise(sketch.conv(x, 24, (1, 1)), (3, 3)), 8, (3, 3))])
    graph, context = prepare(read_tflite("m.tflite", data), load_target("cortex-m4"), Options("net", optimize="ram"))
    for chain, buffered in (((graph.ops[2],), False), (graph.ops[:2], True)):
        op = tiled(tuple(chain), 1, 8)
        kernel = row_kernel(op, context, True)
        assert kernel is not None
        (access_order,) = kernel.access_orders(op).values()
        assert access_order.buffered == buffered


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("target", "count"), [("host", 2000), ("cortex-m0plus", 40), ("cortex-m4", 100), ("cortex-m55", 100)]
)
def test_many_tiles_are_exact(target: str, count: int) -> None:
    cases = [case for case, _ in drawn(_CASES, count)]
    assert sum(exact_modules(target, cases[n : n + 20]) for n in range(0, count, 20)) > count / 2
