"""Writing the generated folder: whole or not at all, and never over somebody else's files."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from pathlib import Path

from tinyfuse.errors import UsageError

MANIFEST = "manifest.json"


def manifest_text(facts: dict, files: dict[str, bytes]) -> str:
    """manifest.json: what the folder holds and what it was made from."""
    hashes = {name: hashlib.sha256(data).hexdigest() for name, data in sorted(files.items())}
    return json.dumps(facts | {"files": hashes}, indent=2, sort_keys=True) + "\n"


def write_folder(folder: Path, files: dict[str, bytes], force: bool) -> None:
    """Writes `files` (relative name -> content, the manifest among them) into `folder`.

    A new folder appears under its name only when it is complete. In a folder of ours (it has our
    manifest) files that did not change keep their times, changed ones are replaced one by one,
    each at once, and files of the old manifest that are no longer made are removed.

    Raises UsageError where the folder holds something that our manifest does not list, unless
    `force`, and where it can't be written.
    """
    try:
        if folder.exists() and not folder.is_dir():
            raise UsageError(f"{folder} exists and is not a folder; choose another with -o")
        old = _our_files(folder)
        foreign = old is None and folder.exists() and any(folder.iterdir())
        clashes = [] if old is None else [n for n in files if n not in old and (folder / n).exists()]
        if (foreign or clashes) and not force:
            what = f"holds {clashes[0]}, which tinyfuse did not write" if clashes else (
                "is not empty and was not written by tinyfuse"
            )
            raise UsageError(f"{folder} {what}; choose another folder with -o, or overwrite with --force")
        folder.parent.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
        try:
            _write_all(staging, files)
            if not folder.exists():
                staging.chmod(0o777 & ~_umask())
                os.replace(staging, folder)
                return
            _move_changed(staging, folder, files)
            for name in old or ():
                if name not in files:
                    _remove(folder, name)
        finally:
            shutil.rmtree(staging, ignore_errors=True)
    except OSError as error:
        raise UsageError(f"can't write {folder}: {error.strerror or error}") from error


def _our_files(folder: Path) -> set[str] | None:
    """The names in the folder's manifest, None where there is no manifest of ours."""
    try:
        listed = json.loads((folder / MANIFEST).read_text())["files"]
        names = {name for name in listed if isinstance(name, str) and _is_inside(name)}
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return names | {MANIFEST}


def _is_inside(name: str) -> bool:
    path = Path(name)
    return not path.is_absolute() and ".." not in path.parts


def _write_all(staging: Path, files: dict[str, bytes]) -> None:
    for name, data in files.items():
        assert _is_inside(name), name
        path = staging / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def _move_changed(staging: Path, folder: Path, files: dict[str, bytes]) -> None:
    # the manifest goes last: until then it describes files that are all still there
    for name in sorted(files, key=lambda n: n == MANIFEST):
        target = folder / name
        if target.is_symlink() or not target.is_file() or target.read_bytes() != files[name]:
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(staging / name, target)


def _remove(folder: Path, name: str) -> None:
    path = folder / name
    path.unlink(missing_ok=True)
    for parent in path.parents:
        if parent == folder or any(parent.iterdir()):
            break
        parent.rmdir()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write_file(path: Path, content: str | bytes) -> None:
    """Writes a file that the user named, over one that is there; UsageError where that can't be."""
    try:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    except OSError as error:
        raise UsageError(f"can't write {path}: {error.strerror or error}") from error
