"""Compilers' analyzers and the sanitizers of integers find nothing new in generated modules.

CI takes a module for each tool, `--campaign` modules of all sorts for three cores.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from executors import plan_of
from known_architectures import FAMILIES
from random_graphs import Sketch
from stream_models import STREAM_MODELS
from use_faults import plan_for

from tinyfuse.emit import emit
from tinyfuse.plan import Plan
from tinyfuse.verify.emulation.compilers import for_arm
from tinyfuse.verify.emulation.inputs import input_set

#: what analyzers say wrongly, as (tool, file, option or checker); docs/reference/tested-tools.md gives the reasons
FALSE = {
    ("gcc", "tinyfuse_svdf.h", "-Wanalyzer-use-of-uninitialized-value"),
    ("clang", "tinyfuse_depthwise_3x3.h", "core.NullDereference"),
    ("clang", "tinyfuse_depthwise_3x3.h", "core.StackAddressEscape"),
    ("clang", "tinyfuse_dense.h", "core.NullDereference"),
    ("clang", "tinyfuse_dense.h", "core.NonNullParamChecker"),
    ("clang", "tinyfuse_matmul_2x4_mve.h", "core.uninitialized.Assign"),
}


def _int16() -> bytes:
    sketch = Sketch(3, dtype="int16")
    x = sketch.value((1, 8, 8, 4))
    y = sketch.conv(sketch.depthwise(x, (3, 3)), 6, (1, 1))
    return sketch.build([x], [sketch.fully_connected(y, 5)])


MODELS = {
    "int16": _int16,
    "mobilenet_v2": FAMILIES["mobilenet_v2"],
    "svdf": lambda: STREAM_MODELS["svdf of int8"],
    "states": lambda: STREAM_MODELS["every kind of state"],
}
TARGETS = ("cortex-m4", "cortex-m55", "cortex-m0plus")
_OTHERS = ("conv", "float", "fed", "slide", "step", "blob", "labels")


def module(name: str, target: str) -> Plan:
    if name in MODELS:
        return plan_of(MODELS[name](), target, kernels="tinyfuse")
    return plan_for(f"{name} {target}")


def findings(name: str, target: str, tool: str, work: Path) -> set[tuple[str, str, str]]:
    """(tool, file, option or checker) of each finding; the module is written into the folder."""
    plan = module(name, target)
    for file, text in emit(plan).items():
        (work / file).write_text(text)
    flags = ["-std=c99", *plan.context.target.flags]
    commands = {
        "gcc": [["arm-none-eabi-gcc", *flags, "-O2", "-fanalyzer", "-c", "net.c", "-o", "net.o"]],
        "clang": [
            ["clang", *for_arm("clang"), *flags, "--analyze", "-Xclang", "-analyzer-output=text", "net.c"],
            ["clang", "-std=c99", "-DTINYFUSE_ANY_CPU", "--analyze", "-Xclang", "-analyzer-output=text", "net.c"],
        ],
    }[tool]
    found = set()
    for command in commands:
        done = subprocess.run(command, cwd=work, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        warning = re.compile(r"^(?:\./)?([\w.]+):\d+:\d+: warning: .*\[([\w.=-]+)\]$", re.M)
        found |= {(tool, file, what) for file, what in warning.findall(done.stderr)}
    return found


def _needs(tool: str) -> str:
    return {"gcc": "arm-none-eabi-gcc", "clang": "clang"}[tool]


@pytest.mark.parametrize(("name", "tool"), [("conv", "gcc"), ("step", "clang")])
def test_analyzers_find_nothing(tmp_path: Path, name: str, tool: str) -> None:
    if not shutil.which(_needs(tool)):
        pytest.skip(f"needs {_needs(tool)}")
    assert findings(name, "cortex-m4", tool, tmp_path) <= FALSE


@pytest.mark.campaign
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("tool", ["gcc", "clang"])
@pytest.mark.parametrize("name", [*MODELS, *_OTHERS])
def test_analyzers_find_nothing_in_any_module(tmp_path: Path, name: str, tool: str, target: str) -> None:
    assert findings(name, target, tool, tmp_path) <= FALSE


_MAIN = """\
#include "net.h"
#include <string.h>
static NET_DEFINE_ARENA(arena);
STATE
extern const unsigned char data[], data_end[];
int main(void)
{
    const unsigned char *next = data;

    if (net_init(arena, sizeof arena) != NET_OK RESET) {
        return 3;
    }
    while (next < data_end) {
        for (size_t i = 0; i < NET_INPUTS; ++i) {
            memcpy(net_input(arena, i), next, net_input_bytes(i));
            next += net_input_bytes(i);
        }
        if (net_run(arena ARGUMENT) != NET_OK) {
            return 4;
        }
    }
    return 0;
}
"""
_DATA = """\
    .section .rodata
    .globl data, data_end
data: .incbin "data.bin"
data_end: .byte 0
    .section .note.GNU-stack, "", %progbits
"""
#: sums of kernels wrap around in unsigned numbers, and unsigned numbers are shifted out, as C defines it
_SANITIZERS = (
    "-fsanitize=undefined,integer,float-cast-overflow",
    "-fno-sanitize=unsigned-integer-overflow,unsigned-shift-base",
    "-fno-sanitize-recover=all",
)


@pytest.mark.skipif(not shutil.which("clang"), reason="needs clang")
@pytest.mark.parametrize(
    ("name", "target"),
    [
        pytest.param(name, target, marks=() if (name, target) == ("int16", "cortex-m4") else pytest.mark.campaign)
        for name in (*MODELS, "conv", "float", "labels")
        for target in TARGETS
    ],
)
def test_no_integer_changes_its_value_silently(tmp_path: Path, name: str, target: str) -> None:
    plan = module(name, target)
    for file, text in emit(plan).items():
        (tmp_path / file).write_text(text)
    (tmp_path / "data.bin").write_bytes(
        b"".join(array.tobytes() for run in input_set(plan.source, 6, 0) for array in run)
    )
    (tmp_path / "data.s").write_text(_DATA)
    state = (
        ("static NET_DEFINE_STATE(state);", "|| net_reset(state) != NET_OK", ", state") if plan.states else ("",) * 3
    )
    main = _MAIN
    for word, text in zip(("STATE\n", "RESET", "ARGUMENT"), state, strict=True):
        main = main.replace(word, f"{text}\n" if word.endswith("\n") else text)
    (tmp_path / "main.c").write_text(main)
    sources = ("main.c", "net.c", "net_weights.c", "data.s")
    command = [
        "clang",
        "-std=c99",
        "-O1",
        "-g1",
        "-DTINYFUSE_ANY_CPU",
        *_SANITIZERS,
        "-I.",
        *sources,
        "-lm",
        "-o",
        "program",
    ]
    built = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    done = subprocess.run([tmp_path / "program"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
