"""PlatformIO: a library for lib/ or lib_deps. If the folder is an Arduino library too, PlatformIO reads
library.json."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tinyfuse.emit.forms.base import Form, public_licence


def _context(known: Mapping[str, Any]) -> Mapping[str, Any]:
    """Template variables; PlatformIO's name has at most 50 characters of a-z, digits and single dashes."""
    dashed = re.sub("[^a-z0-9]+", "-", f"tinyfuse-{known['name'].lower()}")[:50].strip("-")
    return {"library_name": dashed, "public_licence": public_licence(known["about"])}


FORM = Form(
    "platformio",
    "library.json: a library for lib/ or lib_deps",
    {"library.json": "forms/platformio.json.j2"},
    context=_context,
)
