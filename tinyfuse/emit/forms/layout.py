"""The module's C in the layout that forms ask for: in one folder, below src/, or in one file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from tinyfuse.emit.forms.base import Form, Layout

_INCLUDE = re.compile(r'\s*#\s*include\s+"([^"]+)"')


def layout_of(name: str, forms: Sequence[Form]) -> Layout:
    """The one layout that serves all of these forms."""
    in_src = any(form.in_src for form in forms)
    return Layout("src/" if in_src else "", f"src/{name}/" if in_src else "", any(form.single for form in forms))


def lay_out_files(name: str, c_files: Mapping[str, str], layout: Layout) -> dict[str, str]:
    """The C files by their places in the folder; `c_files` has them by their bare names."""
    if layout.single:
        c_files = {f"{name}.h": c_files[f"{name}.h"], f"{name}.c": _amalgamated(name, c_files)}
    return dict(zip(c_paths(name, c_files, layout), c_files.values(), strict=True))


def c_paths(name: str, c_files: Iterable[str], layout: Layout) -> list[str]:
    """Where C files of these bare names lie, in their order."""
    header = f"{name}.h"
    kept = [header, f"{name}.c"] if layout.single else c_files
    return [(layout.public if file == header else layout.private) + file for file in kept]


def _amalgamated(name: str, c_files: Mapping[str, str]) -> str:
    """NAME.c with every file of the module in the place of its first #include, but NAME.h; and the self-test and
    NAME_board.c, which nothing includes, at the end. Arrays of weights must be `static` already."""
    inner = {file: text for file, text in c_files.items() if file != f"{name}.h"}
    if f"{name}_weights.c" in inner:  # with --weights-blob there are none
        inner[f"{name}_weights.h"] = inner.pop(f"{name}_weights.c")
    seen: set[str] = set()
    roots = [file for file in (f"{name}.c", f"{name}_selftest.c", f"{name}_board.c") if file in inner]
    return "".join(line for file in roots for line in _expanded(file, inner, seen))


def _expanded(file: str, files: Mapping[str, str], seen: set[str]) -> Iterator[str]:
    """The lines of a file, with those of the files that it includes; of `files` each once."""
    seen.add(file)
    for line in files[file].splitlines(keepends=True):
        found = _INCLUDE.match(line)
        if found is None or found[1] not in files:
            yield line
        elif found[1] not in seen:
            yield from _expanded(found[1], files, seen)
