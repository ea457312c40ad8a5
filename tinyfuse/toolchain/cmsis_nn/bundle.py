"""Collects the files of CMSIS-NN that `--bundle` copies into a module's folder."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from tinyfuse.toolchain.cmsis_nn.tree import API, Tree

_INCLUDE = re.compile(r'^\s*#\s*include\s+["<]([^">]+)[">]', re.MULTILINE)
_LICENCE = re.compile(r"(LICEN[CS]E|NOTICE|\w*PROVENANCE)(\.\w+)?", re.IGNORECASE)


def bundle(tree: Tree, functions: Iterable[str]) -> dict[str, Path]:
    """Files by their name below the module's folder: sources that `functions` need, headers included by these,
    licences. UsageError if the tree lacks a function."""
    sources = tree.closure(functions)
    files = {}
    for path in [*sources, *_headers([tree.path / API, *sources], tree.include_dirs)]:
        core = tree.core_include
        base, prefix = (core, "core/") if core is not None and path.is_relative_to(core) else (tree.path, "")
        files[f"cmsis-nn/{prefix}{path.relative_to(base).as_posix()}"] = path
    files |= {f"cmsis-nn/{path.name}": path for path in _licences(tree.path)}
    if tree.core_include is not None:
        files |= {f"cmsis-nn/core/{path.name}": path for path in _licences(tree.core_include)}
    return dict(sorted(files.items()))


def _headers(files: list[Path], include_dirs: list[Path]) -> list[Path]:
    """Headers in `include_dirs` that `files` include, directly or not."""
    waiting, found = list(files), set()
    while waiting:
        current = waiting.pop()
        for name in _INCLUDE.findall(current.read_text(errors="replace")):
            for folder in (current.parent, *include_dirs):
                header = (folder / name).resolve()
                if header.is_file() and any(header.is_relative_to(d) for d in include_dirs):
                    if header not in found:
                        found.add(header)
                        waiting.append(header)
                    break
    return sorted(found)


def _licences(folder: Path) -> list[Path]:
    """Licence, notices and provenance, from the folder or the nearest folder above that has some."""
    for place in (folder, *list(folder.parents)[:3]):
        found = sorted(path for path in place.iterdir() if _LICENCE.fullmatch(path.name))
        if found:
            return found
    return []
