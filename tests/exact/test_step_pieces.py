"""`--max-step`: calls in pieces (columns of a row, channels of a dense layer, elements) compute what whole ones do."""

from __future__ import annotations

import json
from pathlib import Path
from unittest.mock import patch

import pytest
from click.testing import CliRunner
from executors import assert_exact
from known_architectures import planes, two_inputs, u_net
from other_dtypes import graph_in, model_bytes
from random_graphs import Sketch
from stream_models import streaming_convolutions
from test_step import in_least_pieces, needs_cross, plan_of

from tinyfuse.cli.main import main
from tinyfuse.cost.steps import longest_step
from tinyfuse.errors import InternalFault
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.kernels.layers.int8_dsp.dense import DenseWide
from tinyfuse.plan.check.player import verify_plan


def layers() -> bytes:
    """Most kernels that can be split: various windows, strides and paddings, pools, tables, dense layers."""
    sketch = Sketch(5)
    x = sketch.value((1, 13, 11, 3))
    y = sketch.conv(x, 12, (3, 5), stride=(2, 1))
    y = sketch.conv(sketch.depthwise(y, (3, 3), stride=(1, 2)), 16, (1, 1))
    y = sketch.add(y, sketch.conv(sketch.depthwise(y, (5, 4)), 16, (1, 1)))
    y = sketch.pool(y, "AVERAGE_POOL_2D", (3, 2), (1, 1), "SAME")
    y = sketch.unary(sketch.fully_connected(y, 22), "TANH")
    return sketch.build([x], [sketch.softmax(sketch.fully_connected(y, 7))])


MODELS = {
    "layers": layers, "u-net": u_net, "two inputs": two_inputs, "stream": streaming_convolutions, "planes": planes,
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_pieces_are_exact_under_sanitizers(name: str) -> None:
    assert_exact(in_least_pieces(plan_of(MODELS[name]())), runs=2)


@pytest.mark.parametrize("dtype", ["int16", "float32"])
def test_pieces_of_other_dtypes(dtype: str) -> None:
    data = model_bytes(graph_in(read_tflite("m.tflite", layers()), dtype))
    assert_exact(in_least_pieces(plan_of(data)), runs=2)


@needs_cross
@pytest.mark.emulated
@pytest.mark.parametrize(
    ("name", "target", "options"),
    [
        ("layers", "cortex-m4", {}),
        ("layers", "cortex-m55", {"fusion": "none"}),
        ("layers", "cortex-m0plus", {"optimize": "ram"}),
        ("u-net", "cortex-m4", {"weights": "unpacked"}),
        ("stream", "cortex-m55", {}),
    ],
)
def test_pieces_are_exact_on_emulated_cores(name: str, target: str, options: dict[str, str]) -> None:
    """A bound of one instruction asks for the least pieces."""
    plan = plan_of(MODELS[name](), target, max_step=1, **options)
    assert {stage.kernel.name for group in plan.groups for stage in group.stages if stage.pieces > 1}
    assert_exact(plan, runs=2)


def dense() -> bytes:
    sketch = Sketch(3)
    x = sketch.value((1, 96))
    return sketch.build([x], [sketch.fully_connected(sketch.fully_connected(x, 200), 50)])


@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m55"])
def test_as_many_pieces_as_the_bound_asks_for(target: str) -> None:
    whole = longest_step(plan_of(dense(), target))
    assert whole is not None and whole.bound is not None
    for bound in (whole.bound, whole.bound // 3, whole.bound // 5):
        plan = plan_of(dense(), target, max_step=bound)
        step = longest_step(plan)
        assert step is not None and step.bound is not None and step.bound <= bound
        pieces = max(stage.pieces for group in plan.groups for stage in group.stages)
        assert (pieces > 1) == (bound < whole.bound)


def test_an_output_over_inputs_that_a_later_piece_reads_is_found() -> None:
    """A kernel that widens its inputs at first may have its output over them, not in pieces: each widens them."""
    plan = plan_of(dense(), "cortex-m4")
    assert any(isinstance(stage.kernel, DenseWide) for group in plan.groups for stage in group.stages)
    verify_plan(plan)
    with (
        patch.object(DenseWide, "indivisible", False),
        pytest.raises(InternalFault, match="before iteration 0 has read it"),
    ):
        in_least_pieces(plan)


@needs_cross
@pytest.mark.emulated
def test_verify_fails_where_a_step_takes_more_than_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.tflite").write_bytes(dense())
    words = ["verify", "m.tflite", "--target", "cortex-m4", "--oracle", "tflm", "--runs", "2", "--json"]

    def run(bound: int) -> tuple[int, dict]:
        done = CliRunner().invoke(main, [*words, "--max-step", str(bound)], catch_exceptions=False)
        return done.exit_code, json.loads(done.output)

    code, found = run(3000)
    assert code == 0 and found["longest_step_instructions"] <= 3000, found
    with patch("tinyfuse.cost.steps._PIECE_INSTRUCTIONS", -2000):
        code, found = run(1000)
    assert code == 1 and "--max-step allows 1,000" in str(found["problems"]), found
