"""What of a generated folder is ours: manifest.json, and the journal of an update that is under way.

Both are read as untrusted input: a folder may come from an archive or from somebody's repository.
"""

from __future__ import annotations

import hashlib
import json
import re
import stat
from pathlib import Path, PurePosixPath
from typing import Any

MANIFEST = "manifest.json"
#: lies in the folder while files are replaced: the manifest's names and those that come, each with
#: the hashes of its old contents and of its new one
JOURNAL = ".tinyfuse-update.json"
#: the folder of new files, until all of them are complete
STAGING = ".tinyfuse-new"

#: name below the folder -> hashes of what tinyfuse wrote there, the last run or one that was stopped
Known = dict[str, frozenset[str]]

#: a bundle of all of CMSIS-NN has 300 files and a manifest of 40 KB
_MOST_BYTES, _MOST_FILES = 1 << 20, 4096
_LONGEST_NAME, _LONGEST_PATH = 255, 1024

_HASH = re.compile("[0-9a-f]{64}")


class BadManifest(Exception):
    """A manifest or journal that tinyfuse did not write; the message says why."""


def digest(data: bytes) -> str:
    """What stands for a file's content in manifest.json."""
    return hashlib.sha256(data).hexdigest()


def manifest_text(data: dict[str, Any], files: dict[str, bytes]) -> str:
    """manifest.json: what the folder holds and what it was made from."""
    hashes = {name: digest(data) for name, data in sorted(files.items())}
    return json.dumps(data | {"files": hashes}, indent=2, sort_keys=True) + "\n"


def journal_text(known: Known, files: dict[str, bytes]) -> str:
    """The journal of an update from `known` to `files`. It names whatever an update that was stopped
    before may have left, so that any number of stopped updates can follow each other."""
    new = {name: {digest(data)} for name, data in files.items() if name != MANIFEST}
    names = sorted({*known, *new})
    return json.dumps({"files": {name: sorted(known.get(name, frozenset()) | new.get(name, set())) for name in names}})


def is_safe(name: str) -> bool:
    """Whether a name stays below its folder on every system, as far as a name can tell: no links are
    looked at."""
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
    """The folders that a name passes through, the outermost first."""
    return [str(parent) for parent in reversed(PurePosixPath(name).parents[:-1])]


def read_known(folder: Path) -> Known | None:
    """What tinyfuse wrote into the folder, None where it wrote nothing. BadManifest where manifest or
    journal are not what it writes."""
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
        raise BadManifest("it is no regular file")
    if status.st_size > _MOST_BYTES:
        raise BadManifest(f"it has {status.st_size:,} bytes")
    try:
        fields = json.loads(path.read_bytes().decode())
    except (ValueError, RecursionError):
        raise BadManifest("it is no JSON") from None
    files = fields.get("files") if isinstance(fields, dict) else None
    if not isinstance(files, dict) or len(files) > _MOST_FILES:
        raise BadManifest("it lists no files")
    for name in files:
        if not is_safe(name) or name == MANIFEST:
            raise BadManifest(f"it lists {name[:80]!a}, which tinyfuse never makes")
    return {name: _hashes(name, value) for name, value in files.items()}


def _hashes(name: str, value: object) -> frozenset[str]:
    """A manifest has one hash of a file, a journal several."""
    hashes = value if isinstance(value, list) else [value]
    if not all(isinstance(one, str) and _HASH.fullmatch(one) for one in hashes):
        raise BadManifest(f"it has no SHA-256 of {name[:80]!a}")
    return frozenset(hashes)
