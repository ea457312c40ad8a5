"""Two models in one firmware: a C++17 application with both modules' CMake targets, one shared arena, and
one CMSIS-NN out of two bundled copies; run on an emulated Cortex-M4."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner
from random_graphs import Sketch

from tinyfuse.cli.main import main
from tinyfuse.targets import load_target
from tinyfuse.toolchain.cmsis_nn import find_cmsis_nn

_FIRMWARE = Path(__file__).resolve().parents[2] / "tinyfuse" / "verify" / "emulation" / "firmware"
TARGET = load_target("cortex-m4")

PROJECT = """\
cmake_minimum_required(VERSION 3.13)
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR arm)
set(CMAKE_C_COMPILER arm-none-eabi-gcc)
set(CMAKE_CXX_COMPILER arm-none-eabi-g++)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
project(app LANGUAGES C CXX)
set(CMAKE_CXX_STANDARD 17)
add_compile_options({flags} -O1 -Wall -Wextra -Wconversion -Wpedantic -Werror
                    $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions>)
{before}
add_subdirectory(first)
add_subdirectory(second)
add_executable(app main.cpp port_cortex_m.c)
set_source_files_properties(port_cortex_m.c PROPERTIES COMPILE_OPTIONS -Wno-pedantic)
target_link_libraries(app PRIVATE first second)
target_link_options(app PRIVATE {flags} -nostartfiles --specs=nano.specs
                    -T "${{CMAKE_CURRENT_SOURCE_DIR}}/sections.ld" -L "${{CMAKE_CURRENT_SOURCE_DIR}}")
set_target_properties(app PROPERTIES LINKER_LANGUAGE C)
"""
# The self-tests take turns in one arena of the larger size.
MAIN = """\
#include "first.h"
#include "second.h"

extern "C" [[noreturn]] void port_exit(int code);

namespace {
constexpr size_t arena_bytes = FIRST_ARENA_BYTES > SECOND_ARENA_BYTES ? FIRST_ARENA_BYTES : SECOND_ARENA_BYTES;
alignas(FIRST_ARENA_ALIGN) uint8_t arena[arena_bytes];
static_assert(FIRST_ARENA_ALIGN == SECOND_ARENA_ALIGN, "one alignment");
}

int main()
{
    for (int round = 0; round < 3; ++round) {
        if (first_selftest(arena, sizeof arena) != FIRST_OK) {
            port_exit(10 + first_selftest(arena, sizeof arena));
        }
        if (second_selftest(arena, sizeof arena) != SECOND_OK) {
            port_exit(20 + second_selftest(arena, sizeof arena));
        }
    }
    port_exit(42);
}
"""


def models() -> tuple[bytes, bytes]:
    """Two networks: convolutions in the first, depthwise ones too in the second. Their bundles overlap in part."""
    sketch = Sketch(1)
    x = sketch.value((1, 7, 6, 4))
    first = sketch.build([x], [sketch.fully_connected(sketch.conv(x, 5, (3, 3)), 3)])
    sketch = Sketch(2)
    x = sketch.value((1, 9, 8, 5))
    return first, sketch.build([x], [sketch.conv(sketch.depthwise(x, (3, 3)), 6, (1, 1))])


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The application's folder with both modules, generated with --bundle."""
    tree = find_cmsis_nn(None)
    if tree is None or not all(map(shutil.which, ("arm-none-eabi-g++", "qemu-system-arm", "cmake", "ninja"))):
        pytest.skip("needs arm-none-eabi-g++, qemu-system-arm, cmake, ninja, and a CMSIS-NN")
    for name, data in zip(("first", "second"), models(), strict=True):
        generate(tmp_path, name, data)
    for name in ("port.h", "port_cortex_m.c", "sections.ld"):
        shutil.copy(_FIRMWARE / name, tmp_path)
    (tmp_path / "memory.ld").write_text(
        f"MEMORY {{ FLASH (rx) : ORIGIN = {TARGET.flash[0]}, LENGTH = {TARGET.flash[1]}\n"
        f"RAM (rwx) : ORIGIN = {TARGET.ram[0]}, LENGTH = {TARGET.ram[1]} }}\n"
        'REGION_ALIAS("CONSTANTS", FLASH)\nREGION_ALIAS("BULK", RAM)\n'
    )
    (tmp_path / "main.cpp").write_text(MAIN)
    return tmp_path


def generate(folder: Path, name: str, data: bytes, *options: str) -> None:
    model = folder / f"{name}.tflite"
    model.write_bytes(data)
    command = ["gen", model, "--target", TARGET.name, "--kernels", "cmsis-nn", "--selftest", "-o", folder / name]
    command += options or ["--bundle"]
    result = CliRunner().invoke(main, [str(a) for a in command], catch_exceptions=False)
    assert result.exit_code == 0, result.output


def configure(project: Path, before: str = "") -> subprocess.CompletedProcess:
    text = PROJECT.format(flags=" ".join(TARGET.flags), before=before)
    (project / "CMakeLists.txt").write_text(text)
    return cmake("-S", project, "-B", project / "build", "-G", "Ninja")


def cmake(*arguments) -> subprocess.CompletedProcess:
    return subprocess.run(
        ["cmake", *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300
    )


def run(project: Path) -> int:
    built = cmake("--build", project / "build")
    assert built.returncode == 0, built.stdout
    return subprocess.run(
        ["qemu-system-arm", "-machine", TARGET.qemu_machine, "-display", "none", "-monitor", "none", "-serial", "none",
         "-semihosting-config", "enable=on,target=native", "-kernel", project / "build" / "app"],
        stdin=subprocess.DEVNULL, timeout=120,
    ).returncode  # fmt: skip


@pytest.mark.emulated
def test_two_bundles_share_one_library(project: Path) -> None:
    configured = configure(project)
    assert configured.returncode == 0, configured.stdout
    assert run(project) == 42
    # every file of CMSIS-NN is compiled once, though both bundles have it
    files = [{p.name for p in (project / name / "cmsis-nn").rglob("*.c")} for name in ("first", "second")]
    compiled = cmake("--build", project / "build", "--target", "clean").returncode or cmake(
        "--build", project / "build", "-v"
    )
    built = [line for line in compiled.stdout.splitlines() if "cmsis-nn.dir" in line and " -c " in line]
    assert files[0] & files[1] and files[1] - files[0]
    assert len(built) == len(files[0] | files[1])


def test_bundles_of_two_versions_are_refused(project: Path) -> None:
    changed = next((project / "second" / "cmsis-nn").rglob("arm_nnfunctions.h"))
    changed.write_text(changed.read_text() + "\n")
    configured = configure(project)
    assert configured.returncode != 0
    text = " ".join(configured.stdout.split())
    assert "second bundles another CMSIS-NN than the modules before it (Include/arm_nnfunctions.h differs)" in text


@pytest.mark.emulated
def test_the_applications_own_library_comes_first(project: Path) -> None:
    tree = find_cmsis_nn(None)
    before = f"""add_library(cmsis-nn STATIC)
file(GLOB_RECURSE own "{tree.path}/Source/*.c")
target_sources(cmsis-nn PRIVATE ${{own}})
target_compile_options(cmsis-nn PRIVATE -w)
target_include_directories(cmsis-nn SYSTEM PUBLIC {" ".join(map(str, tree.include_dirs))})
"""
    configured = configure(project, before)
    assert configured.returncode == 0, configured.stdout
    assert run(project) == 42


def test_a_module_without_a_bundle_needs_the_target(project: Path) -> None:
    generate(project, "second", models()[1], "--force", "--cmsis-nn-version", "4.0")
    shutil.rmtree(project / "second" / "cmsis-nn", ignore_errors=True)
    configured = configure(project)
    assert configured.returncode != 0
    assert "second calls CMSIS-NN: add a target named cmsis-nn" in " ".join(configured.stdout.split())
