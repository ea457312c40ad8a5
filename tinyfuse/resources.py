"""Folders of the installation: templates/, targets/ and runtime_c/ lie beside the package in a checkout, inside it in
an install (pyproject.toml maps them there). Also the cache for results that take long to make."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

#: folder of the package
PACKAGE = Path(__file__).resolve().parent


def resource_dir(name: str) -> Path:
    """Folder of that name ("templates", "targets", "runtime_c", "firmware")."""
    for base in (PACKAGE / "_data", PACKAGE.parent):
        if (base / name).is_dir():
            return base / name
    raise AssertionError(f"this installation lacks its {name} folder")


def cache_folder(name: str) -> Path:
    """Folder `name` of tinyfuse's cache, in XDG_CACHE_HOME. It may be missing; without a home directory, reading and
    writing there raise OSError."""
    return Path(os.environ.get("XDG_CACHE_HOME") or _home() / ".cache") / "tinyfuse" / name


def write_cache(content: bytes, place: Path) -> None:
    """Writes a file to the cache atomically, because other processes read and write there. Does nothing if it cannot be
    written."""
    with suppress(OSError):
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=place.parent, delete=False) as partial:
            partial.write(content)
        os.replace(partial.name, place)


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError:  # a container's user id without a name
        return Path(os.devnull)
