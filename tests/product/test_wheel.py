"""An installed tinyfuse equals the checkout: the wheel has every file, and plans and writes the same."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest
from random_graphs import Sketch
from test_emulation import needs_qemu

from tinyfuse.targets import all_targets

ROOT = Path(__file__).resolve().parents[2]
#: what a wheel is made of: in the checkout -> in the wheel
PARTS = {
    "tinyfuse": "tinyfuse",
    "templates": "tinyfuse/_data/templates",
    "targets": "tinyfuse/_data/targets",
    "runtime_c": "tinyfuse/_data/runtime_c",
}
#: does it all in one process, for starting one takes longer
REPORTS = """
import sys
from tinyfuse.cli.main import main
from tinyfuse.targets import all_targets

def run(*arguments):
    try:
        main(list(arguments))
    except SystemExit as end:
        assert not end.code, arguments

for target in all_targets():
    for optimize in ("speed", "balanced"):
        run("report", "net.tflite", "--target", target, "--optimize", optimize, "--json")
for target in ("cortex-m0plus", "cortex-m4", "cortex-m55"):
    run("gen", "net.tflite", "--target", target, "-o", f"{sys.argv[1]}/{target}", "--selftest", "--json")
"""


def done(*command: object, **options) -> str:
    """Output of a command in an environment without the checkout."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment |= options.pop("env", {})
    ended = subprocess.run(
        list(map(str, command)), env=environment, capture_output=True, text=True, timeout=300, **options
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def build(kind: str, source: Path, output: Path) -> Path:
    """Builds a wheel or sdist of a source tree; setuptools is installed, so nothing is downloaded."""
    output.mkdir()
    program = f"from setuptools import build_meta; build_meta.build_{kind}({str(output)!r})"
    done(sys.executable, "-c", program, cwd=source)
    (made,) = output.iterdir()
    return made


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist() if not name.endswith("/RECORD")}


@pytest.fixture(scope="module")
def source(tmp_path_factory) -> Path:
    """A copy of the packaged files, because a build writes next to them."""
    folder = tmp_path_factory.mktemp("source") / "tinyfuse"
    folder.mkdir()
    for name in PARTS:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    return folder


@pytest.fixture(scope="module")
def wheel(source: Path, tmp_path_factory) -> Path:
    return build("wheel", source, tmp_path_factory.mktemp("dist") / "wheel")


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory) -> Path:
    """Python of a new environment with the wheel; its dependencies are this environment's."""
    folder = tmp_path_factory.mktemp("venv")
    done(sys.executable, "-m", "venv", "--without-pip", folder)
    python = folder / "bin" / "python"
    packages = Path(done(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    here = sysconfig.get_paths()
    (packages / "here.pth").write_text("\n".join(dict.fromkeys((here["purelib"], here["platlib"]))) + "\n")
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python)
    done(*pip, "install", "-q", "--no-deps", "--no-index", "--ignore-installed", wheel)
    assert (packages / "tinyfuse" / "compiler.py").is_file()
    assert done(python, "-P", "-c", "import tinyfuse; print(tinyfuse.__file__)", cwd=folder).startswith(str(packages))
    return python


@pytest.fixture
def folder(tmp_path) -> Path:
    sketch = Sketch(11)
    x = sketch.value((1, 8, 6, 4))
    y = sketch.conv(sketch.depthwise(x, (3, 3)), 6, (1, 1))
    (tmp_path / "net.tflite").write_bytes(sketch.build([x], [y]))
    return tmp_path


def test_the_wheel_has_every_file_and_no_other(wheel: Path) -> None:
    wanted = {
        f"{inside}/{path.relative_to(ROOT / part).as_posix()}": path.read_bytes()
        for part, inside in PARTS.items()
        for path in (ROOT / part).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    found = {name: data for name, data in contents(wheel).items() if ".dist-info/" not in name}
    assert sorted(found) == sorted(wanted)
    assert found == wanted


def test_a_wheel_of_the_sdist_is_the_same(source: Path, wheel: Path, tmp_path) -> None:
    with tarfile.open(build("sdist", source, tmp_path / "sdist")) as archive:
        archive.extractall(tmp_path / "unpacked")
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    assert contents(build("wheel", unpacked, tmp_path / "wheel")) == contents(wheel)


def test_reports_and_modules_are_those_of_the_checkout(installed: Path, folder: Path) -> None:
    """Byte for byte, of all targets."""
    (folder / "reports.py").write_text(REPORTS)
    hidden = {"PATH": str(folder)}  # no cross compiler: measuring the code would take most of the time
    tree = done(sys.executable, "reports.py", "out", cwd=folder, env=hidden | {"PYTHONPATH": str(ROOT)})
    shutil.move(folder / "out", folder / "tree")
    assert done(installed, "reports.py", "out", cwd=folder, env=hidden) == tree
    unknown = [target for target in all_targets().values() if target.cost_table is None]
    told = "of those without a cost table alone, with each --optimize"
    assert tree.count('"predicted_instructions": null') == 2 * len(unknown), told
    assert tree.count('"arena_bytes"') == 2 * len(all_targets()) + 3
    for path in (folder / "tree").rglob("*"):
        if path.is_file():
            assert (folder / "out" / path.relative_to(folder / "tree")).read_bytes() == path.read_bytes()
    assert len(list((folder / "tree").rglob("*"))) == len(list((folder / "out").rglob("*")))


@needs_qemu
@pytest.mark.emulated
def test_an_installed_tinyfuse_verifies_and_profiles(installed: Path, folder: Path) -> None:
    program, model = installed.with_name("tinyfuse"), (folder / "net.tflite", "--target", "cortex-m4")
    data = json.loads(done(program, "verify", *model, "--runs", "3", "--json", cwd=folder))
    assert data["exact"] and data["instructions"] > 0
    profile = json.loads(done(program, "profile", *model, "--svg", "p.svg", "--json", cwd=folder))
    assert profile["predicted_instructions"] > 0 and (folder / "p.svg").read_text().startswith("<svg")


@pytest.mark.skipif(not (shutil.which("cmake") and shutil.which("make")), reason="needs cmake and make")
def test_an_installed_tinyfuse_serves_cmake(installed: Path, folder: Path) -> None:
    """The call of docs/build-systems.md."""
    call = (ROOT / "docs" / "build-systems.md").read_text().partition("```cmake\n")[2].partition("```")[0]
    lines = call.replace("kws", "net").replace("cortex-m4", "host")
    (folder / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.19)\nproject(app LANGUAGES C)\n"
        "find_package(Python3 REQUIRED COMPONENTS Interpreter)\nadd_executable(firmware main.c)\n" + lines
    )
    (folder / "main.c").write_text('#include "net.h"\nint main(void) { return net_run(0) == NET_OK; }\n')
    done("cmake", "-S", folder, "-B", folder / "build", "-G", "Unix Makefiles", f"-DPython3_EXECUTABLE={installed}")
    done("cmake", "--build", folder / "build")
    done(folder / "build" / "firmware")
