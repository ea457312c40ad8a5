"""Where the programs are that tinyfuse starts: every look at PATH is this one."""

from __future__ import annotations

import os
import shutil


def find_program(*names: str) -> str | None:
    """The absolute path of the first of these programs that PATH has; an empty name is skipped.

    PATH may have relative folders, and what is found is started with other working folders than ours.
    """
    found = next((path for name in names if name and (path := shutil.which(name))), None)
    return None if found is None else os.path.abspath(found)
