"""Selects elementwise operators for one fused loop."""

from __future__ import annotations

from dataclasses import replace

import pytest
from executors import plan_of
from random_graphs import Sketch, Value
from test_rewrites import assert_same, graph_of, kinds

from tinyfuse import limits
from tinyfuse.explain.explain_json import explain_json
from tinyfuse.explain.text import explain_text
from tinyfuse.ir import Graph
from tinyfuse.kernels.core.context import Context
from tinyfuse.schedule.variants.fuse_elementwise import merge_elementwise
from tinyfuse.targets import load_target

IMAGE = (1, 6, 8, 16)


def merged(sketch: Sketch, inputs: list[Value], outputs: list[Value], target: str = "cortex-m4") -> Graph:
    """The graph with fused loops, which computes the same bits."""
    graph = graph_of(sketch.build(inputs, outputs))
    after = merge_elementwise(graph, Context(load_target(target)))
    assert_same(graph, after)
    return after


def three(sketch: Sketch) -> list[Value]:
    return [sketch.value(IMAGE) for _ in range(3)]


@pytest.mark.parametrize("target", ["host", "cortex-m0plus", "cortex-m3", "cortex-m4"])
def test_a_gated_unit_with_a_residual_is_one_loop(target: str) -> None:
    s = Sketch(1)
    x, gate, residual = three(s)
    y = s.add(s.add(x, s.unary(gate, "LOGISTIC"), kind="MUL"), residual)
    after = merged(s, [x, gate, residual], [y], target)
    (loop,) = after.ops
    assert (loop.kind, loop.attributes.kinds) == ("FUSED_LOOP", ("LOGISTIC", "MUL", "ADD"))
    assert (loop.output.name, loop.index) == (after.outputs[0].name, 2)  # those of the file
    assert set(loop.inputs) == set(after.inputs)
    (saving,) = after.savings
    assert saving.rewrite == "merge_elementwise" and kinds(replace(after, ops=saving.operators))[-1] == "ADD"


@pytest.mark.parametrize(("dtype", "kind"), [("int16", "SUB"), ("float32", "DIV"), ("float32", "PRELU")])
@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m55"])
def test_other_dtypes(dtype: str, kind: str, target: str) -> None:
    s = Sketch(1, dtype=dtype)
    x, other, residual = three(s)
    y = s.relu(s.add(s.scale_channels(s.add(x, other, kind=kind), "MUL"), residual), "RELU6")
    (loop,) = merged(s, [x, other, residual], [y], target).ops
    # RELU6 of float32 and of another scale may be a part, or the ADD's own
    assert loop.attributes.kinds[:3] == (kind, "MUL", "ADD")


def test_one_dtype_a_loop() -> None:
    """A condition on values of int8 chooses floats: the loop would read both."""
    s = Sketch(1)
    x, other, _ = three(s)
    condition = s.model.tensor("c", IMAGE, "bool")
    s.model.op("LESS", [x.index, other.index], [condition])
    s.dtype = "float32"
    first, second, third = three(s)
    chosen = s.value(IMAGE)
    s.model.op("SELECT_V2", [condition, first.index, second.index], [chosen.index])
    after = merged(s, [x, other, first, second, third], [s.add(s.add(chosen, third), second)])
    assert kinds(after) == ["LESS", "FUSED_LOOP"]


def test_helium_looks_up_sixteen_at_once_and_a_loop_four() -> None:
    s = Sketch(1)
    x, gate, residual = three(s)
    y = s.add(x, s.unary(gate, "LOGISTIC"), kind="SQUARED_DIFFERENCE")
    y = s.add(s.add(y, residual, kind="SQUARED_DIFFERENCE"), residual)
    assert kinds(merged(s, [x, gate, residual], [y], "cortex-m55")) == ["LOGISTIC", "FUSED_LOOP"]


def test_the_loop_is_a_kernel_of_single_operators_that_broadcast() -> None:
    s = Sketch(1)
    x, vector = s.value(IMAGE), s.value((1, 1, 1, 16))
    plan = plan_of(s.build([x, vector], [s.add(x, vector, kind="MUL")]), "cortex-m55")
    assert [(stage.op.kind, stage.kernel.name) for stage in plan.groups[0].stages] == [
        ("MUL", "tinyfuse_fused_loop_fours_s8")
    ]


def test_what_somebody_else_reads_stays() -> None:
    s = Sketch(2)
    x, other, third = three(s)
    product = s.add(x, other, kind="MUL")
    assert kinds(merged(s, [x, other, third], [s.add(product, third), product])) == ["MUL", "ADD"]
    s = Sketch(2)
    x, other, third = three(s)
    product = s.add(x, other, kind="MUL")
    both = [s.add(product, third), s.conv(product, 4, (1, 1))]
    assert sorted(kinds(merged(s, [x, other, third], both))) == ["ADD", "CONV_2D", "MUL"]


def test_a_result_that_is_read_twice_inside_is_no_matter() -> None:
    s = Sketch(3)
    x, other, third = three(s)
    y = s.add(x, other)
    y = s.add(s.add(y, third, kind="MUL"), s.add(y, other, kind="MAXIMUM"))
    assert kinds(merged(s, [x, other, third], [y])) == ["FUSED_LOOP"]


def test_vectors_of_channels_and_single_values() -> None:
    s = Sketch(4)
    x, vector, single = s.value(IMAGE), s.value((1, 1, 1, 16)), s.value((1, 1, 1, 1))
    y = s.add(s.with_constant(s.add(x, vector, kind="MUL"), "SUB", (16,)), single)
    assert kinds(merged(s, [x, vector, single], [y])) == ["FUSED_LOOP"]


def test_a_vector_of_columns_is_not_for_loops() -> None:
    s = Sketch(5)
    x, columns = s.value(IMAGE), s.value((1, 1, 8, 1))
    assert kinds(merged(s, [x, columns], [s.add(s.add(x, columns), x)])) == ["ADD", "ADD"]


def test_an_operator_that_would_keep_more_is_not_drawn_behind_others() -> None:
    """Both operands would stay alive while the convolution runs. If one of them is needed later anyway, nothing is
    lost."""
    for needed, expected in ((False, ["SQUARED_DIFFERENCE", "CONV_2D", "ADD"]), (True, ["CONV_2D", "FUSED_LOOP"])):
        s = Sketch(6)
        x, other, third = three(s)
        product = s.add(x, other, kind="SQUARED_DIFFERENCE")
        y = s.add(product, s.conv(x if needed else third, 16, (3, 3)))
        outputs = [y, s.relu(x, "RELU6")] if needed else [y]
        assert kinds(merged(s, [x, other, third], outputs))[: len(expected)] == expected


def test_long_chains_are_cut() -> None:
    s = Sketch(7)
    x, other, _ = values = three(s)
    y = x
    for _ in range(2 * limits.LOOP.most):
        y = s.add(y, other)
    loops = merged(s, values, [y]).ops
    assert all(loop.kind == "FUSED_LOOP" and len(loop.attributes.kinds) <= limits.LOOP.most for loop in loops)


@pytest.mark.parametrize(("fusion", "kernels"), [("none", "mixed"), ("rows", "cmsis-nn"), ("basic", "cmsis-nn")])
def test_ways_without_loops(fusion: str, kernels: str) -> None:
    assert "FUSED_LOOP" not in kinds(plan_of(residuals(), "cortex-m4", fusion=fusion, kernels=kernels).graph)


def residuals() -> bytes:
    s = Sketch(8)
    x = s.value(IMAGE)
    y = s.conv(x, 16, (3, 3))
    return s.build([x], [s.conv(s.add(s.add(y, x, kind="MUL"), x), 8, (1, 1))])


def test_explain_names_what_is_no_longer_there() -> None:
    plan = plan_of(residuals(), "cortex-m4")
    data = explain_json(plan)
    assert [loop["kinds"] for loop in data["merged"]] == [["MUL", "ADD"]]
    text = explain_text({**data, "options": {"name": "net", "optimize": "balanced"}, "target": "m4", "warnings": []})
    assert "merged   op 2 'v5': MUL + ADD are one loop" in text
