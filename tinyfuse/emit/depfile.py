"""`gen --depfile`: dependencies of a generated folder, as rules for Make and Ninja."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from tinyfuse.errors import UsageError
from tinyfuse.resources import PACKAGE

#: changes with each version of tinyfuse, whose output may differ
_VERSION = PACKAGE / "__init__.py"


def depfile_text(target: Path, sources: Iterable[Path]) -> str:
    """Rule that makes `target` depend on `sources` and on tinyfuse itself.

    Each source also gets an empty rule, as with `gcc -MP`: if it is missing, Make runs the command instead of stopping.
    """
    names = [_escaped(source) for source in dict.fromkeys([*sources, _VERSION])]
    # "%" makes a rule a pattern, and cannot be escaped
    rules = [f"{_escaped(target)}: {' '.join(names)}", *(f"{name}:" for name in names if "%" not in name)]
    return "\n\n".join(rules) + "\n"


def _escaped(path: Path) -> str:
    name = path.as_posix()
    if re.search(r"[\n\r\\]", name):
        raise UsageError(f"--depfile: Make has no way to write the name {name!a}")
    return re.sub(r"[ \t#]", lambda found: f"\\{found[0]}", name.replace("$", "$$"))
