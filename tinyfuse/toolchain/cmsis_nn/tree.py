"""A CMSIS-NN tree: its version, its functions, and the files that some of these need."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tinyfuse.errors import UsageError

#: header that identifies a CMSIS-NN tree
API = Path("Include") / "arm_nnfunctions.h"
#: header of the functions that those of the API call
_SUPPORT = Path("Include") / "arm_nnsupportfunctions.h"

_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
# CMSIS-NN starts every definition in the first column: return type, name, parameters, brace
_FUNCTION = re.compile(
    r"^(?!static|__STATIC|typedef|return|else)[A-Za-z_][\w \t*]*?\b(\w+)\s*\([^;{}()]*\)\s*\{",
    re.MULTILINE,
)
_TABLE = re.compile(r"^(?:extern )?const \w+ (\w+)\s*\[[^;={]*=", re.MULTILINE)


@dataclass(frozen=True)
class Tree:
    """A CMSIS-NN tree; `path` contains Include/ and Source/.

    version       (major, minor) of the API, derived from the headers
    found_by      place where it was found, for people
    core_include  folder of CMSIS core's cmsis_compiler.h; None if this version needs none
    """

    path: Path
    version: tuple[int, int]
    found_by: str
    core_include: Path | None

    @property
    def include_dirs(self) -> list[Path]:
        """Include paths for code that calls CMSIS-NN, and for CMSIS-NN itself."""
        return [self.path / "Include", *([self.core_include] if self.core_include else [])]

    @cached_property
    def _sources(self) -> dict[Path, str]:
        """C sources of the tree with their text without comments, ordered by path."""
        return {path: read_without_comments(path) for path in sorted((self.path / "Source").rglob("*.c"))}

    @cached_property
    def _defined(self) -> dict[str, Path]:
        """Functions and tables with external linkage -> the source that defines them."""
        return {
            name: path
            for path, text in self._sources.items()
            for name in _FUNCTION.findall(text) + _TABLE.findall(text)
        }

    def functions(self) -> frozenset[str]:
        """Functions that the tree both declares and defines."""
        headers = [path for path in (self.path / API, self.path / _SUPPORT) if path.is_file()]
        declared = {name for path in headers for name in re.findall(r"\b(arm_\w+)\s*\(", read_without_comments(path))}
        return frozenset(declared & set(self._defined))

    def missing(self, functions: Iterable[str]) -> frozenset[str]:
        """Functions among `functions` that the tree lacks; a copy may be a part of CMSIS-NN."""
        return frozenset(functions) - self.functions()

    def closure(self, functions: Iterable[str]) -> list[Path]:
        """Sources (.c) that `functions` need, directly or not, ordered by path. UsageError if the tree lacks one of the
        functions.
        """
        lacking = self.missing(functions)
        if lacking:
            raise UsageError(
                f"CMSIS-NN {self.version[0]}.{self.version[1]} at {self.path} has no "
                f"{', '.join(sorted(lacking))} (hint: give a whole tree with --cmsis-nn, or "
                "--kernels auto)"
            )
        waiting, needed = set(functions), set()
        while waiting:
            path = self._defined[waiting.pop()]
            if path not in needed:
                needed.add(path)
                waiting |= set(re.findall(r"\w+", self._sources[path])) & set(self._defined)
        return sorted(needed)


def read_without_comments(path: Path) -> str:
    """Text of a C file with each comment replaced by a space."""
    return _COMMENT.sub(" ", path.read_text(errors="replace"))


def api_version(root: Path) -> tuple[int, int]:
    """Version of the API, derived from the headers: the .pdsc of a checkout says 0.0.0, and a copy has none.

    A release after 7.0 counts as 7.0. UsageError for one before 4.0.
    """
    api = (root / API).read_text(errors="replace")
    if "arm_cmsis_nn_status" not in api:
        raise UsageError(f"{root} is CMSIS-NN before 4.0, whose functions differ; take 4.0 or later")
    row_sums = re.search(r"\barm_vector_sum_s8\(([^)]*)\)", api)
    if "upscale_dims" in api:
        return 7, 0
    if row_sums and "lhs_offset" in row_sums[1]:
        return 6, 0
    if row_sums:
        return 5, 0
    if "arm_convolve_wrapper_s8_get_buffer_size_mve" in api:
        return 4, 1
    return 4, 0


def needs_core(root: Path) -> bool:
    """Tells whether the tree's headers include CMSIS core's: those of 4.0 do, later ones do not."""
    headers = (root / "Include").glob("*.h")
    return any('"cmsis_compiler.h"' in header.read_text(errors="replace") for header in headers)
