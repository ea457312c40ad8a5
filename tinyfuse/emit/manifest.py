"""Record of the files that tinyfuse wrote into a folder: manifest.json, and the journal of a running update.

Both are read as untrusted input, because a folder may come from an archive or a foreign repository.
"""

from __future__ import annotations

import hashlib
import json
import re
import stat
from pathlib import Path, PurePosixPath
from typing import Any

MANIFEST = "manifest.json"
#: journal in the folder while files are replaced: names of the old and new files, each with the hashes of its old and
#: new contents
JOURNAL = ".tinyfuse-update.json"
#: folder for new files until all are complete
STAGING = ".tinyfuse-new"

#: path below the folder -> hashes of contents that tinyfuse wrote there, interrupted runs included
Known = dict[str, frozenset[str]]

#: limits; for comparison, a bundle of all of CMSIS-NN has 300 files and a manifest of 40 KB
_MOST_BYTES, _MOST_FILES = 1 << 20, 4096
_LONGEST_NAME, _LONGEST_PATH = 255, 1024

_HASH = re.compile("[0-9a-f]{64}")


class BadManifest(Exception):
    """A manifest or journal that tinyfuse did not write; the message says why."""


def digest(data: bytes) -> str:
    """SHA-256 of a file's content, as manifest.json has it."""
    return hashlib.sha256(data).hexdigest()


def manifest_text(data: dict[str, Any], files: dict[str, bytes]) -> str:
    """Text of manifest.json: the folder's files with their hashes, and the inputs and options that made them."""
    hashes = {name: digest(data) for name, data in sorted(files.items())}
    return json.dumps(data | {"files": hashes}, indent=2, sort_keys=True) + "\n"


def journal_text(known: Known, files: dict[str, bytes]) -> str:
    """Text of the journal of an update from `known` to `files`. It also names files that interrupted updates may have
    left, so the next run recovers from any number of interruptions."""
    new = {name: {digest(data)} for name, data in files.items() if name != MANIFEST}
    names = sorted({*known, *new})
    return json.dumps({"files": {name: sorted(known.get(name, frozenset()) | new.get(name, set())) for name in names}})


def is_safe(name: str) -> bool:
    """Tells whether a path stays below its folder on every system. Links are not checked."""
    parts = name.split("/")
    return (
        name.isascii()
        and name.isprintable()
        and not re.search(r"[\\:]", name)
        and len(name) <= _LONGEST_PATH
        and all(part not in ("", ".", "..") and len(part) <= _LONGEST_NAME for part in parts)
        and parts[0] not in (JOURNAL, STAGING)
    )


def parents(name: str) -> list[str]:
    """Folders on the way to a file, outermost first."""
    return [str(parent) for parent in reversed(PurePosixPath(name).parents[:-1])]


def read_known(folder: Path) -> Known | None:
    """Files that tinyfuse wrote into the folder; None if it wrote none. BadManifest if the manifest or the journal is
    not its own."""
    found = [_read(folder / name) for name in (MANIFEST, JOURNAL)]
    if all(one is None for one in found):
        return None
    known: Known = {}
    for one in found:
        for name, hashes in (one or {}).items():
            known[name] = known.get(name, frozenset()) | hashes
    return known


def _read(path: Path) -> Known | None:
    try:
        status = path.lstat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(status.st_mode):
        raise BadManifest("it is not a regular file")
    if status.st_size > _MOST_BYTES:
        raise BadManifest(f"it has {status.st_size:,} bytes")
    try:
        fields = json.loads(path.read_bytes().decode())
    except (ValueError, RecursionError):
        raise BadManifest("it is not JSON") from None
    files = fields.get("files") if isinstance(fields, dict) else None
    if not isinstance(files, dict) or len(files) > _MOST_FILES:
        raise BadManifest("it lists no files")
    for name in files:
        if not is_safe(name) or name == MANIFEST:
            raise BadManifest(f"it lists {name[:80]!a}, which tinyfuse never makes")
    return {name: _hashes(name, value) for name, value in files.items()}


def _hashes(name: str, value: object) -> frozenset[str]:
    """Hashes of a file: one in a manifest, several in a journal."""
    hashes = value if isinstance(value, list) else [value]
    if not all(isinstance(one, str) and _HASH.fullmatch(one) for one in hashes):
        raise BadManifest(f"it has no SHA-256 of {name[:80]!a}")
    return frozenset(hashes)
