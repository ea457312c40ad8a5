"""`tinyfuse doctor` reports which tools are present, missing, or present but unusable."""

from __future__ import annotations

import ast
import json
import os
import re
import sys
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner
from known_architectures import two_inputs

from tinyfuse.cli.main import main
from tinyfuse.targets import all_targets
from tinyfuse.toolchain import extras

ROOT = Path(__file__).resolve().parents[2]
BOARDS = " x\n".join(sorted({t.qemu_machine for t in all_targets().values() if t.qemu_machine}))


@pytest.fixture
def tools(tmp_path, monkeypatch) -> Path:
    """A folder that is the whole PATH; no other tool is found through the environment."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.chdir(tmp_path)
    for name in ("CC", "RENODE_PATH", "CMSIS_NN_PATH", "CMSIS_PATH", "CMSIS_PACK_ROOT", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    return folder


def tool(folder: Path, name: str, *lines: str) -> None:
    path = folder / name
    path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    path.chmod(0o755)


def good_tools(folder: Path) -> None:
    tool(folder, "arm-none-eabi-gcc", 'case "$1" in --version) echo "gcc 12.2 (fake)";; *) echo /lib/nano.specs;; esac')
    tool(folder, "qemu-system-arm", f'case "$1" in --version) echo "QEMU 7.2 (fake)";; *) echo "{BOARDS} x";; esac')


def doctor() -> tuple[int, dict[str, dict]]:
    result = CliRunner().invoke(main, ["doctor", "--json"], catch_exceptions=False)
    return result.exit_code, {check["name"]: check for check in json.loads(result.stdout)["checks"]}


def test_all_is_here(tools) -> None:
    good_tools(tools)
    code, checks = doctor()
    assert code == 0
    compiler = checks["arm-none-eabi-gcc"]
    assert (compiler["version"], compiler["place"]) == ("gcc 12.2 (fake)", str(tools / "arm-none-eabi-gcc"))
    assert checks["newlib"]["place"] == "/lib/nano.specs"
    assert checks["qemu-system-arm"]["version"] == "QEMU 7.2 (fake)"
    assert not checks["renode"]["good"] and not checks["renode"]["required"]
    text = CliRunner().invoke(main, ["doctor"]).stdout
    assert "all that verify needs is installed" in text and re.search(
        r"^absent +cmake .*\n +apt-get install cmake$", text, re.M
    )


def test_nothing_is_here(tools) -> None:
    code, checks = doctor()
    assert code == 3
    for name in ("arm-none-eabi-gcc", "newlib", "qemu-system-arm"):
        assert checks[name]["required"] and not checks[name]["good"] and "apt-get" in checks[name]["install"]
    result = CliRunner().invoke(main, ["doctor"])
    assert result.exit_code == 3 and "verify still needs: arm-none-eabi-gcc, newlib, qemu-system-arm" in result.stdout


def test_what_is_there_but_useless(tools, monkeypatch) -> None:
    good_tools(tools)
    tool(tools, "qemu-system-arm", 'case "$1" in --version) echo old;; *) echo "mps2-an385 x";; esac')
    tool(tools, "arm-none-eabi-gcc", 'case "$1" in --version) echo gcc;; *) echo nano.specs;; esac')  # no newlib
    tool(tools, "cmake", "exit 1")
    monkeypatch.setenv("CMSIS_NN_PATH", str(tools))
    code, checks = doctor()
    assert code == 3
    assert checks["qemu-system-arm"]["problem"].startswith("it has no board mps2-an386, mps2-an500")
    assert checks["newlib"]["place"] is None
    assert checks["cmake"]["problem"] == "it does not run"
    assert "no Include/arm_nnfunctions.h" in checks["CMSIS-NN"]["problem"]


def test_renode_takes_the_place_of_qemu(tools) -> None:
    good_tools(tools)
    (tools / "qemu-system-arm").unlink()
    tool(
        tools,
        "renode",
        "echo 'Renode v1.16.1.15858'",
        "echo '  build: 3407d830-202605281920'",
        "echo '  build type: Release'",
    )
    code, checks = doctor()
    assert code == 0 and checks["renode"]["version"] == "Renode v1.16.1.15858, build 3407d830-202605281920"
    assert not checks["qemu-system-arm"]["required"]


@pytest.mark.parametrize("found_by", ["PATH", "RENODE_PATH"])
def test_a_renode_that_does_not_run(tools, monkeypatch, found_by: str) -> None:
    good_tools(tools)
    (tools / "qemu-system-arm").unlink()
    program = tools / ("renode" if found_by == "PATH" else "my-renode")
    tool(tools, program.name, "echo 'no library'", "exit 1")
    if found_by == "RENODE_PATH":
        monkeypatch.setenv("RENODE_PATH", str(program))
    code, checks = doctor()
    assert code == 3 and checks["renode"]["place"] == str(program)
    assert "--version ended with code 1: no library" in checks["renode"]["problem"]
    program.write_text("no program of this machine")
    assert "can't be started" in doctor()[1]["renode"]["problem"]


def test_json_is_what_the_docs_say(tools) -> None:
    section = (
        (Path(__file__).parents[2] / "docs" / "json.md").read_text().partition("\n## doctor\n")[2].partition("\n## ")[0]
    )
    keys = {name for row in re.findall(r"^\| (`.*?`) \|", section, re.M) for name in re.findall(r"`(\w+)`", row)}
    assert all(set(check) == keys for check in doctor()[1].values())


def test_a_system_without_process_groups(tools, monkeypatch) -> None:
    """Windows: what runs modules is refused in words, and doctor says so; other commands run."""
    good_tools(tools)
    monkeypatch.delattr(os, "killpg")
    code, checks = doctor()
    assert code == 3 and checks["system"]["problem"] and "WSL" in checks["system"]["install"]
    Path("m.tflite").write_bytes(two_inputs())
    for words in (["verify"], ["verify", "--emulator", "host"], ["profile"]):
        result = CliRunner().invoke(main, [*words, "m.tflite", "--target", "cortex-m4"])
        assert result.exit_code == 2, result.output
        assert "don't run on this system; gen, report, explain" in result.stderr and "WSL" in result.stderr
    assert CliRunner().invoke(main, ["gen", "m.tflite", "--target", "host"]).exit_code == 0


def test_a_package_of_an_extra_that_is_not_installed(tools, monkeypatch) -> None:
    """Before anything is planned or built; each with the extra that has it."""
    good_tools(tools)
    Path("m.tflite").write_bytes(two_inputs())
    monkeypatch.setitem(sys.modules, "elftools", None)
    result = CliRunner().invoke(main, ["verify", "m.tflite", "--target", "cortex-m4"])
    assert result.exit_code == 3, result.output
    assert "pyelftools was not found" in result.stderr and "pip install '.[verify]'" in result.stderr


def test_each_package_is_of_the_extra_that_is_named() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for module, package in extras.PACKAGES.items():
        names = [re.split("[><=]", each)[0].lower() for each in project["optional-dependencies"][package.extra]]
        assert package.name.lower() in names, module


def test_optional_packages_are_imported_at_one_gate() -> None:
    """Nothing but toolchain/extras.py imports a package of an extra, unless for types alone."""
    for path in (ROOT / "tinyfuse").rglob("*.py"):
        if path.name in ("oracle_worker.py", "quantizer_worker.py", "extras.py"):  # workers run where it was found
            continue
        tree = ast.parse(path.read_text())
        typing = {id(n) for node in ast.walk(tree) if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
                  for n in ast.walk(node)}  # fmt: skip
        for node in ast.walk(tree):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            wrong = [name for name in names if name.partition(".")[0] in extras.PACKAGES and id(node) not in typing]
            assert not wrong, (path, wrong)
