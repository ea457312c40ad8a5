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
from tinyfuse.plugin import ConstantInput, Input, Operator, Pattern, plugins
from tinyfuse.rewrite.patterns import PATTERNS, at_operator

EXAMPLE = str(Path(__file__).resolve().parents[2] / "examples" / "plugin" / "channel_shuffle.py")
needs_qemu = pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")),
    reason="needs a cross compiler and QEMU",
)


def shuffled(sketch: Sketch, x: Value, groups: int, permutation=(0, 1, 3, 2)) -> Value:
    """RESHAPE, TRANSPOSE, RESHAPE: a channel shuffle as converters write it."""
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
    """Two convolutions with a custom channel shuffle operator between them."""
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
        plan = plan_of(standard(), optimize="ram", feed_rows=True, recompute=1.0)
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
        ("PLUGIN = 3", "defines no variable PLUGIN"),
        ("1 / 0", "ZeroDivisionError"),
        ("import sys; sys.exit", "defines no variable PLUGIN"),
        (
            "from tinyfuse.plugin import *\nfrom tinyfuse.ops import FAMILIES\nPLUGIN = Plugin((FAMILIES['ADD'],))",
            "the operator ADD exists already",
        ),
        (
            "from tinyfuse.plugin import *\nPLUGIN = Plugin((), (Pattern('p', ('ADD',), 'MINE'),))",
            "pattern 'p' produces the operator MINE",
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


# --- a pattern of several inputs ---------------------------------------------------------------

MEDIAN = str(Path(EXAMPLE).with_name("median.py"))


def medians(order: int = 0, shown: str = "", third: str = "frame") -> bytes:
    """The median of three frames, each after a convolution. Bit n of `order` swaps the inputs of operator n. `shown`:
    an inner operator's result that is also an output. `third`: replaces one frame by another or by a constant."""
    sketch = Sketch(4)
    x = sketch.value((1, 8, 6, 3))
    scale = {"scale": 0.1, "zero_point": -2}

    def frame() -> Value:
        y = sketch.conv(x, 5, (3, 3))
        z = sketch.value(y.shape, **scale)
        sketch.model.op("QUANTIZE", [y.index], [z.index])
        return z

    a, b, c = frame(), frame(), frame()
    if third == "constant":
        c = Value(sketch.model.tensor("c", c.shape, **scale, data=np.zeros(c.shape, np.int8)), c.shape, **scale)
    elif third == "first":
        c = a
    made: dict[str, Value] = {}

    def put(name: str, kind: str, one: Value, other: Value) -> Value:
        both = [one.index, other.index]
        made[name] = sketch.value(a.shape, **scale)
        sketch.model.op(kind, both[::-1] if order >> len(made) - 1 & 1 else both, [made[name].index])
        return made[name]

    lower, upper = put("lower", "MINIMUM", a, b), put("upper", "MAXIMUM", a, b)
    median = put("median", "MAXIMUM", lower, put("middle", "MINIMUM", upper, c))
    outputs = [sketch.depthwise(median, (3, 3)), *([made[shown]] if shown else [])]
    return sketch.build([x], outputs)


@pytest.mark.parametrize("order", range(16))
def test_a_pattern_matches_whatever_the_order_of_what_commutes(order: int) -> None:
    with plugins([MEDIAN]):
        assert kinds(plan_of(medians(order), fusion="basic")).count("MEDIAN_OF_THREE") == 1


@pytest.mark.parametrize("third", ["frame", "first"])
@pytest.mark.parametrize("target", ["host", pytest.param("cortex-m4", marks=needs_qemu)])
def test_a_pattern_of_several_inputs_is_exact_and_streams(target: str, third: str) -> None:
    data = medians(3, third=third)
    assert_reference_is_tflm(data)
    with plugins([MEDIAN]):
        plan = plan_of(data, target, kernels="tinyfuse", optimize="ram")
        assert "MEDIAN_OF_THREE" in kinds(plan) and "MAXIMUM" not in kinds(plan)
        if third == "frame":
            (group,) = (group for group in plan.groups if "MEDIAN_OF_THREE" in [op.kind for op in group.ops])
            assert len(group.ops) > 1
        assert_exact(plan)


@pytest.mark.parametrize("change", [
    {"shown": "upper"}, {"shown": "lower"}, {"shown": "middle"}, {"third": "constant"},
])  # fmt: skip
def test_parts_of_which_others_read_more_or_that_are_something_else_stay(change: dict[str, str]) -> None:
    with plugins([MEDIAN]):
        assert "MEDIAN_OF_THREE" not in kinds(plan_of(medians(**change)))


def test_one_that_is_read_as_two_stays() -> None:
    """Both middle operators of a match must read the same two tensors."""
    sketch = Sketch(4)
    scale = {"scale": 0.1, "zero_point": -2}
    a, b, c, d = (sketch.value((1, 4, 4, 2), **scale) for _ in range(4))
    lower, upper, middle, median = (sketch.value(a.shape, **scale) for _ in range(4))
    for kind, one, other, result in (
        ("MINIMUM", a, b, lower), ("MAXIMUM", a, d, upper), ("MINIMUM", upper, c, middle), ("MAXIMUM", lower, middle, median),
    ):  # fmt: skip
        sketch.model.op(kind, [one.index, other.index], [result.index])
    with plugins([MEDIAN]):
        assert "MEDIAN_OF_THREE" not in kinds(plan_of(sketch.build([a, b, c, d], [median])))


def test_constants_that_a_pattern_names_are_handed_on() -> None:
    sketch = Sketch(5)
    x = sketch.value((1, 4, 4, 3))
    data = sketch.build([x], [sketch.with_constant(sketch.with_constant(x, "MUL", (3,)), "ADD", (3,))])
    source, first, second = Input(), ConstantInput(), ConstantInput()
    match = Operator("ADD", second, Operator("MUL", source, first))
    graph = plan_of(data, fusion="none").source
    made = Pattern("affine", match, "CONCATENATION", attributes=lambda ops: [op.kind for op in ops])
    (found,) = at_operator(graph, made.match, graph.ops[-1], {})
    assert [found[node] for node in (source, first, second)] == [
        graph.inputs[0], graph.ops[0].inputs[1], graph.ops[1].inputs[1],
    ]  # fmt: skip


@pytest.mark.parametrize("target", ["host", pytest.param("cortex-m4", marks=needs_qemu)])
def test_a_pattern_joins_a_loop(target: str) -> None:
    s = Sketch(4)
    s.results = (0.05, 3)
    frames = [s.value((1, 9, 8, 6)) for _ in range(3)]
    a, b, c = (s.conv(frame, 5, (3, 3)) for frame in frames)

    def of(kind: str, x: Value, y: Value) -> Value:
        result = s.value(a.shape, a.scale, a.zero_point)
        s.model.op(kind, [x.index, y.index], [result.index])
        return result

    median = of("MAXIMUM", of("MINIMUM", a, b), of("MINIMUM", of("MAXIMUM", a, b), c))
    data = s.build(frames, [s.conv(s.add(s.add(median, b, kind="MUL"), c), 4, (1, 1))])
    with plugins([MEDIAN]):
        plan = plan_of(data, target, kernels="tinyfuse")
        (loop,) = (op for op in plan.graph.ops if op.kind == "FUSED_LOOP")
        assert loop.attributes.kinds == ("MEDIAN_OF_THREE", "MUL", "ADD")
        assert_exact(plan)


FUNCTION = """
import numpy as np
from tinyfuse.plugin import Kernel, OpFamily, Pattern, Plugin, chain

class Nowhere(Kernel):
    name = "nowhere"

    def call(self, op, site, context):
        raise AssertionError("a table computes it")

class Size(OpFamily):
    kind = "SIZE"
    elementwise = True
    in_files = False
    kernels = (Nowhere(),)

    def reference(self, op, x):
        return (np.minimum(np.abs(x.astype(np.int16)), 127).astype(np.int8),)

def meant(ops):
    return ops[0].input.quant == ops[1].output.quant

PLUGIN = Plugin((Size(),), (Pattern("size", chain("ABS", "ABS"), "SIZE", meant),))
"""


@needs_qemu
def test_a_convolution_looks_a_plugins_function_up(tmp_path: Path) -> None:
    (tmp_path / "size.py").write_text(FUNCTION)
    s = Sketch(4)
    x = s.value((1, 9, 8, 6))
    s.results = (0.05, 0)
    y = s.conv(x, 8, (1, 1))
    for _ in range(2):
        before, y = y, s.value(y.shape, 0.05, 0)
        s.model.op("ABS", [before.index], [y.index])
    with plugins([str(tmp_path / "size.py")]):
        plan = plan_of(s.build([x], [s.unary(y, "LEAKY_RELU")]), "cortex-m4", kernels="tinyfuse")
        (op,) = plan.graph.ops
        assert (op.kind, op.attributes.kinds) == ("LOOKED_UP", ("CONV_2D", "SIZE", "LEAKY_RELU"))
        assert_exact(plan)
