"""Where templates/, targets/ and runtime_c/ are: beside the package in a checkout, inside it in
an install (pyproject.toml maps them there)."""

from __future__ import annotations

from pathlib import Path

#: the folder of the package itself
PACKAGE = Path(__file__).resolve().parent


def resource_dir(name: str) -> Path:
    """The folder of that name ("templates", "targets", "runtime_c", "firmware")."""
    for base in (PACKAGE / "_data", PACKAGE.parent):
        if (base / name).is_dir():
            return base / name
    raise AssertionError(f"this installation lacks its {name} folder")
