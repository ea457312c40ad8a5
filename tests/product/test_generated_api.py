"""The interface of generated modules in C and C++ applications: error codes, accessors, placement and hook macros,
shared arenas, and the check of the instruction set."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from executors import assert_all_exact, plan_of
from host_program import WARNINGS, compile_c
from native_compiler import REPORTING
from random_graphs import Sketch
from test_generated_code import separable, write
from test_ops_network import network

from tinyfuse.emit import emit
from tinyfuse.plan import Plan
from tinyfuse.targets import load_target

C_COMPILER = {"gcc": "gcc", "clang": "clang", "g++": "gcc", "clang++": "clang"}


def two_ends() -> bytes:
    """A model with two inputs and two outputs."""
    sketch = Sketch(3)
    a, b = sketch.value((1, 5, 4, 3)), sketch.value((1, 5, 4, 3))
    y = sketch.conv(sketch.add(a, b), 4, (3, 3))
    return sketch.build([a, b], [y, sketch.fully_connected(y, 7)])


def program(folder: Path, plans: list[Plan], main: str, *flags: str, compiler: str = "gcc") -> str:
    """Output of a main program that is linked with the plans' modules; every warning is an error."""
    sources = [f"{plan.options.name}{part}.c" for plan in plans for part in ("", "_weights")]
    for plan in plans:
        write(folder, emit(plan))
    file = "main.cpp" if compiler.endswith("++") else "main.c"
    (folder / file).write_text(main)
    objects = []
    for source in [file, *sources]:
        objects.append(folder / f"{source}.o")
        language = [compiler, "-std=c++17"] if source == "main.cpp" else [C_COMPILER[compiler], "-std=c99"]
        compile_c([*language, "-O1", *WARNINGS, *flags, "-c", folder / source, "-o", objects[-1]])
    compile_c([compiler, *flags, *objects, "-lm", "-o", folder / "program"])
    done = subprocess.run([folder / "program"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


ROUNDING_MAIN = """\
#include "net.h"
#include <fenv.h>
#include <stdio.h>
static NET_DEFINE_ARENA(arena);
int main(void)
{
    const int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_UPWARD, FE_DOWNWARD};
    for (int i = 0; i < 4; ++i) {
        fesetround(modes[i]);
        const int status = net_init(arena, sizeof arena);
        fesetround(FE_TONEAREST);
        printf("%s; ", net_strerror(status));
    }
    return 0;
}
"""


@pytest.mark.parametrize(("compiler", "flag"), [("gcc", "-O2"), ("clang", "-O3"), ("g++", "-O0")])
def test_floats_need_rounding_to_nearest(tmp_path, compiler: str, flag: str) -> None:
    sketch = Sketch(1, dtype="float32")
    x = sketch.value((1, 5, 4, 3))
    plan = plan_of(sketch.build([x], [sketch.conv(x, 4, (3, 3))]))
    wrong = "floats are not rounded to nearest; "
    assert program(tmp_path, [plan], ROUNDING_MAIN, flag, compiler=compiler) == "no error; " + 3 * wrong


def test_who_states_the_rounding_mode() -> None:
    """Modules that compute floats on a core whose mode can be changed: no library of functions has one."""
    for dtype, target, stated in [
        ("int8", "host", False),
        ("float32", "host", True),
        ("float32", "cortex-m4", True),
        ("float32", "cortex-m4+nofp", False),
        ("float32", "cortex-m0plus", False),
    ]:
        sketch = Sketch(1, dtype=dtype)
        x = sketch.value((1, 5, 4, 3))
        files = emit(plan_of(sketch.build([x], [sketch.conv(x, 4, (3, 3))]), target))
        assert ("ERROR_ROUNDING" in files["net.h"]) == ("rounds_to_nearest" in files["net.c"]) == stated


# --- errors and accessors ----------------------------------------------------------------------

ERRORS_MAIN = """\
#include "net.h"
#include <stdio.h>
#include <string.h>
#define CHECK(condition) do { if (!(condition)) { puts(#condition); } } while (0)
static NET_DEFINE_ARENA(arena);
static uint8_t memory[NET_ARENA_BYTES + 2 * NET_ARENA_ALIGN];
int main(void)
{
    uint8_t *const aligned = memory + (NET_ARENA_ALIGN - (uintptr_t)memory % NET_ARENA_ALIGN) % NET_ARENA_ALIGN;

    CHECK(sizeof arena == NET_ARENA_BYTES && (uintptr_t)arena % NET_ARENA_ALIGN == 0);
    CHECK(net_init(arena, sizeof arena) == NET_OK);
    CHECK(net_init(aligned, NET_ARENA_BYTES) == NET_OK);
    CHECK(net_init(aligned, SIZE_MAX) == NET_OK);
    CHECK(net_init(NULL, NET_ARENA_BYTES) == NET_ERROR_NULL);
    CHECK(net_init(NULL, 0) == NET_ERROR_NULL);
    CHECK(net_init(aligned, 0) == NET_ERROR_SIZE);
    CHECK(net_init(aligned, NET_ARENA_BYTES - 1) == NET_ERROR_SIZE);
    for (int shift = 1; shift < NET_ARENA_ALIGN; ++shift) {
        CHECK(net_init(aligned + shift, NET_ARENA_BYTES) == NET_ERROR_ALIGNMENT);
    }
    CHECK(net_run(NULL) == NET_ERROR_NULL);

    CHECK(NET_OK == 0);
    for (int a = NET_OK; a <= NET_ERROR_KERNEL; ++a) {
        CHECK(strlen(net_strerror(a)) > 5 && strcmp(net_strerror(a), net_strerror(-1)) != 0);
        for (int b = NET_OK; b < a; ++b) {
            CHECK(strcmp(net_strerror(a), net_strerror(b)) != 0);
        }
    }
    CHECK(strcmp(net_strerror(-1), net_strerror(1000)) == 0);

    CHECK(NET_INPUTS == 2 && NET_OUTPUTS == 2);
    CHECK(net_input(arena, 0) == net_input_v1(arena) && net_input(arena, 1) == net_input_v2(arena));
    CHECK(net_output(arena, 0) == net_output_v4(arena) && net_output(arena, 1) != NULL);
    CHECK(net_input_bytes(0) == 60 && net_input_bytes(0) == NET_INPUT_V1_BYTES && net_output_bytes(1) == 7);
    for (size_t i = 2; i != 1; i = i == 2 ? 3 : i == 3 ? SIZE_MAX : 1) {
        CHECK(net_input(arena, i) == NULL && net_output(arena, i) == NULL);
        CHECK(net_input_bytes(i) == 0 && net_output_bytes(i) == 0);
    }
    return 0;
}
"""


def test_every_error_and_every_index(tmp_path: Path) -> None:
    plan = plan_of(two_ends())
    names = [t.name for t in (*plan.graph.inputs, plan.graph.outputs[0])]
    main = ERRORS_MAIN.replace("output_v4", f"output_{names[2]}")
    assert names[:2] == ["v1", "v2"]
    assert program(tmp_path, [plan], main, *REPORTING) == ""


# --- macros of the application -----------------------------------------------------------------

PLACED_MAIN = """\
#include "net.h"
static NET_DEFINE_ARENA(arena);
int main(void)
{
    return net_init(arena, sizeof arena) != NET_OK || net_run(arena) != NET_OK;
}
"""


def symbols(file: Path) -> dict[str, str]:
    """Maps each defined symbol to its section."""
    text = subprocess.run(["objdump", "-t", file], capture_output=True, text=True, check=True).stdout
    return {name: section for section, name in re.findall(r"^\w+ .{7} (\S+)\s\w+ (\w+)$", text, re.M)}


def test_placement_macros_move_everything(tmp_path: Path) -> None:
    sections = {"ARENA": ".fast_ram", "WEIGHTS": ".slow_flash", "CODE": ".itcm"}
    flags = [f'-DNET_{kind}_ATTR=__attribute__((section("{name}")))' for kind, name in sections.items()]
    program(tmp_path, [plan_of(separable())], PLACED_MAIN, *flags)
    weights = symbols(tmp_path / "net_weights.c.o")
    assert {weights[name] for name in weights if name.startswith("net_g")} == {".slow_flash"}
    assert symbols(tmp_path / "main.c.o")["arena"] == ".fast_ram"
    code = symbols(tmp_path / "net.c.o")
    groups = [name for name in code if name.startswith("net_group_")]
    assert {code[name] for name in [*groups, "net_run"]} == {".itcm"}


HOOKED_MAIN = """\
#include "net.h"
#include <stdio.h>
void begin(int index) { printf("<%d ", index); }
void end(int index) { printf("%d> ", index); }
static NET_DEFINE_ARENA(arena);
int main(void)
{
    return net_init(arena, sizeof arena) != NET_OK || net_run(arena) != NET_OK;
}
"""


@pytest.mark.parametrize("fusion", ["none", "rows"])
def test_hooks_stand_around_every_group(tmp_path: Path, fusion: str) -> None:
    plan = plan_of(separable(), fusion=fusion)
    (tmp_path / "hooks.h").write_text(
        "void begin(int index);\nvoid end(int index);\n"
        "#define NET_GROUP_BEGIN(index) begin(index)\n#define NET_GROUP_END(index) end(index)\n"
    )
    shown = program(tmp_path, [plan], HOOKED_MAIN, "-include", str(tmp_path / "hooks.h"))
    assert shown == "".join(f"<{g.index} {g.index}> " for g in plan.groups)
    assert (len(plan.groups) > 4) == (fusion == "none")


# --- C++ ---------------------------------------------------------------------------------------

CPP_MAIN = """\
#include "net.h"
#include "other.h"
#include <array>
#include <cstdio>
#include <cstring>
#include <type_traits>

namespace {
NET_DEFINE_ARENA(arena);
static OTHER_DEFINE_ARENA(other_arena);
constexpr std::array<int, NET_INPUT_V1_RANK> shape = NET_INPUT_V1_SHAPE;
static_assert(shape[0] * shape[1] * shape[2] * shape[3] == NET_INPUT_V1_ELEMENTS);
static_assert(std::is_same_v<NET_INPUT_V1_DTYPE, int8_t>);
static_assert(NET_INPUT_V1_SCALE > 0.0f && NET_INPUT_V1_ZERO_POINT >= -128);
static_assert(OTHER_ARENA_ALIGN == 16 && sizeof(NET_MODEL_SHA256) == 65);
static_assert(std::is_same_v<decltype(other_input_v1(other_arena)), float *>);
}

int main()
{
    if (net_init(arena, sizeof arena) != NET_OK || other_init(other_arena, sizeof other_arena) != OTHER_OK) {
        return 1;
    }
    std::memset(net_input_v1(arena), 0, NET_INPUT_V1_BYTES);
    std::memset(other_input(other_arena, 0), 0, other_input_bytes(0));
    if (net_run(arena) != NET_OK || other_run(other_arena) != OTHER_OK) {
        return 2;
    }
    std::puts(net_strerror(net_run(nullptr)));
}
"""


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_a_cpp_application_links_two_modules(tmp_path: Path, compiler: str) -> None:
    if not shutil.which(compiler):
        pytest.skip(f"needs {compiler}")
    plans = [plan_of(separable()), plan_of(network(), name="other")]
    assert program(tmp_path, plans, CPP_MAIN, compiler=compiler) == "the arena is a null pointer\n"


# --- several modules ---------------------------------------------------------------------------


def test_modules_take_turns_in_one_arena() -> None:
    """The arena has the size of the largest; each module finds the others' data in it, run after run."""
    plans = [plan_of(make()) for make in (separable, network, two_ends)]
    assert len({plan.arena_bytes for plan in plans}) == 3
    assert_all_exact(plans, runs=7, shared=True)


# --- another instruction set -------------------------------------------------------------------

WITHOUT_MVE = ["-mcpu=cortex-m55+nomve", "-mthumb", "-mfloat-abi=hard"]


@pytest.mark.skipif(not shutil.which("arm-none-eabi-gcc"), reason="needs arm-none-eabi-gcc")
@pytest.mark.parametrize(
    ("planned", "flags", "message"),
    [
        ("cortex-m4", load_target("cortex-m3").flags, "generated for cortex-m4 with the DSP extension"),
        ("cortex-m4", load_target("cortex-m55").flags, "generated for cortex-m4 without Helium (MVE)"),
        ("cortex-m3", load_target("cortex-m4").flags, "generated for cortex-m3 without the DSP extension"),
        ("cortex-m55", load_target("cortex-m4").flags, "generated for cortex-m55 with Helium (MVE)"),
        ("cortex-m55", WITHOUT_MVE, "generated for cortex-m55 with Helium (MVE)"),
        ("cortex-m4", load_target("cortex-m4").flags, None),
        ("cortex-m55", load_target("cortex-m55").flags, None),
    ],
)
def test_another_instruction_set_is_an_error(tmp_path: Path, planned: str, flags, message: str | None) -> None:
    folder = write(tmp_path, emit(plan_of(separable(), planned, kernels="tinyfuse")))
    command = ["arm-none-eabi-gcc", *flags, "-std=c99", "-fsyntax-only", folder / "net.c"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert (done.returncode == 0) == (message is None), done.stderr
    if message is not None:
        first = next(line for line in done.stderr.splitlines() if "error" in line)
        assert message in first and " ".join(load_target(planned).flags) in first
