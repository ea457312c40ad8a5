"""Imports scripts of benchmarks/ and examples/, which are no package and import each other by name."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def scripts_of(folder: Path) -> Iterator[None]:
    """Makes the folder's scripts importable by name within the context: another folder may have scripts of the same
    names."""
    here = folder.resolve()
    sys.path.insert(0, str(here))
    try:
        yield
    finally:
        sys.path.remove(str(here))
        for name, module in list(sys.modules.items()):
            if (file := getattr(module, "__file__", None)) and Path(file).resolve().parent == here:
                del sys.modules[name]
