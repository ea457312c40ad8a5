"""`gen --bundle`: a folder that a CMake project builds without any CMSIS-NN on the machine."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner
from test_generated_code import separable

from tinyfuse.cli.main import main
from tinyfuse.targets import load_target
from tinyfuse.toolchain.cmsis_nn import find_cmsis_nn

PROJECT = """\
cmake_minimum_required(VERSION 3.13)
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR arm)
set(CMAKE_C_COMPILER arm-none-eabi-gcc)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
project(app LANGUAGES C)
add_compile_options({flags} -O1 -Wall -Wextra -Wconversion -Wpedantic -Werror)
add_subdirectory(net)
"""


def undefined(*libraries: Path) -> set[str]:
    """Undefined symbols of the libraries that none of them defines."""
    text = subprocess.run(["arm-none-eabi-nm", *libraries], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in text.splitlines()]
    needed = {row[1] for row in rows if len(row) == 2 and row[0] == "U"}
    return needed - {row[2] for row in rows if len(row) == 3}


@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m55"])
def test_a_bundle_builds_alone(tmp_path: Path, target: str) -> None:
    tree = find_cmsis_nn(None)
    if tree is None or not all(map(shutil.which, ("arm-none-eabi-gcc", "cmake", "ninja"))):
        pytest.skip("needs arm-none-eabi-gcc, cmake, ninja and a CMSIS-NN")
    (tmp_path / "net.tflite").write_bytes(separable())
    command = [
        "gen",
        tmp_path / "net.tflite",
        "--target",
        target,
        "-o",
        tmp_path / "net",
        "--kernels",
        "cmsis-nn",
        "--bundle",
    ]
    result = CliRunner().invoke(main, list(map(str, command)), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    licences = [path for path in (tmp_path / "net" / "cmsis-nn").rglob("*") if path.name.upper().startswith("LICENSE")]
    assert licences and all("Apache License" in path.read_text() for path in licences)

    (tmp_path / "CMakeLists.txt").write_text(PROJECT.format(flags=" ".join(load_target(target).flags)))
    elsewhere = {k: v for k, v in os.environ.items() if not k.startswith("CMSIS")}
    for step in (("-S", tmp_path, "-B", tmp_path / "build", "-G", "Ninja"), ("--build", tmp_path / "build")):
        done = subprocess.run(
            ["cmake", *step], env=elsewhere, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300
        )
        assert done.returncode == 0, done.stdout
    # with the C library nothing else is needed, and only files of the folder went in
    missing = undefined(*(tmp_path / "build").rglob("*.a"))
    assert not [name for name in missing if name.startswith(("arm_", "tinyfuse_", "net_"))]
    compiled = (tmp_path / "build" / "build.ninja").read_text()
    assert str(tree.path) not in compiled
