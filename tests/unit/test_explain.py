"""`tinyfuse explain`: chosen and refused fusions, with costs of both, and advice; `report --pareto`."""

from __future__ import annotations

import numpy as np
import pytest
from computed_layer_models import MODELS
from conv_cases import Shape, make_op, model_of
from plan_parts import plan_groups
from random_graphs import Sketch
from test_recompute import far_readers

from tinyfuse.compiler import compile_graph
from tinyfuse.cost.predict import predicted_total
from tinyfuse.explain.advice import advice
from tinyfuse.explain.explain_json import explain_json
from tinyfuse.explain.fusions import Cost, _gain, fusions
from tinyfuse.explain.text import explain_text
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.kernels.core.context import Context
from tinyfuse.options import Options
from tinyfuse.plan import Plan
from tinyfuse.report.pareto import pareto_json, pareto_lines
from tinyfuse.report.report_json import plan_envelope
from tinyfuse.targets import load_target

M4 = load_target("cortex-m4")


def plan_of(data: bytes, target: str = "cortex-m4", **options) -> Plan:
    return compile_graph(read_tflite("model.tflite", data), load_target(target), Options("net", **options))


def separable() -> bytes:
    sketch = Sketch(1)
    x = sketch.value((1, 24, 16, 8))
    y = sketch.conv(sketch.depthwise(sketch.conv(x, 16, (1, 1)), (3, 3)), 8, (1, 1))
    return sketch.build([x], [sketch.fully_connected(y, 4)])


def branches() -> bytes:
    """Two residual blocks: adjacent in the graph, but not in the order of execution."""
    sketch = Sketch(8)
    x = sketch.value((1, 20, 16, 3))
    y = sketch.conv(x, 8, (3, 3))
    for _ in range(2):
        y = sketch.add(sketch.conv(sketch.conv(y, 8, (3, 3)), 8, (3, 3)), y)
    return sketch.build([x], [sketch.fully_connected(y, 4)])


def test_every_group_and_every_border_is_told_with_its_costs() -> None:
    plan = plan_of(separable(), optimize="ram")
    found = list(fusions(plan))
    taken = [fusion for fusion in found if fusion.taken]
    assert [fusion.groups for fusion in taken] == [(g.index,) for g in plan.groups if len(g.ops) > 1] != []
    for fusion in taken:
        # a part of a layer can't run alone
        assert fusion.apart.ram_bytes is None or fusion.fused.ram_bytes < fusion.apart.ram_bytes
        assert None not in (fusion.fused.instructions, fusion.apart.instructions)
    assert all(fusion.reason for fusion in found)


def test_a_border_says_what_a_group_in_its_place_would_cost() -> None:
    graph = read_tflite("model.tflite", separable())
    plan = plan_groups(graph, graph, [[op] for op in graph.ops], Context(M4), Options("net"))
    first = next(fusions(plan))
    assert not first.taken and first.groups == (0, 1)
    assert first.fused.ram_bytes != first.apart.ram_bytes
    data = plan_envelope(plan) | explain_json(plan)
    text = explain_text(data)
    assert "refused  groups 0, 1: CONV_2D + DEPTHWISE_CONV_2D" in text
    assert f"{first.fused.instructions:,} instructions" in text


def topics(data: bytes, **options) -> list[str]:
    return [found.topic for found in advice(plan_of(data, **options))]


def test_a_model_without_faults_gets_no_advice() -> None:
    assert topics(separable()) == []


def test_a_padding_of_another_zero_point_is_told() -> None:
    sketch = Sketch(2)
    x = sketch.value((1, 8, 8, 4), 0.05, 3)
    padded = sketch.value((1, 10, 10, 4), 0.05, 5)
    amounts = sketch.model.tensor("amounts", (4, 2), "int32", data=np.array([[0, 0], [1, 1], [1, 1], [0, 0]], np.int32))
    sketch.model.op("PAD", [x.index, amounts], [padded.index])
    data = sketch.build([x], [sketch.conv(padded, 8, (3, 3), padding="VALID")])
    (found,) = advice(plan_of(data))
    assert found.topic == "padding" and "another scale or zero point" in found.message


def test_what_is_left_of_a_batch_normalization_is_told() -> None:
    sketch = Sketch(3)
    x = sketch.value((1, 48, 48, 4))
    y = sketch.scale_channels(sketch.scale_channels(sketch.conv(x, 8, (3, 3)), "MUL"), "ADD")
    data = sketch.build([x], [y])
    assert topics(data) == []  # the layer's own kernel looks it up
    # both are one operator, tables of channels
    assert topics(data, target="cortex-m55") == ["batch normalization"]
    assert [found.topic for found in advice(plan_of(data, fusion="none"))] == ["batch normalization"] * 2


def test_a_tensor_added_to_itself_is_no_batch_normalization() -> None:
    sketch = Sketch(2)
    x = sketch.value((1, 8, 8, 8))
    y = sketch.conv(x, 8, (3, 3))
    plan = plan_of(sketch.build([x], [sketch.add(y, y)]))
    assert [found.topic for found in advice(plan)] == []


def test_an_activation_that_rescales_is_told() -> None:
    sketch = Sketch(4)
    x = sketch.value((1, 8, 8, 4))
    data = sketch.build([x], [sketch.relu(sketch.conv(x, 8, (3, 3)), same=False)])
    assert topics(data) == []  # the layer's own kernel looks it up
    assert topics(data, target="cortex-m55") == ["activation"]


def test_dead_channels_are_told() -> None:
    sketch = Sketch(5, dead=0.5)
    x = sketch.value((1, 8, 8, 8))
    y = sketch.conv(sketch.conv(x, 32, (1, 1)), 8, (1, 1))
    assert "dead channels" in topics(sketch.build([x], [y]))


@pytest.mark.parametrize(("target", "channels", "told"), [
    ("cortex-m4", 5, True), ("cortex-m4", 6, False), ("cortex-m55", 5, True), ("cortex-m55", 8, False),
])  # fmt: skip
def test_idle_lanes_are_told_but_not_of_the_last_layer(target: str, channels: int, told: bool) -> None:
    sketch = Sketch(6)
    x = sketch.value((1, 8, 8, 8))
    y = sketch.conv(sketch.conv(x, channels, (3, 3)), 5, (3, 3))
    assert topics(sketch.build([x], [sketch.relu(y)]), target=target).count("idle lanes") == told


@pytest.mark.parametrize(
    ("shape", "reason", "hint"),
    [
        (Shape("DEPTHWISE_CONV_2D", 8, 8, 4, 8, (3, 3), multiplier=2), "its depth multiplier is not 1", "multiplier 1"),
        (Shape("DEPTHWISE_CONV_2D", 8, 8, 3, 3, (3, 3)), "it has fewer than four channels", "four channels or more"),
        (Shape("CONV_2D", 8, 8, 8, 8, (3, 3), groups=2), "it is a convolution of several groups", "one group"),
        (
            Shape("FULLY_CONNECTED", 1, 1, 20, 5, per_channel=False, weights_zero_point=3),
            "have a zero point",
            "quantize",
        ),
    ],
)
def test_a_general_kernel_is_told_with_its_reason(shape: Shape, reason: str, hint: str) -> None:
    plan = plan_of(model_of(make_op(shape, np.random.default_rng(1))), kernels="tinyfuse")
    (told,) = (one for one in advice(plan) if one.topic == "general kernel")
    assert reason in told.message and hint in told.hint
    assert ("quantize" in told.hint) == ("zero point" in reason)


def test_computed_weights_are_a_reason() -> None:
    found = [one for one in advice(plan_of(MODELS["conv int8"])) if one.topic == "general kernel"]
    assert ["weights or bias are computed" in one.message for one in found] == [True]


def test_the_front_is_a_front_and_has_what_optimize_gives() -> None:
    plan = plan_of(separable())
    front = pareto_json(plan)
    at = [(point["arena_bytes"], point["predicted_instructions"]) for point in front]
    assert [arena for arena, _ in at] == sorted(arena for arena, _ in at) and len(set(at)) == len(at)
    beaten = [n for n, here in enumerate(at) if any(a != here and a[0] <= here[0] and a[1] <= here[1] for a in at)]
    assert all(front[n]["optimize"] for n in beaten) and len(beaten) < len(front) - 1  # what --optimize takes is shown
    assert min(point["slower"] for point in front) == 0 and "ram" in front[0]["optimize"]
    (fastest,) = [point for point in front if "speed" in point["optimize"]]
    assert fastest["slower"] < 0.01  # a search doesn't know which kernels the module will call once alone
    for optimize in ("speed", "balanced", "ram"):
        gen = plan_of(separable(), optimize=optimize)
        (point,) = [point for point in front if optimize in point["optimize"]]
        assert (point["arena_bytes"], point["predicted_instructions"]) == (gen.arena_bytes, predicted_total(gen))
    lines = pareto_lines(front)
    rows = [line for line in lines[1:] if not line.startswith(" " * 11)]  # options have a line where a row is full
    assert [int(row.split()[0].replace(",", "")) for row in rows] == [arena for arena, _ in at]
    assert max(map(len, lines)) <= 80


@pytest.mark.slow
def test_the_front_has_what_optimize_takes_where_that_is_improved_behind_the_search() -> None:
    """Here an operator runs again, which no candidate of the search does."""
    plan = plan_of(far_readers(), optimize="ram", feed_rows=True)
    front = pareto_json(plan)
    assert [point["arena_bytes"] for point in front if "ram" in point["optimize"]] == [plan.arena_bytes]
    assert {name for point in front for name in point["optimize"]} == {"speed", "balanced", "ram"}


def test_a_fusion_that_takes_more_ram_says_so() -> None:
    def gain(fused: tuple, apart: tuple, count: str = "instructions") -> str:
        return _gain(Cost(*fused), Cost(*apart), count)

    assert gain((100, 328, None), (150, 200, None)) == "takes 128 bytes more RAM while it runs, -50 instructions"
    assert gain((100, 200, None), (150, 328, None)) == "saves 128 bytes of RAM while it runs, -50 instructions"
    assert gain((100, 200, 7), (90, 200, 8)) == "takes as much RAM, +10 instructions"
    assert gain((100, 200, 170), (90, 200, 140), "cycles") == "takes as much RAM, +30 estimated cycles"
    assert gain((None, None, None), (90, 200, None)) == "not predicted"


@pytest.mark.parametrize("fusion", ["none", "basic"])
def test_a_group_that_the_option_forbids_is_refused_for_that(fusion: str) -> None:
    refused = [one for one in fusions(plan_of(separable(), fusion=fusion)) if one.fused is not None and not one.taken]
    assert {one.reason for one in refused} == {f"--fusion {fusion} makes no groups that stream rows"}


@pytest.mark.slow
@pytest.mark.parametrize(("target", "optimize"), [
    ("cortex-m4", "balanced"), ("cortex-m4", "ram"), ("host", "balanced"),
])  # fmt: skip
def test_an_explanation_has_no_unknowns_and_no_negative_savings(target: str, optimize: str) -> None:
    for data in (separable(), branches()):
        plan = plan_of(data, target, optimize=optimize)
        text = explain_text(plan_envelope(plan) | explain_json(plan))
        assert "?" not in text and "saves -" not in text and "None" not in text, text


def test_tables_are_told() -> None:
    """The file's operators, and what their table takes."""
    s = Sketch(3)
    x = s.value((1, 48, 48, 4))
    y = s.requantize(s.unary(s.conv(x, 4, (3, 3)), "LOGISTIC"))
    z = s.scale_channels(s.scale_channels(s.conv(y, 4, (3, 3)), "MUL"), "ADD")
    plan = plan_of(s.build([x], [z]))
    data = plan_envelope(plan) | explain_json(plan)
    assert [(table["kinds"], table["channels"], table["bytes"]) for table in data["tables"]] == [
        (["LOGISTIC", "QUANTIZE"], 1, 256),
        (["MUL", "ADD"], 4, 1024),
    ]
    text = " ".join(explain_text(data).split())
    assert "LOGISTIC + QUANTIZE of an int8 value are a table of 256 bytes" in text
    assert "MUL + ADD of an int8 value are 4 channels' tables of 1,024 bytes" in text
