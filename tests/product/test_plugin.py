"""--plugin: custom operators and patterns, with the example in examples/plugin."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from executors import assert_exact, assert_reference_is_tflm, plan_of
from flatbuffers import flexbuffers
from random_graphs import Sketch, Value

from tinyfuse.cli.main import main
from tinyfuse.errors import CompileError, UsageError
from tinyfuse.ops import FAMILIES
from tinyfuse.plugin import plugins
from tinyfuse.rewrite.patterns import PATTERNS

EXAMPLE = str(Path(__file__).resolve().parents[2] / "examples" / "plugin" / "channel_shuffle.py")
needs_qemu = pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")),
    reason="needs a cross compiler and QEMU",
)


def shuffled(sketch: Sketch, x: Value, groups: int, permutation=(0, 1, 3, 2)) -> Value:
    """RESHAPE, TRANSPOSE, RESHAPE as converters write a channel shuffle."""
    _, height, width, channels = x.shape
    apart = sketch.reshape(x, (1, height * width, groups, channels // groups))
    dealt = sketch.value(tuple(apart.shape[d] for d in permutation), x.scale, x.zero_point)
    order = sketch.model.tensor(f"order{dealt.index}", (4,), "int32", data=np.array(permutation, np.int32))
    sketch.model.op("TRANSPOSE", [apart.index, order], [dealt.index])
    return sketch.reshape(dealt, x.shape)


def standard(groups: int = 3, **options) -> bytes:
    """Two convolutions with a channel shuffle between them."""
    sketch = Sketch(1)
    x = sketch.value((1, 9, 6, 4))
    y = shuffled(sketch, sketch.conv(x, 12, (3, 3)), groups, **options)
    return sketch.build([x], [sketch.depthwise(y, (3, 3))])


def custom(groups: int = 4) -> bytes:
    """The same with a custom operator."""
    sketch = Sketch(2)
    x = sketch.value((1, 9, 6, 4))
    y = sketch.conv(x, 12, (3, 3))
    z = sketch.value(y.shape, y.scale, y.zero_point)
    options = bytes(flexbuffers.Dumps({"groups": groups}))
    sketch.model.op("CUSTOM", [y.index], [z.index], custom_code="ChannelShuffle", custom_options=options)
    return sketch.build([x], [sketch.depthwise(z, (3, 3))])


def kinds(plan) -> list[str]:
    return [op.kind for op in plan.graph.ops]


def test_without_the_plugin_the_custom_operator_is_refused() -> None:
    with pytest.raises(CompileError, match="CUSTOM ChannelShuffle.*not supported"):
        plan_of(custom())


@pytest.mark.parametrize("target", ["host", pytest.param("cortex-m4", marks=needs_qemu)])
def test_a_custom_operator_is_compiled(target: str) -> None:
    with plugins([EXAMPLE]):
        plan = plan_of(custom(), target, kernels="tinyfuse")
        assert plan.source.ops[1].attributes.groups == 4
        assert "channel_shuffle_s8" in [stage.kernel.name for group in plan.groups for stage in group.stages]
        assert_exact(plan)
    assert "CUSTOM ChannelShuffle" not in FAMILIES and not PATTERNS


def test_of_a_sliding_window_it_makes_new_rows_alone() -> None:
    with plugins([EXAMPLE]):
        plan = plan_of(custom(), kernels="tinyfuse", slide=1)
        heights = [op.output.shape[1] for op in plan.graph.ops if op.kind == "CUSTOM ChannelShuffle"]
        assert heights and max(heights) < 9
        assert_exact(plan, 60)


def test_a_pattern_of_a_sliding_window_matches_over_the_whole_window() -> None:
    with plugins([EXAMPLE]):
        plan = plan_of(standard(), kernels="tinyfuse", slide=1)
        assert [op.output.shape[1] for op in plan.graph.ops if op.kind == "CHANNEL_SHUFFLE"] == [9]
        assert_exact(plan, 60)


def test_its_rules_are_checked() -> None:
    with plugins([EXAMPLE]), pytest.raises(CompileError, match="the groups divide the channels"):
        plan_of(custom(groups=5))


def test_a_pattern_is_replaced_and_streams() -> None:
    assert_reference_is_tflm(standard())
    assert "TRANSPOSE" in kinds(plan_of(standard()))
    with plugins([EXAMPLE]):
        plan = plan_of(standard(), optimize="ram", feed_rows=True)
        assert kinds(plan)[1:] == ["CONV_2D", "CHANNEL_SHUFFLE", "DEPTHWISE_CONV_2D"]
        assert "CHANNEL_SHUFFLE" in [op.kind for op in plan.fed_group.ops]
        assert_exact(plan)
        assert "TRANSPOSE" in kinds(plan_of(standard(), fusion="none"))


@pytest.mark.parametrize(
    "change", [{"groups": 3, "permutation": (0, 2, 1, 3)}, {"groups": 3, "permutation": (0, 1, 2, 3)}]
)
def test_chains_that_are_something_else_stay(change: dict) -> None:
    with plugins([EXAMPLE]):
        assert "CHANNEL_SHUFFLE" not in kinds(plan_of(standard(**change)))


def test_what_others_read_stays() -> None:
    sketch = Sketch(1)
    x = sketch.value((1, 4, 3, 6))
    y = shuffled(sketch, x, 2)
    inner = Value(y.index - 2, (1, 12, 3, 2), x.scale, x.zero_point)
    with plugins([EXAMPLE]):
        graph = plan_of(sketch.build([x], [y, inner])).graph
    assert "CHANNEL_SHUFFLE" not in [op.kind for op in graph.ops]


def test_the_command_line_takes_it(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("net.tflite").write_bytes(custom())
    plain = CliRunner().invoke(main, ["report", "net.tflite", "--target", "host"])
    assert plain.exit_code == 2 and "CUSTOM ChannelShuffle" in plain.output
    command = ["gen", "net.tflite", "--target", "host", "--plugin", EXAMPLE, "--json"]
    done = CliRunner().invoke(main, command, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["options"]["plugins"] == ["channel_shuffle.py"]
    assert Path("net_tinyfuse/channel_shuffle.h").is_file()
    assert '#include "channel_shuffle.h"' in Path("net_tinyfuse/net.c").read_text()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "no such file"),
        ("PLUGIN = 3", "has no PLUGIN"),
        ("1 / 0", "ZeroDivisionError"),
        ("import sys; sys.exit", "has no PLUGIN"),
        (
            "from tinyfuse.plugin import *\nfrom tinyfuse.ops import FAMILIES\nPLUGIN = Plugin((FAMILIES['ADD'],))",
            "an operator ADD already",
        ),
        (
            "from tinyfuse.plugin import *\nPLUGIN = Plugin((), (Pattern('p', ('ADD',), 'MINE'),))",
            "pattern 'p' makes an unknown MINE",
        ),
    ],
)
def test_bad_files_are_told(tmp_path: Path, text: str | None, message: str) -> None:
    path, before = tmp_path / "mine.py", dict(FAMILIES)
    if text is not None:
        path.write_text(text)
    with pytest.raises(UsageError, match=message) as error, plugins([str(path)]):
        pass
    assert str(path) in str(error.value)
    assert before == FAMILIES and not PATTERNS


def test_a_missing_header_is_told(tmp_path: Path) -> None:
    copy = tmp_path / "channel_shuffle.py"
    copy.write_text(Path(EXAMPLE).read_text())
    with plugins([str(copy)]), pytest.raises(UsageError, match="channel_shuffle.h"):
        assert_exact(plan_of(custom()))
