"""The checks of .pre-commit-config.yaml pass for every file of the checkout, and their tools are installed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from docs_blocks import ROOT

CONFIG = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
HOOKS = {hook["id"]: hook for repository in CONFIG["repos"] for hook in repository["hooks"]}
BIN = Path(sys.executable).parent


def _tracked(but: str) -> list[str]:
    """Text files of the repository, without those that match."""
    listed = subprocess.run(["git", "grep", "-lI", ""], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        pytest.skip("needs a git checkout")
    return [name for name in listed.stdout.splitlines() if not re.search(but, name)]


def test_python_is_formatted() -> None:
    done = subprocess.run([BIN / "ruff", "format", "--check", "."], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("command", [["ruff", "check", "."], ["mypy", "--strict", "tinyfuse"]], ids=" ".join)
def test_code_is_clean(command: list[str]) -> None:
    done = subprocess.run([BIN / command[0], *command[1:]], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout[-6000:]}{done.stderr[-2000:]}"


@pytest.mark.parametrize("hook", ["end-of-file", "trailing-whitespace"])
def test_text_files_end_as_they_should(hook: str, tmp_path: Path) -> None:
    """These two hooks change files, so they get copies."""
    names = _tracked(HOOKS[hook].get("exclude", "^$"))
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    program = BIN / Path(HOOKS[hook]["entry"]).name
    done = subprocess.run([program, *names], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_hooks_tools_are_those_of_the_tests() -> None:
    for name, hook in HOOKS.items():
        folder, _, program = hook["entry"].split()[0].rpartition("/")
        assert folder == ".venv-test/bin", name
        assert (BIN / program).is_file(), name
