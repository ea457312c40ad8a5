"""Finds CMSIS-Packs on this machine: unpacked ones, and the .pack files of cmsis-pack-manager."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from tinyfuse.errors import UsageError
from tinyfuse.resources import cache_folder

#: files of a pack that are unpacked: sources, headers, licences; others are documentation and tests
_WANTED = re.compile(r"(Include|Source|CMSIS/Core/Include)/.+|LICEN[CS]E[^/]*|NOTICE[^/]*")


def pack_roots() -> Iterator[Path]:
    """Yields folders with the layout VENDOR/PACK/VERSION or VENDOR/PACK/VERSION.pack: CMSIS-Toolbox's root, and
    cmsis-pack-manager's cache on each system."""
    home, local = Path.home(), os.environ.get("LOCALAPPDATA")
    if os.environ.get("CMSIS_PACK_ROOT"):
        yield Path(os.environ["CMSIS_PACK_ROOT"])
    yield Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache") / "arm" / "packs"
    yield Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share") / "cmsis-pack-manager"
    yield home / "Library" / "Application Support" / "cmsis-pack-manager"
    if local:
        yield Path(local) / "Arm" / "Packs"
        yield Path(local) / "cmsis-pack-manager" / "cmsis-pack-manager"


def packs(name: str) -> Iterator[Path]:
    """Yields the folders of Arm's pack `name`: root by root, in each the newest version first."""
    for root in pack_roots():
        for found in versions(root / "ARM" / name):
            yield found if found.is_dir() else unpack(found)


def versions(pack: Path) -> list[Path]:
    """Versions in a pack's folder (7.0.0/ or 7.0.0.pack), newest first."""
    if not pack.is_dir():
        return []
    numbered = re.compile(r"\d+\.\d+\.\d+([-+].*)?(\.pack)?")
    found = [path for path in pack.iterdir() if numbered.fullmatch(path.name)]

    def order(path: Path) -> tuple[list[int], bool]:
        return [int(number) for number in path.name.split(".")[:2]], path.is_dir()

    return sorted(found, key=lambda path: (order(path), path.name), reverse=True)


def unpack(pack: Path) -> Path:
    """Unpacks a .pack file's sources below XDG_CACHE_HOME, once, and returns their folder. UsageError if the file is no
    pack.
    """
    stat = pack.stat()
    cache = cache_folder("packs")
    folder = cache / f"{pack.parent.name}-{pack.stem}-{stat.st_size:x}-{stat.st_mtime_ns:x}"
    if folder.is_dir():
        return folder
    cache.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(dir=cache))
    try:
        with zipfile.ZipFile(pack) as archive:
            archive.extractall(partial, [name for name in archive.namelist() if _WANTED.fullmatch(name)])
        partial.replace(folder)
    except zipfile.BadZipFile as error:
        raise UsageError(f"{pack} is not a CMSIS-Pack: {error}") from error
    except OSError:
        if not folder.is_dir():  # if it exists, another process was faster
            raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return folder
