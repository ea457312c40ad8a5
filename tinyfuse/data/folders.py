"""Folders of data files: their samples one after the other, sorted by name."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tinyfuse.data.sources import Source
from tinyfuse.errors import UsageError
from tinyfuse.ir import Array

#: the most files in a folder
MAX_FILES = 1 << 20


@dataclass(frozen=True)
class FolderSource(Source):
    """Files of one kind, each with one or several samples."""

    files: tuple[Source, ...]

    def pieces(self, size: int) -> Iterator[Array]:
        for file in self.files:
            yield from file.pieces(size)


def folder_source(path: str, open_file: Callable[[str], Source]) -> FolderSource:
    """Source of the samples of a folder's files. UsageError if there are none, or if their numbers are of several
    kinds."""
    files = tuple(open_file(name) for name in folder_files(path))
    first = files[0]
    for file in files:
        if (file.dtype, file.frames, file.pixels) != (first.dtype, first.frames, first.pixels):
            raise UsageError(f"{path}: all files must have the same shape and dtype: {_told(first)}, {_told(file)}")
    return FolderSource(path, sum(file.count for file in files), first.frames, first.dtype, first.pixels, files)


def _told(file: Source) -> str:
    frames = f" in {file.frames} frames" if file.frames else ""
    return f"{Path(file.path).name} has {file.dtype}{frames}"


def folder_files(path: str) -> list[str]:
    """The files of a folder, and those of its folders, sorted by name; hidden ones are left out. UsageError where
    there are none, or too many."""
    found: list[str] = []
    try:
        for name in sorted(_visible(path)):
            place = os.path.join(path, name)
            if os.path.isdir(place):
                inner = (os.path.join(place, each) for each in sorted(_visible(place)))
                found += [each for each in inner if not os.path.isdir(each)]
            else:
                found.append(place)
            if len(found) > MAX_FILES:
                raise UsageError(f"{path}: more than {MAX_FILES:,} files")
    except OSError as error:
        raise UsageError(f"can't read {path}: {error.strerror or error}") from None
    if not found:
        raise UsageError(f"{path}: the folder has no files")
    return found


def _visible(path: str) -> Iterator[str]:
    with os.scandir(path) as entries:
        for entry in entries:
            if not entry.name.startswith("."):
                yield entry.name


def class_of_file(folder: str, file: str) -> str | None:
    """Class of a file: the name of the subfolder of `folder` in which it lies; None for a file in `folder` itself."""
    inner = Path(file).relative_to(folder).parts
    return inner[0] if len(inner) > 1 else None
