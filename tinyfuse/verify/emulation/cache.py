"""Cache of object files by content, so that many verifications compile CMSIS-NN and the harness's port once."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from tinyfuse.resources import cache_folder, write_cache


class ObjectCache:
    """Cache of objects below XDG_CACHE_HOME. The key covers source, compiler, options, and every header that could be
    included. If the folder cannot be written, nothing is kept."""

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
        """Copies the cached object for `source` to `object_file`. Returns False if there is none."""
        try:
            shutil.copyfile(self._path(source, options), object_file)
        except OSError:
            return False
        return True

    def store(self, source: Path, options: Sequence[str], object_file: Path) -> None:
        with suppress(OSError):
            write_cache(object_file.read_bytes(), self._path(source, options))
