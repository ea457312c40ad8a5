"""Chains of operators on one int8 value become a lookup table: which regions qualify."""

from __future__ import annotations

import numpy as np
import pytest
from executors import plan_of
from random_graphs import Sketch, Value
from test_rewrites import assert_same, graph_of, kinds

from tinyfuse.ir import Graph, Op
from tinyfuse.ops.elementwise.table import MOST_CHANNEL_BYTES, TABLE_VALUES, Table
from tinyfuse.rewrite import rewrite
from tinyfuse.rewrite.tabulate import MOST_BYTES_IN_ALL, tabulate, tabulating

IMAGE = (1, 6, 8, 6)


def tabled(sketch: Sketch, inputs: list[Value], outputs: list[Value]) -> Graph:
    """The graph after the rewrite, which computes the same bits."""
    graph = graph_of(sketch.build(inputs, outputs))
    after = tabulate(graph)
    assert_same(graph, after)
    return after


def test_a_chain_is_one_table() -> None:
    s = Sketch(1)
    x = s.value(IMAGE)
    y = s.unary(s.requantize(s.with_constant(s.unary(x, "LOGISTIC"), "MUL")), "LEAKY_RELU")
    after = tabled(s, [x], [y])
    (table,) = after.ops
    assert (table.kind, table.attributes) == ("TABLE", Table(("LOGISTIC", "MUL", "QUANTIZE", "LEAKY_RELU")))
    assert (table.output.name, table.index) == (after.outputs[0].name, 3)  # those of the file
    assert table.operand(1).shape == (256,)


def test_the_table_has_the_results_of_bytes_without_a_sign() -> None:
    s = Sketch(1)
    x = s.value((1, 1, 16, 16), 0.05, 0)
    (table,) = tabled(s, [x], [s.relu(s.relu(x, "RELU"), "RELU6")]).ops
    values = np.clip(TABLE_VALUES, 0, 6 / np.float32(0.05))
    np.testing.assert_array_equal(table.operand(1).values, values.astype(np.int8))


def test_a_dag_is_one_table() -> None:
    """x * sigmoid(x), and what converters write for GELU: 0.5 x (1 + tanh(c (x + d x^3)))."""
    s = Sketch(2)
    x = s.value(IMAGE)
    swish = s.add(x, s.unary(x, "LOGISTIC"), kind="MUL")
    cube = s.add(s.add(swish, swish, kind="MUL"), swish, kind="MUL")
    inner = s.with_constant(s.add(swish, s.with_constant(cube, "MUL")), "MUL")
    gelu = s.add(s.with_constant(swish, "MUL"), s.with_constant(s.unary(inner, "TANH"), "ADD"), kind="MUL")
    assert kinds(tabled(s, [x], [gelu])) == ["TABLE"]


def test_what_lies_between_may_be_of_any_dtype() -> None:
    s = Sketch(3)
    x = s.value(IMAGE)
    s.dtype = "float32"
    real = s.unary(s.unary(s.converted(x), "EXP"), "HARD_SWISH")  # libm's functions too: ours are the references
    s.dtype = "int16"
    wide = s.unary(s.converted(real), "TANH")
    s.dtype = "int8"
    assert kinds(tabled(s, [x], [s.converted(wide)])) == ["TABLE"]


def test_the_end_may_be_int16() -> None:
    s = Sketch(4)
    x = s.value(IMAGE)
    y = s.unary(x, "LOGISTIC")
    s.dtype = "int16"
    (table,) = tabled(s, [x], [s.converted(y)]).ops
    assert (table.kind, table.operand(1).dtype) == ("TABLE", "int16")


def test_conditions_are_functions_of_one_value_too() -> None:
    s = Sketch(5)
    x = s.value(IMAGE)
    above = s.model.tensor("above", IMAGE, "bool")
    zero = s.model.tensor("zero", (1,), "int8", scale=x.scale, zero_point=x.zero_point, data=np.array([3], np.int8))
    s.model.op("GREATER", [x.index, zero], [above])
    y = s.value(IMAGE, x.scale, x.zero_point)
    s.model.op("SELECT_V2", [above, x.index, zero], [y.index])
    assert kinds(tabled(s, [x], [y])) == ["TABLE"]


@pytest.mark.parametrize("ahead", [False, True])
def test_what_others_read_is_made(ahead: bool) -> None:
    """The region ends in front of a tensor that is an output, or that somebody outside reads."""
    s = Sketch(6)
    x = s.value(IMAGE)
    seen = s.unary(x, "LOGISTIC")
    y = s.requantize(s.with_constant(seen, "MUL"))
    outputs = [y, s.conv(seen, 2, (1, 1)) if ahead else seen]
    assert sorted(kinds(tabled(s, [x], outputs))) == ["CONV_2D"] * ahead + ["LOGISTIC", "TABLE"]


def test_two_sources_are_no_table() -> None:
    s = Sketch(7)
    x, other = s.value(IMAGE), s.value(IMAGE)
    y = s.add(s.unary(x, "LOGISTIC"), s.requantize(other))
    assert kinds(tabled(s, [x, other], [y])) == ["LOGISTIC", "TABLE", "ADD"]


def test_a_factor_that_others_read_keeps_the_product() -> None:
    s = Sketch(8)
    x = s.value(IMAGE)
    gate = s.unary(x, "LOGISTIC")
    y = s.add(x, gate, kind="MUL")
    assert kinds(tabled(s, [x], [y, gate])) == ["LOGISTIC", "MUL"]


def test_a_repeated_operand_is_not_at_its_place() -> None:
    s = Sketch(9)
    x = s.value((1, 1, 1, 6))
    y = s.with_constant(x, "MUL", (6,))
    grown = s.value(IMAGE)
    wide = s.value(IMAGE)
    s.model.op("ADD", [y.index, wide.index], [grown.index], fused_activation_function="NONE")
    assert "TABLE" not in kinds(tabled(s, [x, wide], [grown]))


def test_constants_a_channel_are_tables_of_channels() -> None:
    s = Sketch(10)
    x = s.value((1, 16, 16, 6))
    y = s.relu(s.scale_channels(s.scale_channels(x, "MUL"), "ADD"))
    (table,) = tabled(s, [x], [y]).ops
    assert (table.kind, table.operand(1).shape) == ("CHANNEL_TABLES", (6, 256))


def test_constants_of_another_value_at_every_place_stay() -> None:
    s = Sketch(11)
    x = s.value(IMAGE)
    y = s.with_constant(s.with_constant(x, "MUL", IMAGE[1:]), "ADD", IMAGE[1:])
    assert kinds(tabled(s, [x], [y])) == ["MUL", "ADD"]


def test_a_smaller_region_is_taken_where_the_largest_is_none() -> None:
    s = Sketch(12)
    x = s.value(IMAGE)
    y = s.requantize(s.unary(s.with_constant(x, "ADD", IMAGE[1:]), "ABS"))
    assert kinds(tabled(s, [x], [y])) == ["ADD", "TABLE"]


def test_channels_whose_tables_do_not_pay_or_are_too_many_stay() -> None:
    s = Sketch(13)
    few = s.value((1, 4, 4, 6))
    many = s.value((1, 16, 16, MOST_CHANNEL_BYTES // 256 + 1))
    outputs = [s.scale_channels(s.scale_channels(x, "MUL"), "ADD") for x in (few, many)]
    graph = graph_of(s.build([few, many], outputs))
    asked = []

    def pays(table: Op, ops: tuple[Op, ...]) -> bool:
        asked.append((table.kind, [op.kind for op in ops]))
        return False

    assert kinds(tabulating(pays)(graph)) == ["MUL", "ADD"] * 2
    assert asked == [("CHANNEL_TABLES", ["MUL", "ADD"])]  # the others are too many
    assert kinds(tabulate(graph)) == ["CHANNEL_TABLES", "MUL", "ADD"]


def test_a_model_has_a_limit_for_tables_of_channels() -> None:
    s = Sketch(14)
    x = y = s.value((1, 16, 16, MOST_CHANNEL_BYTES // 256))
    fits = MOST_BYTES_IN_ALL // MOST_CHANNEL_BYTES
    for _ in range(fits + 1):
        y = s.pool(s.scale_channels(s.scale_channels(y, "MUL"), "ADD"), "MAX_POOL_2D", (1, 2), (1, 1), "SAME")
    after = kinds(tabled(s, [x], [y]))
    assert (after.count("CHANNEL_TABLES"), after.count("MUL")) == (fits, 1)


@pytest.mark.parametrize(("shape", "tables"), [((1, 8, 8, 4), 1), ((1, 8, 8, 3), 0)])
def test_a_single_operator_is_a_table_where_it_has_as_many_elements(shape, tables: int) -> None:
    s = Sketch(15)
    x = s.value(shape)
    assert kinds(tabled(s, [x], [s.with_constant(x, "ADD")])).count("TABLE") == tables


def test_an_activation_alone_has_its_table_already() -> None:
    s = Sketch(16)
    x = s.value((1, 16, 16, 6))
    assert kinds(tabled(s, [x], [s.unary(x, "LOGISTIC")])) == ["LOGISTIC"]


def test_a_table_of_what_it_gets_is_dropped() -> None:
    s = Sketch(17)
    x = s.value(IMAGE)
    top = s.model.tensor("top", (), "int8", data=np.array(127, np.int8))
    y = s.conv(x, 4, (1, 1))
    for _ in range(2):
        z = s.value(y.shape, y.scale, y.zero_point)
        s.model.op("MINIMUM", [y.index, top], [z.index], table=False)
        y = z
    graph = graph_of(s.build([x], [s.conv(y, 2, (1, 1))]))
    assert kinds(tabulate(graph)) == ["CONV_2D", "TABLE", "CONV_2D"]
    assert kinds(rewrite(graph, "basic", "auto")) == ["CONV_2D", "CONV_2D"]


def test_no_fusion_leaves_it() -> None:
    s = Sketch(18)
    x = s.value((1, 16, 16, 6))
    data = s.build([x], [s.requantize(s.unary(x, "LOGISTIC"))])
    assert kinds(plan_of(data, fusion="none").graph) == ["LOGISTIC", "QUANTIZE"]
    assert kinds(plan_of(data, fusion="basic").graph) == ["TABLE"]
