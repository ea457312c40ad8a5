"""Compilations of a test run, by content: most firmware has the harness, and often the module, of another test's.

A file of C depends on the compiler, its arguments, and the headers that it includes; paths are no part of the key but
by what lies there, so that tests find what others made in folders of their own.

Programs for this machine are not optimized: what runs for milliseconds compiles for seconds, four times as long as so.
What users get, test_cli.py's processes verify.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from tinyfuse.verify.emulation.compilers import Compiler

_INCLUDE = re.compile(r'^\s*#\s*include\s+(?:["<]([^">]+)[">]|(\w+))', re.MULTILINE)

Run = Callable[[Compiler, Sequence[str | Path], str, Path], None]


def cached_in(folder: Path, run: Run) -> Run:
    """Wraps Compiler.run: takes objects of C files from `folder` if they are there, and doesn't optimize those with
    sanitizers."""

    def compile_once(compiler: Compiler, arguments: Sequence[str | Path], what: str, work: Path) -> None:
        if any(flag.startswith("-fsanitize") for flag in compiler.flags):
            compiler = replace(compiler, flags=tuple("-O0" if flag == "-O1" else flag for flag in compiler.flags))
        words = list(map(str, arguments))
        if words[-4:-3] != ["-c"] or not words[-3].endswith(".c"):
            run(compiler, arguments, what, work)
            return
        known = folder / _key(compiler, words[:-4], Path(words[-3]))
        if not known.exists():
            run(compiler, arguments, what, work)
            folder.mkdir(parents=True, exist_ok=True)
            # whole or not at all: the other worker reads and writes here
            with tempfile.NamedTemporaryFile(dir=folder, delete=False) as partial:
                partial.write((work / words[-1]).read_bytes())
            os.replace(partial.name, known)
        else:
            shutil.copyfile(known, work / words[-1])

    return compile_once


def _key(compiler: Compiler, words: Sequence[str], source: Path) -> str:
    digest = hashlib.sha256(repr((compiler.program, compiler.version, compiler.flags, source.name)).encode())
    folders = []
    previous = ""
    for word in words:
        if previous == "-isystem":
            folders.append(Path(word))
        elif word.startswith("-I"):
            folders.append(Path(word[2:]))
        else:
            digest.update(f"\0{word}".encode())
        previous = word
    for name, content in sorted((file.name, file.read_bytes()) for file in _read(source, folders)):
        digest.update(f"\0{name}\0".encode() + content)
    return f"{digest.hexdigest()}.o"


def _read(source: Path, folders: Sequence[Path]) -> set[Path]:
    """Files that a compilation of `source` may read, except the compiler's own headers: all includes under any
    condition, and all of `folders` if a macro names the file."""
    found, todo = {source}, [source]
    while todo:
        file = todo.pop()
        for name, macro in _INCLUDE.findall(file.read_text()):
            if macro:
                named = {header for folder in (source.parent, *folders) for header in folder.rglob("*.h")}
            else:
                places = (folder / name for folder in (file.parent, *folders))
                named = {next((path for path in places if path.is_file()), source)}
            todo += named - found
            found |= named
    return found
