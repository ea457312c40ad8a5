"""Roles and layers of the arena's buffers, as pictures show them."""

from __future__ import annotations

import pytest
from random_graphs import Sketch

from tinyfuse.arena.svg import ROLES
from tinyfuse.compiler import compile_graph
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.options import Options
from tinyfuse.plan import Plan
from tinyfuse.report.buffer_roles import buffer_roles
from tinyfuse.targets import load_target


def plan_of(**options: object) -> Plan:
    """A plan of a convolution, a depthwise and a pointwise one, whose image may be fed by rows, and a dense layer."""
    sketch = Sketch(1)
    x = sketch.value((1, 24, 16, 8), name="picture")
    y = sketch.conv(sketch.depthwise(sketch.conv(x, 16, (3, 3)), (3, 3)), 8, (1, 1))
    y = sketch.fully_connected(y, 4)
    graph = read_tflite("m.tflite", sketch.build([x], [y]))
    return compile_graph(graph, load_target("cortex-m4"), Options("net", **options))


def test_every_buffer_has_a_role_and_its_layer() -> None:
    plan = plan_of(optimize="speed", fusion="none")
    texts = {role.text for role in buffer_roles(plan).values()}
    assert {
        "input picture", "tensor of #0 CONV_2D", "scratch of #0 CONV_2D", "tensor of #1 DEPTHWISE_CONV_2D"
    } <= texts  # fmt: skip
    (output,) = (role for role in buffer_roles(plan).values() if role.role == "output")
    assert output.layer == plan.graph.outputs[0].name


@pytest.mark.parametrize(("options", "told"), [
    ({}, {"ring of #0 CONV_2D", "input picture"}),
    ({"optimize": "ram", "feed_rows": True}, {"counters"}),
])  # fmt: skip
def test_rings_and_counters_are_told(options: dict[str, object], told: set[str]) -> None:
    plan = plan_of(**options)
    roles = buffer_roles(plan)
    assert set(roles) == {buffer.name for buffer in plan.buffers}
    assert all(role.role in ROLES for role in roles.values())
    assert told <= {role.text for role in roles.values()}, roles
