"""Writing the generated folder: whole or not at all, and never over somebody else's files.

A folder that exists is brought up to date file by file. A journal in it (tinyfuse/emit/manifest.py) says,
until the last one is in its place, what the files were and what they become: after a run that was
stopped, the next one knows every file and goes on. Links inside the folder are never followed.
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

#: a file that is larger than anything we write is not read to know that it isn't ours
_MOST_BYTES = 1 << 30

#: names of a message
_SHOWN = 8

#: seconds that a run waits for another one that writes beside it
_PATIENCE = 60.0


def write_folder(folder: Path, files: dict[str, bytes], force: bool) -> None:
    """Writes `files` (relative name -> content, the manifest among them) into `folder`.

    A new folder appears under its name only when it is complete. In a folder of ours (it has our
    manifest) files that did not change keep their times, changed ones are replaced one by one,
    each at once, and files of the old manifest that are no longer made are removed. The manifest is
    always replaced: its time is that of the last run.

    Raises UsageError, before anything is touched, where the folder holds something that our manifest
    does not list or files that were changed since, unless `force`; where a manifest, a name or a link
    leads out of it; and where it can't be written.
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
    """Runs that write below the same folder take turns (a parallel make may start two for one module).
    The lock ends with its process; where the system has none for folders, nobody waits."""
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
    """What tinyfuse wrote into the folder. UsageError where `files` must not be written there."""
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
    """The contents that may be replaced or removed: nothing is lost with them."""
    new = {digest(files[name])} if name in files else set()
    return known[name] | new


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(sorted(names)[:_SHOWN]) + more


def _check_ways(shown: Path, folder: Path, files: dict[str, bytes], known: Known) -> None:
    """UsageError where a link or a file stands where we need a folder, or a folder where we need a file."""
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
    """The kind of what is there, of a link itself; None where nothing is."""
    try:
        return path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None


def _is_replaceable(path: Path, hashes: Iterable[str]) -> bool:
    """Whether nothing is there, or a file of one of these contents."""
    mode = _mode(path)
    if mode is None:
        return True
    if not stat.S_ISREG(mode) or path.lstat().st_size > _MOST_BYTES:
        return False
    data = path.read_bytes()
    # a checkout on Windows may have made CRLF of line ends, which is no change
    return digest(data) in hashes or digest(data.replace(b"\r\n", b"\n")) in hashes


def _create(folder: Path, files: dict[str, bytes]) -> None:
    staging = folder.with_name(f".{folder.name}{STAGING}")
    with _staged(staging, files):
        os.replace(staging, folder)


def _update(folder: Path, files: dict[str, bytes], known: Known) -> None:
    stale = [name for name in known if name not in files and _is_replaceable(folder / name, known[name])]
    with _staged(folder / STAGING, files | {JOURNAL: journal_text(known, files).encode()}):
        os.replace(folder / STAGING / JOURNAL, folder / JOURNAL)
        for name, data in files.items():
            if name != MANIFEST and not _is_file_of(folder / name, data):
                _move(folder, name)
        for name in stale:
            _remove(folder, name)
        _move(folder, MANIFEST)
        (folder / JOURNAL).unlink()


@contextmanager
def _staged(staging: Path, files: dict[str, bytes]) -> Iterator[None]:
    """The folder `staging` with all of `files`, written anew; it is gone afterwards."""
    if _mode(staging) is not None:  # a run was stopped
        shutil.rmtree(staging)
    try:
        for name, data in files.items():
            path = staging / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        yield
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _is_file_of(path: Path, data: bytes) -> bool:
    mode = _mode(path)
    return mode is not None and stat.S_ISREG(mode) and path.lstat().st_size == len(data) and path.read_bytes() == data


def _move(folder: Path, name: str) -> None:
    target = folder / name
    target.parent.mkdir(parents=True, exist_ok=True)
    os.replace(folder / STAGING / name, target)


def _remove(folder: Path, name: str) -> None:
    """Removes a file, and the folders around it that are empty then. A stopped run may have removed some."""
    (folder / name).unlink(missing_ok=True)
    for around in (folder / parent for parent in reversed(parents(name))):
        if around.exists():
            if any(around.iterdir()):
                break
            around.rmdir()


def check_writable(path: Path, made: Path) -> None:
    """UsageError where a file that the user named can't be written, once the folder `made` is there."""
    folder = path.parent
    if path.is_dir():
        raise UsageError(f"can't write {path}: it is a folder")
    if folder.exists() and not os.access(path if path.exists() else folder, os.W_OK):
        raise UsageError(f"can't write {path}: permission denied")
    if not folder.is_dir() and not folder.resolve() == made.resolve():
        raise UsageError(f"can't write {path}: there is no folder {folder}")


def write_file(path: Path, content: str | bytes) -> None:
    """Writes a file that the user named, over one that is there, whole or not at all; UsageError where that can't be.
    What is no regular file (a terminal, a pipe), or lies in a folder that can't be written, is written to as it is."""
    data = content.encode() if isinstance(content, str) else content
    try:
        place = Path(os.path.realpath(path))  # a link stays one
        if place.exists() and not (place.is_file() and os.access(place.parent, os.W_OK)):
            place.write_bytes(data)
        else:
            _replace_file(place, data)
    except OSError as error:
        raise UsageError(f"can't write {path}: {error.strerror or error}") from error


def _replace_file(place: Path, data: bytes) -> None:
    """Puts `data` into a file beside `place`, and that in its place once it is whole; its mode stays."""
    mode = stat.S_IMODE(place.stat().st_mode) if place.exists() else None
    handle, name = tempfile.mkstemp(prefix=f".{place.name[:40]}.", dir=place.parent)
    try:
        with open(handle, "wb") as file:
            file.write(data)
        if mode is None:  # as open() gives a new file, not as mkstemp does
            mask = os.umask(0)
            os.umask(mask)
            mode = 0o666 & ~mask
        os.chmod(name, mode)
        os.replace(name, place)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
