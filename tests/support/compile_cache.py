"""Compilations of a test run, by content: most firmware has the harness, and often the module, of another test's.

A file of C depends on the compiler, its arguments, and the headers in the folders that it may include from; paths
are no part of the key but by what lies there, so that tests find what others made in folders of their own.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from tinyfuse.verify.emulation.build import Compiler

Run = Callable[[Compiler, Sequence[str | Path], str, Path], None]


def cached_in(folder: Path, run: Run) -> Run:
    """`run`, which is Compiler.run, but objects of C files come from `folder` where it has them."""

    def compile_once(compiler: Compiler, arguments: Sequence[str | Path], what: str, work: Path) -> None:
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
    digest.update(source.read_bytes())
    folders = [source.parent]
    previous = ""
    for word in words:
        if previous == "-isystem":
            folders.append(Path(word))
        elif word.startswith("-I"):
            folders.append(Path(word[2:]))
        else:
            digest.update(f"\0{word}".encode())
        previous = word
    for folder in folders:
        for header in sorted(folder.rglob("*.h")):
            digest.update(f"\0{header.relative_to(folder)}\0".encode())
            digest.update(header.read_bytes())
    return f"{digest.hexdigest()}.o"
