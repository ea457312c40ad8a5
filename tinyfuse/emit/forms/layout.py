"""Layout of a module's C as the forms need it: one folder, a folder below src/, or one file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from tinyfuse.emit.forms.base import Form, Layout

_INCLUDE = re.compile(r'\s*#\s*include\s+"([^"]+)"')


def layout_of(name: str, forms: Sequence[Form]) -> Layout:
    """Layout that serves all of these forms."""
    in_src = any(form.in_src for form in forms)
    return Layout("src/" if in_src else "", f"src/{name}/" if in_src else "", any(form.single for form in forms))


def lay_out_files(name: str, c_files: Mapping[str, str], layout: Layout) -> dict[str, str]:
    """Texts of the C files by path in the folder; `c_files` has them by bare name."""
    if layout.single:
        c_files = {f"{name}.h": c_files[f"{name}.h"], f"{name}.c": _amalgamated(name, c_files)}
    return dict(zip(c_paths(name, c_files, layout), c_files.values(), strict=True))


def c_paths(name: str, c_files: Iterable[str], layout: Layout) -> list[str]:
    """Paths of C files with these bare names, in the same order."""
    header = f"{name}.h"
    kept = [header, f"{name}.c"] if layout.single else c_files
    return [(layout.public if file == header else layout.private) + file for file in kept]


def _amalgamated(name: str, c_files: Mapping[str, str]) -> str:
    """Text of NAME.c with each included file of the module but NAME.h in place of its first #include.

    The self-test and NAME_board.c, which nothing includes, come last. Arrays of weights must be `static` already.
    """
    inner = {file: text for file, text in c_files.items() if file != f"{name}.h"}
    if f"{name}_weights.c" in inner:  # with --weights-blob there are none
        inner[f"{name}_weights.h"] = inner.pop(f"{name}_weights.c")
    seen: set[str] = set()
    roots = [file for file in (f"{name}.c", f"{name}_selftest.c", f"{name}_board.c") if file in inner]
    return "".join(line for file in roots for line in _expanded(file, inner, seen))


def _expanded(file: str, files: Mapping[str, str], seen: set[str]) -> Iterator[str]:
    """Yields the lines of a file, with each #include of `files` replaced by that file's lines once."""
    seen.add(file)
    for line in files[file].splitlines(keepends=True):
        found = _INCLUDE.match(line)
        if found is None or found[1] not in files:
            yield line
        elif found[1] not in seen:
            yield from _expanded(found[1], files, seen)
