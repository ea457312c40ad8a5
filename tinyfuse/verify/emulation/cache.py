"""A cache of object files of CMSIS-NN, by content: many verifications compile it once."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from tinyfuse.resources import cache_folder, write_cache


class ObjectCache:
    """Keeps objects under XDG_CACHE_HOME. An object's key covers all it was made of: source,
    compiler, options, and every header that could be included. A folder that can't be written
    makes it a cache that keeps nothing."""

    def __init__(self, compiler: Sequence[str], include_dirs: Iterable[Path]):
        self._folder = cache_folder("objects")
        digest = hashlib.sha256(repr(list(compiler)).encode())
        for folder in include_dirs:
            for header in sorted(folder.rglob("*.h")):
                digest.update(f"\0{header.relative_to(folder)}\0".encode())
                digest.update(header.read_bytes())
        self._common = digest

    def _path(self, source: Path, options: Sequence[str]) -> Path:
        digest = self._common.copy()
        digest.update(repr((source.name, list(options))).encode())
        digest.update(source.read_bytes())
        return self._folder / f"{digest.hexdigest()}.o"

    def fetch(self, source: Path, options: Sequence[str], object_file: Path) -> bool:
        """Puts the object for `source` at `object_file`; False where it isn't known."""
        try:
            shutil.copyfile(self._path(source, options), object_file)
        except OSError:
            return False
        return True

    def store(self, source: Path, options: Sequence[str], object_file: Path) -> None:
        with suppress(OSError):
            write_cache(object_file.read_bytes(), self._path(source, options))
