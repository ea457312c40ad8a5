"""`--step`: an inference in pieces computes what it computes whole, wherever the arena lies between two of them."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from click.testing import CliRunner
from executors import assert_exact
from known_architectures import planes, two_inputs, u_net
from random_graphs import Sketch
from stream_models import streaming_convolutions
from tflite_builder import ModelBuilder

from tinyfuse.cli.main import main
from tinyfuse.compiler import compile_graph
from tinyfuse.cost.predict import group_stream
from tinyfuse.emit import emit
from tinyfuse.errors import UsageError
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.kernels.core.kernel import division
from tinyfuse.options import Options, parse_step
from tinyfuse.plan import Plan
from tinyfuse.plan.check.player import verify_plan
from tinyfuse.targets import load_target
from tinyfuse.verify.emulation import module

needs_cross = pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")), reason="no cross compiler, or no QEMU"
)
FAMILIES = {"u-net": u_net, "two inputs": two_inputs, "stream": streaming_convolutions, "planes": planes}


def plan_of(data: bytes, target: str = "host", **options: object) -> Plan:
    settings = Options("net", **{"step": True, **options})  # type: ignore[arg-type]
    return compile_graph(read_tflite("m.tflite", data), load_target(target), settings)


def separable() -> bytes:
    """Groups of several stages, one of a single operator, and a whole call."""
    sketch = Sketch(1)
    x = sketch.value((1, 24, 16, 8))
    y = sketch.conv(sketch.depthwise(sketch.conv(x, 16, (3, 3)), (3, 3), stride=(2, 2)), 8, (1, 1))
    return sketch.build([x], [sketch.softmax(sketch.fully_connected(y, 4))])


def in_least_pieces(plan: Plan) -> Plan:
    """The plan with every call split into as many pieces as possible."""
    groups, cut = [], 0
    for group in plan.groups:
        stages = []
        for stage in group.stages:
            whole = division(stage.kernel, stage.op, stage.by_row, plan.context)
            if whole is not None and whole.units > whole.multiple:
                pieces = -(-whole.units // whole.multiple)
                stage = replace(stage, piece=whole.multiple, pieces=pieces)
                cut += 1
            stages.append(stage)
        groups.append(replace(group, stages=tuple(stages)))
    assert cut
    divided = replace(plan, groups=tuple(groups))
    verify_plan(divided)
    return divided


@pytest.mark.parametrize("name", FAMILIES)
def test_steps_are_exact_under_sanitizers(name: str) -> None:
    plan = plan_of(FAMILIES[name]())
    assert any(plan.cursor_rows(group) for group in plan.groups)
    assert_exact(plan, runs=3)


@needs_cross
@pytest.mark.emulated
@pytest.mark.parametrize(
    ("name", "target", "options"),
    [
        ("u-net", "cortex-m4", {"optimize": "ram"}),
        ("stream", "cortex-m55", {}),
        ("two inputs", "cortex-m0plus", {"fusion": "basic"}),
    ],
)
def test_steps_are_exact_on_emulated_cores(name: str, target: str, options: dict[str, str]) -> None:
    assert_exact(plan_of(FAMILIES[name](), target, **options), runs=3)


def test_a_module_that_keeps_a_pointer_into_the_arena_is_found() -> None:
    """The harness really moves the arena."""

    def faulty(plan: Plan) -> dict[str, str]:
        good = "uint8_t *const bytes = (uint8_t *)arena;"
        kept = "static uint8_t *bytes; if (cursor != NULL && cursor->group == 0 && cursor->rows[0] == 0) { bytes = (uint8_t *)arena; }"
        files = emit(plan)
        files["net.c"].index(good)  # a ValueError is no fault found
        return files | {"net.c": files["net.c"].replace(good, kept)}

    with patch.object(module, "emit", faulty), pytest.raises(AssertionError):
        assert_exact(plan_of(separable()), runs=2)


def test_operators_that_stand_alone_run_by_rows() -> None:
    whole = plan_of(separable(), fusion="none", step=False)
    steps = plan_of(separable(), fusion="none")
    images = [[plan.cursor_rows(g) for g in plan.groups if g.ops[0].output.is_image] for plan in (whole, steps)]
    assert 0 in images[0] and 0 not in images[1], images


_MAIN = r"""
#include <stdio.h>
#include <string.h>
#include "net.h"

static NET_DEFINE_ARENA(one);
static NET_DEFINE_ARENA(other);
static NET_DEFINE_ARENA(moved);
static uint8_t expected[NET_OUTPUT_BYTES_OF_ALL];

static void fill(uint8_t *arena, unsigned seed)
{
    uint8_t *input = (uint8_t *)net_input(arena, 0);
    for (size_t i = 0; i < net_input_bytes(0); ++i) {
        input[i] = (uint8_t)(seed + 31u * i + (i >> 3));
    }
}

int main(void)
{
    net_cursor a = NET_FIRST_STEP, b = NET_FIRST_STEP;
    int steps = 0, status, refused = 0;

    fill(one, 7u);
    if (net_run(one) != NET_OK) { return 1; }
    memcpy(expected, net_output(one, 0), sizeof expected);
    fill(one, 7u);
    fill(other, 99u);
    do {                                     /* two inferences in turns, one of which moves */
        status = net_step(one, &a);
        (void)net_step(other, &b);
        memcpy(moved, one, sizeof moved);
        memset(one, 0xEE, sizeof one);
        memcpy(one, moved, sizeof one);
        ++steps;
    } while (status == NET_MORE_STEPS);
    if (status != NET_OK || memcmp(expected, net_output(one, 0), sizeof expected) != 0) { return 2; }
    if (a.group != 0 || a.rows[0] != 0 || b.group != 0) { return 3; }
    for (int i = 0; i < NET_CURSOR_ROWS; ++i) {     /* numbers that no step left */
        const int32_t wrong[] = {-1, 1000000, INT32_MIN, INT32_MAX};
        for (int w = 0; w < 4; ++w) {
            net_cursor bad = NET_FIRST_STEP;
            bad.group = LONGEST;
            bad.rows[i] = wrong[w];
            refused += net_step(other, &bad) == NET_ERROR_CURSOR;
        }
    }
    a.group = NET_GROUPS;
    refused += net_step(one, &a) == NET_ERROR_CURSOR;
    printf("%d %d\n", steps, refused);
    return 0;
}
"""


@pytest.mark.parametrize(("compiler", "divided"), [("g++", True), ("clang", False)])
def test_steps_are_the_events_and_a_wrong_cursor_is_refused(tmp_path: Path, compiler: str, divided: bool) -> None:
    """The caller is C or C++17; `divided`: calls are in pieces (test_step_pieces.py)."""
    if shutil.which(compiler) is None or shutil.which("gcc") is None:
        pytest.skip(f"no {compiler}, or no gcc")
    plan = in_least_pieces(plan_of(separable())) if divided else plan_of(separable())
    for name, text in emit(plan).items():
        (tmp_path / name).write_text(text)
    longest = max(plan.groups, key=plan.cursor_rows)
    output = plan.graph.outputs[0]
    lines = [f"#define LONGEST {longest.index}", f"#define NET_GROUPS {len(plan.groups)}",
             f"#define NET_OUTPUT_BYTES_OF_ALL {output.bytes}"]  # fmt: skip
    (tmp_path / "main.c").write_text("\n".join([*lines, _MAIN]))
    warnings = ["-Wall", "-Wextra", "-Wconversion", "-Werror"]
    module_by = "gcc" if compiler == "g++" else compiler
    caller = ["-x", "c++", "-std=c++17"] if compiler == "g++" else ["-std=c99"]
    checked = [] if compiler == "clang" else ["-fsanitize=undefined,address"]
    for command in (
        [module_by, "-std=c99", "-O0", *warnings, *checked, "-c", "net.c", "net_weights.c"],
        [compiler, *caller, *warnings, *checked, "-c", "main.c"],
        [compiler, *checked, "main.o", "net.o", "net_weights.o", "-o", "main"],
    ):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    done = subprocess.run(["./main"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, (done.returncode, done.stderr)
    steps, refused = map(int, done.stdout.split())
    calls = 0
    for group in plan.groups:
        stream = group_stream(plan, group)
        times = stream.loop.calls.tolist() if stream else [1]
        calls += sum(stage.pieces * count for stage, count in zip(group.stages, times, strict=True))
    assert steps == calls
    assert refused == 4 * plan.cursor_rows(longest) + 1


@pytest.mark.parametrize("axis", [-1, -3, 0, 1, 2, 3])
def test_constants_that_are_copied_into_a_concatenation(axis: int) -> None:
    """The copy is an operator of constants alone. It has rows only where it is an image; below 0, the axis of a
    vector."""
    model, shape = ModelBuilder(), (1, 3, 4, 2) if axis >= 0 else (1,) * -axis
    data = (np.arange(np.prod(shape)) * 7 - 60).astype(np.int8).reshape(shape)
    joined = [side * (1 + (at == axis % len(shape))) for at, side in enumerate(shape)]
    x, constant = model.tensor("x", shape, scale=0.1), model.tensor("k", shape, scale=0.1, data=data)
    y, z = model.tensor("y", shape, scale=0.1), model.tensor("z", joined, scale=0.1)
    model.op("ABS", [x], [y])
    model.op("CONCATENATION", [constant, y], [z], axis=axis, fused_activation_function="NONE")
    assert_exact(plan_of(model.build([x], [z]), kernels="tinyfuse"))


def test_without_the_option_nothing_of_it_is_there() -> None:
    text = "".join(emit(plan_of(separable(), step=False)).values())
    assert "cursor" not in text.lower() and "MORE_STEPS" not in text


@pytest.mark.parametrize(
    ("text", "instructions"),
    [("20000", 20_000), ("20k", 20_000), ("200us@80MHz", 16_000), ("1ms@168MHz", 168_000), ("0.5 ms @ 1GHz", 500_000),
     ("100ns@80MHz", 8), (None, None)],
)  # fmt: skip
def test_lengths_of_steps_are_read(text: str | None, instructions: int | None) -> None:
    assert parse_step(text) == instructions


@pytest.mark.parametrize("text", ["", "0", "-5", "200us", "80MHz", "200us@80", "1ns@1kHz", "1e3", "nan", "9" * 40])
def test_what_is_no_length_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="step"):
        parse_step(text)


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, str]]:
    monkeypatch.chdir(tmp_path)
    Path("m.tflite").write_bytes(separable())

    def run(*words: str) -> tuple[int, str]:
        done = CliRunner().invoke(main, list(words), catch_exceptions=False)
        return done.exit_code, done.output

    return run


def test_a_bound_that_cannot_be_met_says_what_would_fit(command: Callable[..., tuple[int, str]]) -> None:
    gen = ("gen", "m.tflite", "--target", "cortex-m4", "-o", "out", "--max-step")
    code, text = command(*gen, "1")
    least = int(text.split("--max-step ")[-1].split()[0])
    assert code == 1 and f"--max-step {least} would fit" in text and "op " in text
    code, text = command(*gen, str(least - 1))
    assert code == 1 and f"--max-step {least} would fit" in text and not Path("out").exists()
    code, text = command(*gen, str(least))
    assert code == 0 and "m_step(" in Path("out/m.h").read_text(), "--max-step asks for --step"
    for wrong in ("0", "fast", "200us"):
        code, text = command(*gen, wrong)
        assert code == 2 and "Traceback" not in text
    code, text = command("gen", "m.tflite", "--target", "host", "-o", "other", "--max-step", "1000")
    assert code == 1 and "cannot be predicted for host" in text and not Path("other").exists()
    code, text = command("gen", "m.tflite", "--target", "cortex-m4", "--step", "--feed-rows", "-o", "other")
    assert code == 2 and "exclude each other" in text and not Path("other").exists()


@needs_cross
@pytest.mark.emulated
def test_the_longest_step_is_measured_and_near_its_prediction(command: Callable[..., tuple[int, str]]) -> None:
    words = ("m.tflite", "--target", "cortex-m4", "--step", "--json")
    report = json.loads(command("report", *words)[1])["longest_step"]
    code, text = command("verify", *words, "--oracle", "tflm", "--runs", "4")
    found = json.loads(text)
    assert code == 0 and found["exact"]
    assert found["least_instructions"] <= found["instructions"] <= found["most_instructions"]
    assert found["longest_step_instructions"] < found["instructions"] / 10
    assert abs(report["predicted_instructions"] / found["longest_step_instructions"] - 1) < 0.2
    plain = json.loads(command("verify", *words[:3], "--json", "--oracle", "tflm", "--runs", "2")[1])
    assert plain["longest_step_instructions"] is None and plain["most_instructions"] is not None


def test_what_would_fit_is_told_of_a_module_in_steps(command: Callable[..., tuple[int, str]]) -> None:
    """Regression: the hint was refused, because rows can't be fed in steps."""
    Path("m.tflite").write_bytes(u_net())
    code, text = command("report", "m.tflite", "--target", "cortex-m4", "--step", "--max-ram", "64")
    assert code == 1 and "arena" in text and "--optimize ram takes" in text and "--feed-rows" not in text
