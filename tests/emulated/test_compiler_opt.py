"""`--compiler` and `--compiler-opt`: what the module computes by every compiler and at every level, and what its header
says of the stack there."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from executors import plan_of
from known_architectures import FAMILIES
from random_graphs import Sketch
from real_models import REAL_MODELS

from tinyfuse.cli.main import main
from tinyfuse.emit import emit
from tinyfuse.emit.header import stack_bound
from tinyfuse.errors import ToolMissing, UsageError
from tinyfuse.options import COMPILER_OPTS
from tinyfuse.targets import load_target
from tinyfuse.verify.emulation import compilers

needs_qemu = pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")),
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)
#: of the levels at which CI runs modules; --campaign runs all
IN_CI = ("O0", "O3", "Os")
LEVELS = [pytest.param(opt, marks=[] if opt in IN_CI else [pytest.mark.campaign]) for opt in COMPILER_OPTS]


def verified(model: Path, target: str, opt: str, *options: str) -> dict:
    """Returns what `verify --json` prints about two runs."""
    arguments = ["verify", str(model), "--target", target, "--emulator", "qemu", "--kernels", "tinyfuse", "--runs", "2",
                 "--oracle", "tflm", "--compiler-opt", opt, *options, "--json"]  # fmt: skip
    return json.loads(CliRunner().invoke(main, arguments).stdout)


@pytest.mark.emulated
@needs_qemu
@pytest.mark.parametrize(
    ("target", "opt"),
    [
        pytest.param(target, opt, marks=[] if opt in taken else [pytest.mark.campaign])
        # each level of IN_CI on one core and -O3, which inlines most, on both; Winograd has all of them
        for target, taken in (("cortex-m4", ("O3", "Os")), ("cortex-m55", ("O0", "O3")))
        for opt in COMPILER_OPTS
    ],
)
def test_every_level_is_exact_and_keeps_to_the_headers_stack(tmp_path: Path, target: str, opt: str) -> None:
    model = tmp_path / "net.tflite"
    model.write_bytes(FAMILIES["mobilenet_v2"]())
    data = verified(model, target, opt)
    assert data["exact"], data
    assert data["compiler_opt"] == opt
    assert ("--compiler-opt" in data["command"]) == (opt != "O2")
    assert data["flash_code_bytes"] < 64_000  # at -O0, too: half a megabyte where every kernel is inlined


@pytest.mark.emulated
@needs_qemu
@pytest.mark.skipif(shutil.which("clang") is None, reason="needs clang")
@pytest.mark.parametrize(
    ("target", "opt"),
    [
        ("cortex-m4", "O3"),
        ("cortex-m55", "O2"),
        *(pytest.param(*more, marks=pytest.mark.campaign) for more in (("cortex-m0plus", "Os"), ("cortex-m55", "O0"))),
    ],
)
def test_modules_of_clang_are_exact_and_keep_to_the_headers_stack(tmp_path: Path, target: str, opt: str) -> None:
    model = tmp_path / "net.tflite"
    model.write_bytes(FAMILIES["mobilenet_v2"]())
    data = verified(model, target, opt, "--compiler", "clang")
    assert data["exact"], data
    assert "clang version" in data["compiler"] and "--compiler clang" in data["command"]


@pytest.mark.emulated
@needs_qemu
@pytest.mark.skipif(shutil.which("clang") is None, reason="needs clang")
def test_armclang_is_asked_in_its_own_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clang stands in for Arm's build of it, which knows the same words; without these it compiles for this machine."""
    stand_in = tmp_path / "armclang"
    stand_in.write_text('#!/bin/sh\nexec clang "$@"\n')
    stand_in.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    model = tmp_path / "net.tflite"
    model.write_bytes(FAMILIES["mobilenet_v2"]())
    data = verified(model, "cortex-m4", "O2", "--compiler", "armclang")
    assert data["exact"] and "--compiler armclang" in data["command"]


def test_what_armclang_needs_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilers, "find_program", lambda *names: None if "armclang" in names else "/bin/true")
    with pytest.raises(ToolMissing, match=r"^armclang was not found: Arm Compiler for Embedded 6: https://.+"):
        compilers.find_compiler(load_target("cortex-m4"), "qemu", "O2", "armclang")
    with pytest.raises(UsageError, match="only for Arm's cores"):
        compilers.find_compiler(load_target("cortex-m4"), "host", "O2", "armclang")


@pytest.mark.parametrize(("emulator", "missing"), [("host", "clang"), ("qemu", "clang"), ("qemu", "arm-none-eabi-gcc")])
def test_what_clang_needs_is_said(emulator: str, missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clang also needs the GNU toolchain's C library for a core."""
    monkeypatch.setattr(compilers, "find_program", lambda *names: None if missing in names else "/bin/true")
    with pytest.raises(ToolMissing, match=f"^{missing} was not found: .+"):
        compilers.find_compiler(load_target("cortex-m4"), emulator, "O2", "clang")


@pytest.mark.emulated
@needs_qemu
@pytest.mark.parametrize("opt", LEVELS)
def test_winograd_keeps_to_the_headers_stack(tmp_path: Path, opt: str) -> None:
    sketch = Sketch(3)
    x = sketch.value((1, 12, 12, 16))
    y = sketch.add(x, sketch.conv(sketch.conv(x, 16, (3, 3)), 16, (3, 3)))
    model = tmp_path / "net.tflite"
    model.write_bytes(sketch.build([x], [sketch.conv(sketch.conv(y, 32, (3, 3), (2, 2)), 32, (3, 3))]))
    data = verified(model, "cortex-m4", opt, "--weights", "winograd")
    assert data["exact"], data["problems"]


@pytest.mark.emulated
@needs_qemu
@pytest.mark.campaign
@pytest.mark.parametrize("opt", COMPILER_OPTS)
@pytest.mark.parametrize("target", ["cortex-m0plus", "cortex-m4", "cortex-m33", "cortex-m55"])
@pytest.mark.parametrize("weights", ["packed", "auto"])
@pytest.mark.parametrize("path", REAL_MODELS)
def test_real_models_are_exact_and_keep_to_their_stack(path: Path, weights: str, target: str, opt: str) -> None:
    data = verified(path, target, opt, "--weights", weights)
    assert data["exact"], data


@needs_qemu
@pytest.mark.parametrize(("compiler", "shown"), [("gcc", "arm-none-eabi-gcc"), ("clang", "clang version")])
def test_compiler_and_level_are_shown_by_every_command_that_compiles(tmp_path: Path, compiler: str, shown: str) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"needs {compiler}")
    model, x = tmp_path / "net.tflite", tmp_path / "x.npy"
    sketch = Sketch(1)
    image = sketch.value((1, 4, 4, 3))
    model.write_bytes(sketch.build([image], [sketch.conv(image, 4, (1, 1))]))
    np.save(x, np.zeros(image.shape, np.int8))
    common = [str(model), "--target", "cortex-m4", "--emulator", "qemu", "--compiler", compiler, "--compiler-opt", "Og"]
    for command, more in (
        ("verify", ["--runs", "1"]), ("profile", []), ("run", ["--input", str(x)])
    ):  # fmt: skip
        done = CliRunner().invoke(main, [command, *common, *more])
        assert done.exit_code == 0, done.output
        assert shown in done.stdout and "-Og" in done.stdout, done.stdout


def test_the_headers_macro_follows_the_level(tmp_path: Path) -> None:
    if shutil.which("gcc") is None:
        pytest.skip("needs gcc")
    plan = plan_of(FAMILIES["mobilenet_v2"](), "cortex-m4")
    (tmp_path / "net.h").write_text(emit(plan)["net.h"])
    (tmp_path / "stack.c").write_text('#include "net.h"\nstack NET_STACK_BYTES\n')
    for opt in COMPILER_OPTS[:-1]:  # the host's gcc may be one without -Oz
        text = subprocess.run(
            ["gcc", f"-{opt}", "-E", "-P", "stack.c"], cwd=tmp_path, capture_output=True, text=True
        ).stdout
        assert text.split()[-2:] == ["stack", str(stack_bound(plan, optimized=opt != "O0"))]
    assert stack_bound(plan, optimized=True) < stack_bound(plan, optimized=False)
