"""`gen --depfile`: what a generated folder was made from, as rules that Make and Ninja read."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from tinyfuse.errors import UsageError
from tinyfuse.resources import PACKAGE

#: changes with every version of tinyfuse: what another one generates may differ
_VERSION = PACKAGE / "__init__.py"


def depfile_text(target: Path, sources: Iterable[Path]) -> str:
    """A rule for `target`, which `sources` and this tinyfuse made, and an empty one for each of them, as
    `gcc -MP` writes them: a source that is gone makes its readers run again instead of stopping Make."""
    names = [_escaped(source) for source in dict.fromkeys([*sources, _VERSION])]
    # "%" makes a pattern of a target, in a way that has no escape
    rules = [f"{_escaped(target)}: {' '.join(names)}", *(f"{name}:" for name in names if "%" not in name)]
    return "\n\n".join(rules) + "\n"


def _escaped(path: Path) -> str:
    name = path.as_posix()
    if re.search(r"[\n\r\\]", name):
        raise UsageError(f"--depfile: Make has no way to write the name {name!a}")
    return re.sub(r"[ \t#]", lambda found: f"\\{found[0]}", name.replace("$", "$$"))
