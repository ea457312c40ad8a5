"""The fenced blocks of the pages, and the commands in them.

A block of the language sh, bash, console or python is run. What is written above its fence says otherwise:

    <!-- not run: REASON -->    it can't run in a test; the reason is printed
    <!-- file: NAME -->         a block of any language: it is written to that file before what follows it runs

In a console block "$ " begins a command ("> " goes on with it), and other lines are what it prints. There "..."
stands for any text, and alone on a line for any lines.

The shell runs what needs one. Lines of `tinyfuse` alone that come before run in this process: what starts one is
compiled and imported, and other tests start many.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path

from click.testing import CliRunner

from tinyfuse.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
#: languages whose blocks are run
RUN = ("sh", "bash", "console", "python")

_FENCE = re.compile(r"(?P<indent> *)```(?P<language>\S*)[^\n]*\n(?P<text>.*?)\n?(?P=indent)```", re.DOTALL)
_BLOCK = re.compile(rf"^(?: *<!-- (?P<marker>[^\n]*?) -->\n+)?{_FENCE.pattern}$", re.DOTALL | re.MULTILINE)
_MARKER = re.compile(r"(not run|file): (.+)")
#: what a shell would do more than split words at
_SHELL = re.compile(r"[|&;<>$`*?(){}!~\n]")


@dataclass(frozen=True)
class Block:
    """A fenced block: the page's path below the checkout, the line of its first line of text, and its marker."""

    page: str
    line: int
    language: str
    text: str
    not_run: str | None = None
    file: str | None = None

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def pages() -> list[str]:
    """Every page that people read, below the checkout."""
    found = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]
    return sorted(str(path.relative_to(ROOT)) for path in found)


def blocks(page: str) -> list[Block]:
    """The fenced blocks of a page, in order."""
    return blocks_of(page, (ROOT / page).read_text())


def blocks_of(page: str, text: str) -> list[Block]:
    found = []
    for match in _BLOCK.finditer(text):
        line = text.count("\n", 0, match.start("text")) + 1
        marker = _MARKER.fullmatch(match["marker"] or "")
        told = {marker[1].replace(" ", "_"): marker[2].strip()} if marker else {}
        body = re.sub(rf"^{match['indent']}", "", match["text"], flags=re.MULTILINE)
        found.append(Block(page, line, match["language"], body, **told))
    return found


def commands(block: Block) -> list[tuple[str, str]]:
    """Commands of the block, and their expected outputs ("" if the page doesn't show one)."""
    if block.language != "console":
        return [(block.text, "")]
    found: list[tuple[str, str]] = []
    for line in block.text.split("\n"):
        if line.startswith("$ "):
            found.append((line[2:], ""))
        elif line.startswith("> ") and found and not found[-1][1]:
            found[-1] = (f"{found[-1][0]}\n{line[2:]}", "")
        else:
            assert found, f"{block}: a console block begins with '$ '"
            found[-1] = (found[-1][0], f"{found[-1][1]}{line}\n")
    return found


def differs(shown: str, printed: str) -> bool:
    """Tells whether the output differs from the page. Spaces at the ends of lines don't count."""
    pattern = "".join(_pattern(line.rstrip()) for line in shown.rstrip().split("\n"))
    text = "".join(f"{line.rstrip()}\n" for line in printed.rstrip().split("\n"))
    return re.fullmatch(pattern, text) is None


def _pattern(line: str) -> str:
    if line.strip() == "...":
        return r"(?:[^\n]*\n)*"
    return re.escape(line).replace(re.escape("..."), r"[^\n]*") + "\n"


def environment() -> dict[str, str]:
    """Environment in which the tests' own Python and tinyfuse come first and output goes to no terminal."""
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return os.environ | {"PATH": programs, "PYTHONPATH": str(ROOT), "COLUMNS": "100"}


def run(block: Block, folder: Path) -> None:
    """Runs a block in a folder. AssertionError with the output if it fails or prints something else."""
    if block.language == "python":
        (folder / ".block.py").write_text(block.text)
        _ended(["python", ".block.py"], block, folder)
        return
    for command, shown in commands(block):
        plain, rest = split(command)
        printed = "".join(_here(words, block, folder) for words in plain)
        if rest:
            printed += _ended(["bash", "-e", "-o", "pipefail", "-c", rest], block, folder)
        assert not shown or not differs(shown, printed), f"{block} shows\n{shown}\nbut `{command}` prints\n{printed}"


def split(command: str) -> tuple[list[list[str]], str]:
    """The words of each line that calls `tinyfuse` and needs no shell, up to the first other line, and the remaining
    text."""
    plain, rest = [], command
    while rest:
        first = re.match(r"(?:[^\n]|(?<=\\)\n)*", rest)[0]
        line = re.sub(r"\\\n|\s#[^\n]*", " ", first)
        if not line.startswith("tinyfuse ") or _SHELL.search(line):
            break
        plain.append(shlex.split(line)[1:])
        rest = rest[len(first) :].lstrip("\n")
    return plain, rest


def _here(words: list[str], block: Block, folder: Path) -> str:
    with chdir(folder):
        done = CliRunner(env=environment()).invoke(main, words, prog_name="tinyfuse")
    said = f"{block}: tinyfuse {shlex.join(words)} ends with {done.exit_code}:\n{done.output}"
    assert done.exit_code == 0, f"{said}\n{done.exception!r}"
    return done.output


def _ended(command: list[str], block: Block, folder: Path) -> str:
    done = subprocess.run(
        command, cwd=folder, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300
    )
    assert done.returncode == 0, f"{block} ends with {done.returncode}:\n{block.text}\n{done.stdout}"
    return done.stdout
