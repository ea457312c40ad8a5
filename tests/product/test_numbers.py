"""Helpers in the header: real numbers exactly as TFLM's QUANTIZE and DEQUANTIZE compute them, the best class of an
output, types of arena and state, and accessors without an arena."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from executors import plan_of
from host_program import WARNINGS, compile_c
from native_compiler import REPORTING
from stream_models import STREAM_MODELS
from test_generated_api import two_ends
from test_generated_code import separable, write
from tflite_builder import ModelBuilder

from tinyfuse.emit import emit
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.ir.fixedpoint import RANGE
from tinyfuse.plan import Plan
from tinyfuse.verify.oracle import make_oracle

#: scales that are no power of two, and such that halves are met exactly
QUANTIZATIONS = [("int8", 0.0117647, -3), ("int8", 0.5, 127), ("int8", 3e-6, -128), ("int16", 0.00030517578, 0)]


def copies(dtype: str, scale: float, zero_point: int) -> bytes:
    """y = x with equal quantization."""
    model = ModelBuilder()
    x, y = (model.tensor(name, (1, 8), dtype, scale=scale, zero_point=zero_point) for name in "xy")
    model.op("RESHAPE", [x, model.tensor("shape", (2,), "int32", data=np.array([1, 8], np.int32))], [y])
    return model.build([x], [y])


def converted(kind: str, dtype: str, scale: float, zero_point: int, values: np.ndarray) -> np.ndarray:
    """TFLM's conversion of the values: QUANTIZE from float32, or DEQUANTIZE to it."""
    model = ModelBuilder()
    real = model.tensor("real", (1, values.size), "float32")
    stored = model.tensor("stored", (1, values.size), dtype, scale=scale, zero_point=zero_point)
    ends = (real, stored) if kind == "QUANTIZE" else (stored, real)
    model.op(kind, [ends[0]], [ends[1]])
    data = model.build([ends[0]], [ends[1]])
    oracle = make_oracle("tflm", data, read_tflite("net.tflite", data))
    ((made,),) = oracle.run_all([[values.reshape(1, -1)]])
    return made.reshape(-1)


def reals(scale: float, zero_point: int) -> np.ndarray:
    """Numbers around every half step, at both ends and beyond, except where TFLM's conversion to int32 is undefined."""
    rng = np.random.default_rng(0)
    steps = np.float32(scale) * (np.arange(-300, 300, dtype=np.float32) / 2)
    near = [steps, np.nextafter(steps, np.float32(np.inf)), np.nextafter(steps, np.float32(-np.inf))]
    wide = rng.normal(0, 40000 * scale, 500).astype(np.float32)
    ends = np.float32([1e9 * scale, -1e9 * scale, 1e-45, -0.0])
    return np.concatenate([*near, wide, ends]).astype(np.float32)


def run(folder: Path, plan: Plan, main: str, compiler: str = "gcc", *given: bytes) -> bytes:
    """Output of a program that includes the module, with `given` on its standard input."""
    write(folder, emit(plan))
    source = folder / ("main.cpp" if compiler == "g++" else "main.c")
    source.write_text(f'#include "net.h"\n#include <stdio.h>\n#include <stdlib.h>\n{main}')
    objects = []
    for part in ("net.c", "net_weights.c"):
        objects.append(folder / f"{part}.o")
        compile_c(["gcc", "-std=c99", "-O0", *WARNINGS, *REPORTING, "-c", folder / part, "-o", objects[-1]])
    language = [compiler, "-std=c++17"] if compiler == "g++" else [compiler, "-std=c99"]
    compile_c([*language, "-O2", *WARNINGS, *REPORTING, source, *objects, "-lm", "-o", folder / "program"])
    done = subprocess.run([folder / "program"], input=b"".join(given), capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


CONVERT = """\
static float real[4096];
static NET_INPUT_X_DTYPE stored[4096];
int main(void)
{
    size_t count = fread(real, sizeof *real, 4096, stdin);
    net_quantize_x(real, stored, count);
    fwrite(stored, sizeof *stored, count, stdout);
    net_dequantize_y(stored, real, count);
    fwrite(real, sizeof *real, count, stdout);
    return 0;
}
"""


@pytest.mark.parametrize("dtype, scale, zero_point", QUANTIZATIONS)
def test_real_numbers_are_those_of_tflm(dtype: str, scale: float, zero_point: int, tmp_path: Path) -> None:
    pytest.importorskip("tflite_micro")
    given = reals(scale, zero_point)
    printed = run(tmp_path, plan_of(copies(dtype, scale, zero_point), "host"), CONVERT, "gcc", given.tobytes())
    stored = np.frombuffer(printed[: given.size * np.dtype(dtype).itemsize], dtype)
    back = np.frombuffer(printed[stored.nbytes :], np.float32)
    assert (stored == converted("QUANTIZE", dtype, scale, zero_point, given)).all()
    assert (back == converted("DEQUANTIZE", dtype, scale, zero_point, stored)).all()
    assert {stored.min(), stored.max()} == set(RANGE[dtype])


OTHERS = """\
struct product {
    char before;
    net_arena_type arena;
};
static struct product product;
#define CHECK(condition) do { if (!(condition)) { puts(#condition); } } while (0)
int main(void)
{
    const int8_t values[NET_OUTPUT_BEST_ELEMENTS] = {-128, 5, 127, 3, 127};
    const float nothing = (float)atof("nan"), most = 3e38f, least = -3e38f;
    int8_t stored;

    CHECK(net_init(&product.arena, sizeof product.arena) == NET_OK && sizeof product.arena >= NET_ARENA_BYTES);
    CHECK(net_argmax_BEST(values) == 2 && net_argmax_BEST(NULL) == 0);
    net_quantize_FIRST(&nothing, &stored, 1);
    CHECK(stored == -128);
    net_quantize_FIRST(&most, &stored, 1);
    CHECK(stored == 127);
    net_quantize_FIRST(&least, &stored, 1);
    CHECK(stored == -128);
    net_quantize_FIRST(NULL, NULL, 0);
    for (size_t i = 0; i < 3; ++i) {
        CHECK(net_input(NULL, i) == NULL && net_output(NULL, i) == NULL);
    }
    CHECK(net_input_FIRST(NULL) == NULL && net_output_BEST(NULL) == NULL);
    return 0;
}
"""


@pytest.mark.parametrize(
    "model, compiler", [(separable(), "g++"), (two_ends(), "gcc")], ids=["one of each, C++", "two of each, C"]
)
def test_types_argmax_and_null(model: bytes, compiler: str, tmp_path: Path) -> None:
    plan = plan_of(model, "host")
    best = plan.graph.outputs[-1].name
    main = OTHERS.replace("OUTPUT_BEST", f"OUTPUT_{best.upper()}").replace("BEST", best)
    main = main.replace("FIRST", plan.graph.inputs[0].name)
    assert run(tmp_path, plan, main, compiler) == b""


BY_INDEX = """\
static NET_DEFINE_ARENA(arena);
static float real[NET_INPUT_0_ELEMENTS], back[NET_OUTPUT_0_ELEMENTS];
static const int shape[] = NET_INPUT_0_SHAPE;
int main(void)
{
    const NET_OUTPUT_0_DTYPE *scores;

    net_init(arena, sizeof arena);
    for (size_t i = 0; i < NET_INPUT_0_BYTES / sizeof *net_input_0(arena); ++i) {
        real[i] = NET_INPUT_0_SCALE * (float)(i % 7);
    }
    net_quantize_0(real, net_input_0(arena), NET_INPUT_0_ELEMENTS);
    if (net_run(arena) != NET_OK || sizeof shape != NET_INPUT_0_RANK * sizeof *shape) {
        return 1;
    }
    scores = net_output_0(arena);
    net_dequantize_0(scores, back, NET_OUTPUT_0_ELEMENTS);
    printf("%d %d", back[0] == NET_OUTPUT_0_SCALE * (float)(scores[0] - NET_OUTPUT_0_ZERO_POINT),
           scores == net_output(arena, 0) && net_argmax_0(scores) < NET_OUTPUT_0_ELEMENTS);
    return 0;
}
"""


@pytest.mark.parametrize("model, compiler", [(separable(), "g++"), (two_ends(), "gcc")], ids=["one", "two"])
def test_an_application_by_index_takes_any_model(model: bytes, compiler: str, tmp_path: Path) -> None:
    """Macros, accessors and functions have no name of a tensor."""
    assert run(tmp_path, plan_of(model, "host"), BY_INDEX, compiler) == b"1 1"


def test_a_state_has_a_type_too(tmp_path: Path) -> None:
    main = """\
static net_arena_type arena;
static net_state_type state;
int main(void)
{
    return net_init(&arena, sizeof arena) | net_reset(&state) | net_run(&arena, &state);
}
"""
    assert run(tmp_path, plan_of(STREAM_MODELS["keyword spotter"], "host"), main) == b""


def test_what_nobody_calls_takes_no_code(tmp_path: Path) -> None:
    """The module's objects contain no helper, even before the linker removes unused code."""
    write(tmp_path, emit(plan_of(separable(), "host")))
    for part in ("net.c", "net_weights.c"):
        compile_c(["gcc", "-std=c99", "-O1", "-c", tmp_path / part, "-o", tmp_path / f"{part}.o"])
        listed = subprocess.run(["nm", tmp_path / f"{part}.o"], capture_output=True, text=True, check=True).stdout
        assert not any(word in listed for word in ("quantize", "argmax"))
