"""Programs are found as absolute paths, because tinyfuse starts them in other folders than the user's."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from random_graphs import Sketch

from tinyfuse.toolchain.programs import find_program

ROOT = Path(__file__).resolve().parents[2]
CROSS = shutil.which("arm-none-eabi-gcc")


def script(path: Path, text: str = "exit 0") -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_what_a_relative_path_finds_is_absolute(tmp_path, monkeypatch) -> None:
    script(tmp_path / "some-tool")
    monkeypatch.chdir(tmp_path)
    for path in (".", "", "x:.", f"{os.curdir}{os.pathsep}/bin"):
        monkeypatch.setenv("PATH", path or ":")
        assert find_program("", "no-tool", "some-tool") == str(tmp_path / "some-tool")
    assert find_program("./some-tool") == str(tmp_path / "some-tool")
    assert find_program("no-tool") is None and find_program("") is None


def test_nothing_else_looks_at_the_path() -> None:
    sources = (ROOT / "tinyfuse").rglob("*.py")
    found = [path.name for path in sources if re.search(r"shutil\.which|find_executable", path.read_text())]
    assert found == ["programs.py"]


@pytest.mark.skipif(CROSS is None, reason="needs arm-none-eabi-gcc")
def test_a_compiler_in_the_working_folder_serves_gen(tmp_path) -> None:
    script(tmp_path / "arm-none-eabi-gcc", f'exec {CROSS} "$@"')
    sketch = Sketch(11)
    x = sketch.value((1, 4, 4, 4))
    (tmp_path / "net.tflite").write_bytes(sketch.build([x], [sketch.conv(x, 4, (1, 1))]))
    done = subprocess.run(
        [sys.executable, "-m", "tinyfuse", "gen", "net.tflite", "--target", "cortex-m4"], cwd=tmp_path,
        env=os.environ | {"PATH": f".{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert re.search(r"code .* measured", done.stdout), done.stdout
