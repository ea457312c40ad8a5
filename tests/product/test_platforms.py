"""`gen` and `report` don't depend on locale, system encoding or simple paths; shells complete commands."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from test_generated_code import separable

#: Python's own strictness: opening text without naming its encoding is an error
STRICT = [sys.executable, "-X", "warn_default_encoding", "-W", "error::EncodingWarning", "-m", "tinyfuse"]


def tinyfuse(folder: Path, *arguments: str, **variables: str) -> str:
    environment = os.environ | {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", **variables}
    done = subprocess.run([*STRICT, *arguments], cwd=folder, env=environment, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return done.stdout.decode()


def test_gen_and_report_without_a_locale(tmp_path: Path) -> None:
    """Names that the locale can't write, and spaces; the same files as anywhere."""
    odd = tmp_path / "m\u00f6del folder \u6a21"
    odd.mkdir()
    (odd / "net 1 \u00e9.tflite").write_bytes(separable())
    (tmp_path / "net_1.tflite").write_bytes(separable())
    given = ["--target", "cortex-m4", "--name", "net", "--format", "zephyr", "--format", "arduino"]
    tinyfuse(odd, "gen", "net 1 \u00e9.tflite", *given, "-o", "\u00f6ut")
    tinyfuse(tmp_path, "gen", "net_1.tflite", *given, "-o", "plain")
    named = ("manifest.json", "report.txt")  # they name the model's file
    for path in (path for path in (tmp_path / "plain").rglob("*") if path.is_file() and path.name not in named):
        assert (odd / "\u00f6ut" / path.relative_to(tmp_path / "plain")).read_bytes() == path.read_bytes(), path
    told = json.loads(tinyfuse(odd, "report", "net 1 \u00e9.tflite", "--target", "cortex-m4", "--json"))
    assert told["arena_bytes"] > 0


def test_temporary_files_go_where_the_system_says(tmp_path: Path) -> None:
    """No file remains there or beside the model."""
    (tmp_path / "net.tflite").write_bytes(separable())
    (tmp_path / "temporary files").mkdir()
    tinyfuse(tmp_path, "report", "net.tflite", "--target", "cortex-m4", TMPDIR=str(tmp_path / "temporary files"))
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["net.tflite", "temporary files"]


@pytest.mark.parametrize("shell, words, offered", [
    ("bash", ["ge"], {"gen"}),
    ("bash", ["gen", "net.tflite", "--format", "ar"], {"arduino"}),
    ("zsh", ["verify", "net.tflite", "--target", "cortex-m55"], {"cortex-m55", "cortex-m55+nofp", "cortex-m55+nomve"}),
    ("fish", ["report", "--ht"], {"--html"}),
])  # fmt: skip
def test_shells_complete(shell: str, words: list[str], offered: set[str], tmp_path: Path) -> None:
    """Calls what the shell configuration in docs/start.md calls."""
    given = {
        "_TINYFUSE_COMPLETE": f"{shell}_complete",
        "COMP_WORDS": " ".join(["tinyfuse", *words]),
        "COMP_CWORD": str(len(words)),
    }
    if shell == "fish":
        given["COMP_CWORD"] = words[-1]
    command = [str(Path(sys.executable).parent / "tinyfuse")]
    said = subprocess.run(
        command, env=os.environ | given, cwd=tmp_path, capture_output=True, text=True, timeout=60
    ).stdout
    found = {line.split(",", 1)[-1].split("\t")[0] for line in said.splitlines()}
    assert offered <= found, said
