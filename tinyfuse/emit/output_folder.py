"""Writes the generated folder: completely or not at all, and never over other people's files.

An existing folder is updated file by file. Until the update is complete, a journal in the folder
(tinyfuse/emit/manifest.py) records old and new contents, so that the run after a stopped one can finish the update.
Links inside the folder are never followed.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tinyfuse.emit.held_folder import HeldFolder
from tinyfuse.emit.manifest import (
    JOURNAL,
    MANIFEST,
    STAGING,
    BadManifest,
    Known,
    digest,
    is_safe,
    journal_text,
    parents,
    read_known,
)
from tinyfuse.errors import UsageError

#: bytes; larger files cannot be ours, and are not read
_MOST_BYTES = 1 << 30

#: file names that a message lists
_SHOWN = 8

#: seconds to wait for another run that writes into the same parent folder
_PATIENCE = 60.0


def write_folder(folder: Path, files: dict[str, bytes], force: bool) -> None:
    """Writes `files` (relative path -> content, including the manifest) into `folder`.

    A new folder appears under its name only when it is complete. If the folder has our manifest, unchanged files keep
    their times, changed files are replaced atomically one by one, and files that are no longer made are removed. The
    manifest is always replaced, so its time is that of the last run.

    Raises UsageError before anything is changed:

    - if the folder holds files that our manifest does not list or that were edited, unless `force`
    - if a manifest, a name or a link leads out of the folder
    - if the folder cannot be written
    """
    for name in files:
        if not is_safe(name):
            raise UsageError(f"{name!a} can't be the name of a generated file")
    try:
        if folder.is_symlink() and not folder.exists():
            raise UsageError(f"{folder} is a link to something that does not exist; choose another folder with -o")
        if folder.exists() and not folder.is_dir():
            raise UsageError(f"{folder} exists and is not a folder; choose another with -o")
        # the folder itself may be a link: the user named it
        place = Path(os.path.realpath(folder))
        place.parent.mkdir(parents=True, exist_ok=True)
        with _locked_parent(place.parent):
            if place.exists():
                _update(place, files, _known_files(folder, place, files, force))
            else:
                _create(place, files)
    except OSError as error:
        raise UsageError(f"can't write {folder}: {error.strerror or error}") from error


@contextmanager
def _locked_parent(parent: Path) -> Iterator[None]:
    """Lets runs that write below the same folder take turns: a parallel make may start two for one module.

    The lock ends with its process. On systems without locks for folders, nobody waits.
    """
    try:
        import fcntl  # not on Windows

        handle = os.open(parent, os.O_RDONLY)
    except (ImportError, OSError):
        yield
        return
    try:
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise UsageError(f"another process has locked {parent} for {_PATIENCE:g} s") from None
                time.sleep(0.02)
                continue
            except OSError:  # some network file systems
                pass
            break
        yield
    finally:
        os.close(handle)


def _known_files(shown: Path, folder: Path, files: dict[str, bytes], force: bool) -> Known:
    """Files that tinyfuse wrote into the folder. UsageError if `files` must not be written there."""
    way_out = "choose another folder with -o, or overwrite with --force"
    try:
        known = read_known(folder)
    except BadManifest as error:
        if not force:
            raise UsageError(f"{shown} has a {MANIFEST} that tinyfuse did not write: {error}; {way_out}") from None
        known = None
    _check_ways(shown, folder, files, known or {})
    if force:
        return known or {}
    if known is None:
        if any(path.name != STAGING for path in folder.iterdir()):
            raise UsageError(f"{shown} is not empty and was not written by tinyfuse; {way_out}")
        return {}
    others = [name for name in files if name != MANIFEST and name not in known]
    foreign = [name for name in others if not _is_replaceable(folder / name, {digest(files[name])})]
    if foreign:
        raise UsageError(f"{shown} holds {_listed(foreign)}, which tinyfuse did not write; {way_out}")
    edited = [name for name in known if not _is_replaceable(folder / name, _expected(name, known, files))]
    if edited:
        raise UsageError(
            f"{shown} holds {_listed(edited)}, changed since tinyfuse wrote it; keep the change elsewhere, and "
            "overwrite with --force"
        )
    return known


def _expected(name: str, known: Known, files: dict[str, bytes]) -> frozenset[str]:
    """Hashes of contents that may be replaced or removed without loss."""
    new = {digest(files[name])} if name in files else set()
    return known[name] | new


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(sorted(names)[:_SHOWN]) + more


def _check_ways(shown: Path, folder: Path, files: dict[str, bytes], known: Known) -> None:
    """UsageError if a link or file is where a folder is needed, or a folder where a file is needed."""
    for name in dict.fromkeys(above for file in (*files, *known, f"{STAGING}/x") for above in parents(file)):
        mode = _mode(folder / name)
        if mode is not None and stat.S_ISLNK(mode):
            raise UsageError(f"{shown / name} is a link, which tinyfuse does not follow; remove it")
        if mode is not None and not stat.S_ISDIR(mode):
            raise UsageError(f"{shown / name} is a file where a folder belongs; remove it")
    for name in (*files, *known, JOURNAL):
        mode = _mode(folder / name)
        if mode is not None and stat.S_ISDIR(mode):
            raise UsageError(f"{shown / name} is a folder where a file belongs; remove it")


def _mode(path: Path) -> int | None:
    """Mode of a file, folder or link (not followed); None if there is none."""
    try:
        return path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None


def _is_replaceable(path: Path, hashes: Iterable[str]) -> bool:
    """Tells whether the path is free, or a file with one of these hashes."""
    mode = _mode(path)
    if mode is None:
        return True
    if not stat.S_ISREG(mode) or path.lstat().st_size > _MOST_BYTES:
        return False
    data = path.read_bytes()
    # a checkout on Windows may have turned line ends into CRLF, which is no edit
    return digest(data) in hashes or digest(data.replace(b"\r\n", b"\n")) in hashes


def _create(folder: Path, files: dict[str, bytes]) -> None:
    staging = folder.with_name(f".{folder.name}{STAGING}")
    with _staged(staging, files):
        os.replace(staging, folder)


def _update(folder: Path, files: dict[str, bytes], known: Known) -> None:
    stale = [name for name in known if name not in files and _is_replaceable(folder / name, known[name])]
    journal = {JOURNAL: journal_text(known, files).encode()}
    with HeldFolder(folder) as held, _staged(folder / STAGING, files | journal) as staged:
        held.take(staged, JOURNAL)
        for name, data in files.items():
            if name != MANIFEST and not _is_file_of(folder / name, data):
                held.take(staged, name)
        for name in stale:
            held.remove(name)
        held.take(staged, MANIFEST)
        held.remove(JOURNAL)


@contextmanager
def _staged(staging: Path, files: dict[str, bytes]) -> Iterator[HeldFolder]:
    """Creates the folder `staging` with all of `files`, and removes it at the end."""
    if _mode(staging) is not None:  # left by a stopped run
        shutil.rmtree(staging)
    try:
        staging.mkdir()
        with HeldFolder(staging) as held:
            for name, data in files.items():
                held.write(name, data)
            yield held
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _is_file_of(path: Path, data: bytes) -> bool:
    mode = _mode(path)
    return mode is not None and stat.S_ISREG(mode) and path.lstat().st_size == len(data) and path.read_bytes() == data


def check_writable(path: Path, made: Path) -> None:
    """UsageError if a file that the user named cannot be written, once the folder `made` exists."""
    folder = path.parent
    if path.is_dir():
        raise UsageError(f"can't write {path}: it is a folder")
    if folder.exists() and not os.access(path if path.exists() else folder, os.W_OK):
        raise UsageError(f"can't write {path}: permission denied")
    if not folder.is_dir() and not folder.resolve() == made.resolve():
        raise UsageError(f"can't write {path}: there is no folder {folder}")


def write_file(path: Path, content: str | bytes) -> None:
    """Writes a file that the user named, completely or not at all. UsageError if it cannot be written.

    It is written in place if it is not a regular file (a terminal, a pipe), or if its folder is read-only.
    """
    # names of files that are no UTF-8 are written as they are
    data = content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content
    try:
        place = Path(os.path.realpath(path))  # a link stays one
        if place.exists() and not (place.is_file() and os.access(place.parent, os.W_OK)):
            place.write_bytes(data)
        else:
            _replace_file(place, data)
    except OSError as error:
        raise UsageError(f"can't write {path}: {error.strerror or error}") from error


def _replace_file(place: Path, data: bytes) -> None:
    """Replaces a file atomically, and keeps its mode."""
    mode = stat.S_IMODE(place.stat().st_mode) if place.exists() else None
    handle, name = tempfile.mkstemp(prefix=f".{place.name[:40]}.", dir=place.parent)
    try:
        with open(handle, "wb") as file:
            file.write(data)
        if mode is None:  # mkstemp creates files for their owner only, open() by the umask
            mask = os.umask(0)
            os.umask(mask)
            mode = 0o666 & ~mask
        os.chmod(name, mode)
        os.replace(name, place)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
