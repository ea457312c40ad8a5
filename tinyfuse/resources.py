"""Where templates/, targets/ and runtime_c/ are: beside the package in a checkout, inside it in
an install (pyproject.toml maps them there)."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def resource_dir(name: str) -> Path:
    """The folder of that name ("templates", "targets", "runtime_c", "firmware")."""
    for base in (_PACKAGE / "_data", _PACKAGE.parent):
        if (base / name).is_dir():
            return base / name
    raise AssertionError(f"this installation lacks its {name} folder")
