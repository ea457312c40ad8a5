"""`report --dump-passes` prints the graph after each pass up to the plan; `--costs` adds up to the prediction."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner
from known_architectures import attention, mobilenet_v3, two_inputs, u_net
from random_graphs import Sketch
from stream_models import streaming_convolutions

from tinyfuse.cli.main import main
from tinyfuse.compiler import compile_graph
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.ir.text import graph_text
from tinyfuse.options import OPTIMIZE, Options
from tinyfuse.plan import Plan
from tinyfuse.report.costs import costs_json, costs_lines
from tinyfuse.report.passes import passes_json, passes_lines, rewrite_steps
from tinyfuse.targets import load_target

MODELS = {
    "attention": attention(), "mobilenet v3": mobilenet_v3(), "streams": streaming_convolutions(),
    "two inputs": two_inputs(), "u-net": u_net(),
}  # fmt: skip


def image() -> bytes:
    """A convolution, and an average over the whole image."""
    sketch = Sketch(1)
    x = sketch.value((1, 12, 9, 4))
    y = sketch.conv(sketch.conv(x, 8, (3, 3)), 8, (3, 3), activation="RELU")
    return sketch.build([x], [sketch.pool(y, "AVERAGE_POOL_2D", (12, 9), (1, 1))])


def plan_of(data: bytes, target: str = "cortex-m4", **options: object) -> Plan:
    return compile_graph(read_tflite("m.tflite", data), load_target(target), Options("net", **options))  # type: ignore


@pytest.mark.parametrize("optimize", OPTIMIZE)
@pytest.mark.parametrize("name", MODELS)
def test_the_steps_lead_from_the_file_to_the_plan(name: str, optimize: str) -> None:
    plan = plan_of(MODELS[name], optimize=optimize)
    names, graphs = zip(*rewrite_steps(plan), strict=True)
    assert names[0] == "read"
    assert graphs[0] is plan.source
    assert "schedule" not in names[:-1]
    texts = [graph_text(graph) for graph in graphs]
    assert texts[-1] == graph_text(plan.graph)
    assert all(a != b for a, b in pairwise(texts)), "a step that changed nothing"
    # what a strategy tries is no pass: its graph is the last step
    done = {saving.rewrite for saving in plan.graph.savings} - {"rematerialize"}
    assert done - {"tile"} <= set(names)  # tiles are the schedule's


def test_rows_that_are_fed_are_a_step() -> None:
    plan = plan_of(image(), feed_rows=True, optimize="speed")
    assert [name for name, _ in rewrite_steps(plan)][-1] == "feed_rows"
    assert "FEED_ROWS" in passes_json(plan)[-2]["text"]


def test_groups_are_shown_with_their_kernels() -> None:
    plan = plan_of(image(), optimize="ram")
    shown = passes_lines(passes_json(plan))
    assert "--- split_global_pool" in shown
    groups = shown[shown.index("--- groups") :]
    assert "net_group_0, row by row" in groups
    kernels = [stage.kernel.name for group in plan.groups for stage in group.stages]
    assert [line.rsplit(": ", 1)[1] for line in groups if line.startswith("  op ")] == kernels


@pytest.mark.parametrize("name", MODELS)
def test_costs_add_up_to_the_prediction(name: str, tmp_path: Path) -> None:
    path = tmp_path / "m.tflite"
    path.write_bytes(MODELS[name])
    command = ["report", str(path), "--target", "cortex-m4", "--kernels", "tinyfuse", "--costs"]
    data = json.loads(CliRunner().invoke(main, [*command, "--json"]).stdout)
    operators = data["costs"]["operators"]
    assert len(operators) == sum(len(group["operators"]) for group in data["groups"])
    instructions = [each["instructions"] for each in operators]
    if data["predicted_instructions"] is None:
        assert None in instructions
    else:
        assert sum(instructions) == pytest.approx(data["predicted_instructions"], abs=len(operators))
    code = data["costs"]["code"]
    calls = sum(each["code_bytes"] or 0 for each in operators)
    functions = sum(each["bytes"] for each in code["functions"])
    # graphs that operators run have calls of their own
    assert code["bytes"] >= code["module_bytes"] + calls + functions + code["guessed_bytes"] > 0
    assert {name for each in operators for name in each["functions"]} <= {each["name"] for each in code["functions"]}
    text = CliRunner().invoke(main, command).stdout
    assert data["costs"]["about"]["date"] in text and f"code: about {code['bytes']:,} bytes" in text
    assert all(each["entry"] in text for each in operators)


def test_a_target_without_a_table_says_so() -> None:
    assert costs_json(plan_of(image(), "host")) is None
    assert costs_lines(None) == ["this target has no cost table: its instructions are not predicted"]
