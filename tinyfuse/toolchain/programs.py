"""Finds programs on PATH; all other files use this one."""

from __future__ import annotations

import os
import shutil


def find_program(*names: str) -> str | None:
    """Absolute path of the first of these programs on PATH; empty names are skipped.

    PATH may contain relative folders, and programs are started with other working folders than ours.
    """
    found = next((path for name in names if name and (path := shutil.which(name))), None)
    return None if found is None else os.path.abspath(found)
