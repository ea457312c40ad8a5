"""Finds CMSIS-NN trees, and the CMSIS core headers that version 4.0 needs."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path

from tinyfuse.errors import ToolMissing, UsageError
from tinyfuse.toolchain.cmsis_nn.packs import packs, unpack, versions
from tinyfuse.toolchain.cmsis_nn.tree import API, Tree, api_version, needs_core

HOW_TO_GET = (
    "run: tinyfuse cmsis-nn install; or clone https://github.com/ARM-software/CMSIS-NN and "
    "give it as --cmsis-nn PATH or CMSIS_NN_PATH; a part of 4.0 comes with: pip install bakenn==1.0.0"
)


def how_to_get(kernels: str) -> str:
    """Hint at how to get CMSIS-NN, for a module that calls it; with --kernels mixed also at how to avoid it."""
    return HOW_TO_GET + ("; or have it call none of it: --kernels auto" if kernels == "mixed" else "")


#: places of the tree inside a folder that the user names: the folder itself, a copy, CMSIS 5
_TREE_INSIDE = ("", "CMSIS-NN", "cmsis-nn", "cmsis_nn", "CMSIS/NN")
#: places of CMSIS core's headers inside a tree, the folder around it, or a folder that the user names
_CORE_INSIDE = (
    "", "Include", "core", "cmsis_core/Include", "Core/Include", "CMSIS/Core/Include",
    "CMSIS_6/CMSIS/Core/Include", "CMSIS_5/CMSIS/Core/Include",
)  # fmt: skip


def find_cmsis_nn(path: str | None, wanted: tuple[int, int] | None = None) -> Tree | None:
    """Tree at `path`, else the first one found; None if there is none.

    Among several packs, one of the `wanted` version is preferred. UsageError if `path` or CMSIS_NN_PATH holds no tree,
    or one older than 4.0; ToolMissing if the tree needs CMSIS core and that is not found.
    """
    for option, given in (("--cmsis-nn", path), ("CMSIS_NN_PATH", os.environ.get("CMSIS_NN_PATH"))):
        if given:
            return _open(named_tree(given, option), option)
    found = [root for root in packs("CMSIS-NN") if (root / API).is_file()]
    for root in found:
        if wanted is None or api_version(root) == wanted:
            return _open(root, "CMSIS-Pack")
    if found:
        return _open(found[0], "CMSIS-Pack")
    vendored = _bakenn()
    return _open(vendored / "cmsis_nn", "PyPI package bakenn") if vendored else None


def named_tree(given: str, option: str = "--cmsis-nn") -> Path:
    """Tree at a path that the user gave. UsageError if there is none."""
    if not Path(given).exists():
        raise UsageError(f"{option} {given}: there is no such file or folder")
    root = _tree_at(Path(given))
    if root is None:
        inside = ", ".join(f"{folder}/" for folder in _TREE_INSIDE if folder)
        raise UsageError(
            f"{option} {given} holds no CMSIS-NN: no {API.as_posix()} in the folder itself, in its {inside} "
            "or in a version of a pack"
        )
    return root


def _tree_at(given: Path) -> Path | None:
    """Tree that the user means: a folder that is or contains one, a pack's folder, or a .pack file."""
    if given.is_file():
        given = unpack(given)
    candidates = [given / inside for inside in _TREE_INSIDE]
    candidates += [p if p.is_dir() else unpack(p) for p in versions(given)[:1]]
    return next((root for root in candidates if (root / API).is_file()), None)


def _open(root: Path, found_by: str) -> Tree:
    root = root.resolve()
    version = api_version(root)
    return Tree(root, version, found_by, _core_include(root) if needs_core(root) else None)


def _core_include(root: Path) -> Path:
    """Folder of cmsis_compiler.h for the tree at `root`. ToolMissing if there is none."""

    def places() -> Iterator[Path]:
        yield from (root, root.parent)
        if os.environ.get("CMSIS_PATH"):
            yield Path(os.environ["CMSIS_PATH"])
        yield from packs("CMSIS")
        vendored = _bakenn()
        if vendored:
            yield vendored

    for place in places():
        for inside in _CORE_INSIDE:
            if (place / inside / "cmsis_compiler.h").is_file():
                return (place / inside).resolve()
    raise ToolMissing(
        "cmsis_compiler.h",
        f"the CMSIS-NN at {root} needs CMSIS core; install the CMSIS-Pack ARM::CMSIS, or set "
        "CMSIS_PATH to a checkout of https://github.com/ARM-software/CMSIS_6",
    )


def _bakenn() -> Path | None:
    """Folder with the copies of CMSIS-NN and CMSIS core in the PyPI package bakenn, found without importing it."""
    spec = importlib.util.find_spec("bakenn")
    for location in (spec.submodule_search_locations or ()) if spec else ():
        vendored = Path(location) / "backend" / "cmsis_nn" / "vendor"
        if (vendored / "cmsis_nn" / API).is_file():
            return vendored
    return None
