"""Builds that generate the module: after a change, only what depends on it is built again."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from random_graphs import Sketch

from tinyfuse.cli.main import main
from tinyfuse.emit.depfile import depfile_text
from tinyfuse.errors import UsageError

ROOT = Path(__file__).resolve().parents[2]
DOCS = (ROOT / "docs" / "build-systems.md").read_text()

#: finds tinyfuse after everything that lies on the path, as an editable install's finder does
SITE = """\
import importlib.machinery, importlib.util, sys

class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        return importlib.util.spec_from_file_location(name, {init!r}) if name == "tinyfuse" else None

sys.meta_path.insert(sys.meta_path.index(importlib.machinery.PathFinder) + 1, Finder)
"""
MAIN = """\
#include "kws.h"
static KWS_DEFINE_ARENA(arena);
int main(void) { return kws_init(arena, sizeof arena) | kws_run(arena); }
"""


def model(seed: int) -> bytes:
    sketch = Sketch(seed)
    x = sketch.value((1, 6, 6, 4))
    return sketch.build([x], [sketch.conv(sketch.depthwise(x, (3, 3)), 6, (1, 1))])


class Project:
    """Sources, a build folder, and a copy of tinyfuse whose version a test can change."""

    def __init__(self, folder: Path, build_file: str, text: str):
        self.folder, self.build_file = folder / "project", folder / "project" / build_file
        self.version = folder / "tool" / "tinyfuse" / "__init__.py"
        for part in ("tinyfuse", "templates", "targets", "runtime_c"):
            shutil.copytree(ROOT / part, folder / "tool" / part)  # with what Python made of them
        (folder / "site").mkdir()
        (folder / "site" / "sitecustomize.py").write_text(SITE.format(init=str(self.version)))
        (folder / "bin").mkdir()
        program = folder / "bin" / "tinyfuse"
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tinyfuse "$@"\n')
        program.chmod(0o755)
        self.environment = os.environ | {
            "PYTHONPATH": str(folder / "site"), "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}"
        }  # fmt: skip
        self.environment.pop("MAKEFLAGS", None)
        self.folder.mkdir()
        self.build_file.write_text(text)
        (self.folder / "main.c").write_text(MAIN)
        (self.folder / "kws.tflite").write_bytes(model(1))

    def run(self, *command: object) -> str:
        done = subprocess.run(
            list(map(str, command)), cwd=self.folder, env=self.environment, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, timeout=300,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout
        return done.stdout


def follow_changes(project: Project, manifest: Path, build, compiled: str) -> None:
    """Makes one change after the other. `build` returns the build's output; it contains `compiled` if the module was
    compiled."""

    def step(what: str, generates: bool, compiles: bool | None) -> None:
        before = manifest.stat().st_mtime_ns
        said = build()
        assert (manifest.stat().st_mtime_ns != before) == generates, (what, said)
        assert compiles is None or (re.search(compiled, said) is not None) == compiles, (what, said)

    (project.folder / "build" / "tinyfuse").mkdir(parents=True, exist_ok=True)  # no package, though it is called so
    step("nothing", False, False)
    os.utime(project.folder / "kws.tflite")
    step("the model touched", True, False)
    step("nothing", False, False)
    (project.folder / "kws.tflite").write_bytes(model(2))
    step("the model changed", True, True)
    text = project.build_file.read_text()
    assert "basic" in text
    project.build_file.write_text(text.replace("basic", "none"))
    step("an option changed", True, None)
    project.version.write_text(project.version.read_text().replace('__version__ = "', '__version__ = "9.'))
    step("another tinyfuse", True, True)
    assert "tinyfuse 9." in (manifest.parent / "kws.h").read_text()
    step("nothing", False, False)


@pytest.mark.parametrize(
    ("generator", "tool"), [pytest.param("Unix Makefiles", "make", marks=pytest.mark.campaign), ("Ninja", "ninja")]
)
def test_cmake_makes_what_changed_again(tmp_path: Path, generator: str, tool: str) -> None:
    if not (shutil.which("cmake") and shutil.which(tool)):
        pytest.skip(f"needs cmake and {tool}")
    call = DOCS.partition("```cmake\n")[2].partition("```")[0]
    project = Project(
        tmp_path, "CMakeLists.txt",
        "cmake_minimum_required(VERSION 3.19)\nproject(app LANGUAGES C)\n"
        "add_executable(firmware main.c)\n"
        + call.replace("TARGET cortex-m4)", "TARGET host OPTIONS --fusion basic)"),
    )  # fmt: skip
    build = project.folder / "build"
    project.run("cmake", "-S", ".", "-B", build, "-G", generator, f"-DPython3_EXECUTABLE={sys.executable}")
    project.run("cmake", "--build", build)
    manifest = build / "tinyfuse-models" / "kws" / "manifest.json"
    follow_changes(project, manifest, lambda: project.run("cmake", "--build", build), r"Building C object.*kws\.c")
    project.run(build / "firmware")


@pytest.mark.skipif(not (shutil.which("make") and shutil.which("cc")), reason="needs make and cc")
def test_make_makes_what_changed_again(tmp_path: Path) -> None:
    """The Makefile of docs/build-systems.md."""
    text = DOCS.partition("```make\n")[2].partition("```")[0]
    project = Project(tmp_path, "Makefile", text.replace("--target cortex-m4", "--target host --fusion basic"))
    project.run("make", "-j2")
    manifest = project.folder / "kws" / "manifest.json"
    follow_changes(project, manifest, lambda: project.run("make", "-j2"), r"-c kws/kws\.c")
    project.run("./firmware")
    assert "is up to date" in project.run("make")
    project.run("make", "-B", "CFLAGS=-O1")  # takes the place of a Makefile's own, and of what it adds


def test_cmake_says_which_python_lacks_tinyfuse(tmp_path: Path) -> None:
    call = DOCS.partition("```cmake\n")[2].partition("```")[0]
    head = "cmake_minimum_required(VERSION 3.17)\nproject(app LANGUAGES NONE)\n"
    (tmp_path / "CMakeLists.txt").write_text(head + call)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "empty"], check=True)
    python = tmp_path / "empty" / "bin" / "python"
    command = ["cmake", "-S", tmp_path, "-B", tmp_path / "build", f"-DPython3_EXECUTABLE={python}"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode != 0
    assert "has no tinyfuse" in done.stderr and "-DPython3_EXECUTABLE" in done.stderr


def test_a_file_changed_by_hand_stops_the_build_and_stays(tmp_path: Path) -> None:
    text = DOCS.partition("```make\n")[2].partition("```")[0]
    project = Project(tmp_path, "Makefile", text.replace("cortex-m4", "host"))
    project.run("make", "kws/manifest.json")
    (project.folder / "kws" / "kws.c").write_text("/* by hand */\n")
    os.utime(project.folder / "kws.tflite")
    done = subprocess.run(
        ["make", "firmware"], cwd=project.folder, env=project.environment, capture_output=True, text=True
    )
    assert done.returncode != 0 and "kws.c, changed since tinyfuse wrote it" in done.stderr and "--force" in done.stderr
    assert (project.folder / "kws" / "kws.c").read_text() == "/* by hand */\n"


def test_a_depfile_has_names_as_make_reads_them(tmp_path: Path) -> None:
    odd = tmp_path / "a b$c#d%"
    odd.write_text("")
    (tmp_path / "net.d").write_text(depfile_text(Path("out"), [odd]))
    (tmp_path / "Makefile").write_text("out:\n\ttouch out\n\techo '$(words $?) made it'\n-include net.d\n")
    if shutil.which("make"):
        assert "made it" in subprocess.run(["make"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
        again = subprocess.run(["make"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
        assert "up to date" in again
        later = (tmp_path / "out").stat().st_mtime + 1  # not "now": a file system's clock may tick more rarely
        os.utime(odd, (later, later))
        assert "made it" in subprocess.run(["make"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    with pytest.raises(UsageError, match="no way to write the name"):
        depfile_text(Path("out"), [Path("a\nb")])


@pytest.mark.parametrize(
    ("depfile", "why"),
    [
        ("none/net.d", "there is no folder"),
        ("model.tflite/net.d", "there is no folder"),
        (".", "it is a folder"),
        ("out/net.d", None),
        ("net.d", None),
    ],
)
def test_a_depfile_that_cannot_be_written_is_refused_before_the_module_is(
    depfile: str, why: str | None, tmp_path: Path
) -> None:
    (tmp_path / "model.tflite").write_bytes(model(1))
    words = ["gen", str(tmp_path / "model.tflite"), "--target", "cortex-m4", "-o", str(tmp_path / "out")]
    ran = CliRunner().invoke(main, [*words, "--depfile", str(tmp_path / depfile)])
    if why is None:
        assert ran.exit_code == 0 and "manifest.json" in (tmp_path / depfile).read_text()
    else:
        assert ran.exit_code == 2 and why in ran.stderr
        assert not (tmp_path / "out").exists()
