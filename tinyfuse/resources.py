"""Where templates/, targets/ and runtime_c/ are: beside the package in a checkout, inside it in
an install (pyproject.toml maps them there). And where what takes long to make is kept."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

#: the folder of the package itself
PACKAGE = Path(__file__).resolve().parent


def resource_dir(name: str) -> Path:
    """The folder of that name ("templates", "targets", "runtime_c", "firmware")."""
    for base in (PACKAGE / "_data", PACKAGE.parent):
        if (base / name).is_dir():
            return base / name
    raise AssertionError(f"this installation lacks its {name} folder")


def cache_folder(name: str) -> Path:
    """The folder `name` of tinyfuse's cache, in XDG_CACHE_HOME. It need not exist, and whoever has no home has one that
    can't: to read and to write there are an OSError then."""
    return Path(os.environ.get("XDG_CACHE_HOME") or _home() / ".cache") / "tinyfuse" / name


def keep(content: bytes, place: Path) -> None:
    """Puts a file to its place in the cache, whole or not at all, for other processes read and write there. Where
    nothing can be written, nothing is kept."""
    with suppress(OSError):
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=place.parent, delete=False) as partial:
            partial.write(content)
        os.replace(partial.name, place)


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError:  # a container's user whose number has no name
        return Path(os.devnull)
