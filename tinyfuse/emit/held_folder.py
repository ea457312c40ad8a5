"""A folder that stays open, so that files in it can be reached without following links.

Another process may exchange a subfolder for a link between a check and a write; a path would then lead out of the
folder. Each step from the open folder down refuses links. Paths are used on systems without such calls (Windows).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType

_HAS_DESCRIPTORS = {os.open, os.mkdir, os.unlink, os.rmdir, os.rename} <= os.supports_dir_fd
_FOLDER = (os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW) if _HAS_DESCRIPTORS else 0


class HeldFolder:
    """A folder, open until the end of a `with` block. Names are relative, with "/" between their parts."""

    def __init__(self, path: Path):
        """`path` may not be a link. OSError if it is no folder."""
        self._path = path
        self._handle = os.open(path, _FOLDER) if _HAS_DESCRIPTORS else None

    def __enter__(self) -> HeldFolder:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._handle is not None:
            os.close(self._handle)

    def write(self, name: str, data: bytes) -> None:
        """Writes a new file, and the folders above it."""

        def opener(path: str, flags: int) -> int:
            return os.open(path, flags, 0o666, dir_fd=handle)

        with self._above(name, make=True) as (handle, place), open(place, "xb", opener=opener) as file:
            file.write(data)

    def take(self, other: HeldFolder, name: str) -> None:
        """Moves a file from another folder to the same place in this one, and replaces an existing file."""
        with other._above(name) as (source, there), self._above(name, make=True) as (target, here):
            os.replace(there, here, src_dir_fd=source, dst_dir_fd=target)

    def remove(self, name: str) -> None:
        """Removes a file, and the folders above it that become empty. Does nothing if they are gone."""
        with suppress(FileNotFoundError), self._above(name) as (handle, place):
            os.unlink(place, dir_fd=handle)
        *above, _ = name.split("/")
        while above:
            try:
                with self._above("/".join(above)) as (handle, place):
                    os.rmdir(place, dir_fd=handle)
            except FileNotFoundError:
                pass
            except OSError:  # not empty
                return
            above.pop()

    @contextmanager
    def _above(self, name: str, make: bool = False) -> Iterator[tuple[int | None, str | Path]]:
        """Yields (descriptor of the folder that contains the file, last part of its name), for functions with `dir_fd`;
        or (None, its path) on systems without these."""
        *above, last = name.split("/")
        if self._handle is None:
            if make:
                self._path.joinpath(*above).mkdir(parents=True, exist_ok=True)
            yield None, self._path / name
            return
        handle = os.dup(self._handle)
        try:
            for part in above:
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(part, dir_fd=handle)
                below = os.open(part, _FOLDER, dir_fd=handle)
                os.close(handle)
                handle = below
            yield handle, last
        finally:
            os.close(handle)
