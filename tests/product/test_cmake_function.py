"""tinyfuse_add_model (tinyfuse/cmake/tinyfuse.cmake) in a small project for the host."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from random_graphs import Sketch

ROOT = Path(__file__).resolve().parents[2]

PROJECT = """\
cmake_minimum_required(VERSION 3.17)
project(app LANGUAGES C)
include("{cmake_dir}/tinyfuse.cmake")
{calls}
add_executable(app main.c)
target_link_libraries(app PRIVATE {libraries})
"""
MAIN = """\
#include "net.h"
#include "second.h"
static NET_DEFINE_ARENA(net_arena);
static SECOND_DEFINE_ARENA(second_arena);
int main(void)
{
    return net_init(net_arena, sizeof net_arena) | net_run(net_arena) |
           second_init(second_arena, sizeof second_arena) | second_run(second_arena);
}
"""
TWO_MODULES = """\
tinyfuse_add_model(net models/Net.tflite TARGET host)
tinyfuse_add_model(other models/Net.tflite TARGET host NAME second OPTIONS --fusion none --kernels tinyfuse)
"""


class Project:
    def __init__(self, folder: Path, calls: str, libraries: str = "net other"):
        self.source, self.build_folder = folder / "app", folder / "build"
        self.model = self.source / "models" / "Net.tflite"
        self.model.parent.mkdir(parents=True)
        sketch = Sketch(1)
        image = sketch.value((1, 4, 4, 2))
        self.model.write_bytes(sketch.build([image], [sketch.conv(image, 3, (3, 3))]))
        text = PROJECT.format(cmake_dir=ROOT / "tinyfuse" / "cmake", calls=calls, libraries=libraries)
        (self.source / "CMakeLists.txt").write_text(text)
        (self.source / "main.c").write_text(MAIN)

    def configure(self):
        python = f"-DPython3_EXECUTABLE={sys.executable}"
        return self._cmake("-S", self.source, "-B", self.build_folder, "-G", "Ninja", python)

    def build(self):
        return self._cmake("--build", self.build_folder)

    def _cmake(self, *arguments):
        return subprocess.run(
            ["cmake", *arguments],
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
        )


def test_two_modules_link_and_follow_their_model(tmp_path):
    project = Project(tmp_path, TWO_MODULES)
    for step in (project.configure, project.build):
        done = step()
        assert done.returncode == 0, done.stdout
    assert subprocess.run([project.build_folder / "app"], timeout=60).returncode == 0

    os.utime(project.model)  # changed, the module isn't: generated again, nothing compiled again
    again = project.build()
    assert again.returncode == 0, again.stdout
    assert "Re-running CMake" in again.stdout
    assert "Building C object" not in again.stdout


@pytest.mark.parametrize(
    ("call", "library", "name"),
    [
        ("net models/Net.tflite TARGET host", "net", "net"),
        ("kws models/Net.tflite TARGET host", "kws", "kws"),
        ('app::net "models/Net.tflite" TARGET host', "app::net", "app_net"),
        ("kws models/Net.tflite TARGET host NAME words", "kws", "words"),
    ],
)
def test_the_module_has_the_targets_name(call: str, library: str, name: str, tmp_path: Path):
    """The header is named after the CMake target, whatever the file's name is."""
    project = Project(tmp_path, f"tinyfuse_add_model({call})", library)
    (project.source / "main.c").write_text(f'#include "{name}.h"\nint main(void) {{ return {name}_run(0) == 0; }}\n')
    for step in (project.configure, project.build):
        done = step()
        assert done.returncode == 0, done.stdout


def test_a_model_that_became_bad_stops_the_build(tmp_path):
    project = Project(tmp_path, TWO_MODULES)
    assert project.configure().returncode == 0
    project.model.write_bytes(project.model.read_bytes()[:100])
    done = project.build()
    assert done.returncode != 0
    assert "tinyfuse gen failed (2)" in done.stdout


@pytest.mark.parametrize(
    "call, message",
    [
        ("tinyfuse_add_model(net models/Net.tflite)", "TARGET is missing"),
        ("tinyfuse_add_model(net models/Net.tflite TARGET host --bundle)", "unexpected arguments: --bundle"),
        ("tinyfuse_add_model(net models/none.tflite TARGET host)", "none.tflite"),
        ("tinyfuse_add_model(net models/Net.tflite TARGET cortex-m1000)", "unknown target"),
    ],
)
def test_wrong_calls_stop_the_configuration(tmp_path, call, message):
    done = Project(tmp_path, call, "net").configure()
    assert done.returncode != 0
    assert message in " ".join(done.stdout.split())


def test_feed_rows_is_passed_on(tmp_path):
    project = Project(tmp_path, "tinyfuse_add_model(net models/Net.tflite TARGET host FEED_ROWS)", "net")
    done = project.configure()
    assert done.returncode == 0, done.stdout
    assert "net_feed_rows" in (project.build_folder / "tinyfuse-models" / "net" / "net.h").read_text()
