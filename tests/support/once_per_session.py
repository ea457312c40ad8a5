"""Caches slow results for a whole test session, whichever worker computes them first.

@once_per_session
def modules(target): ...        its arguments have a repr, its result can be pickled
"""

from __future__ import annotations

import fcntl
import hashlib
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from pathlib import Path
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

_folders: list[Path] = []


@contextmanager
def kept_in(folder: Path) -> Iterator[None]:
    """Sets the folder of this session, which all workers share."""
    folder.mkdir(exist_ok=True)
    _folders.append(folder)
    yield
    _folders.pop()


def once_per_session(make: Callable[P, R]) -> Callable[P, R]:
    """Caches the results of `make`, a pure function, in memory and for other workers in the session's folder."""

    @cache
    @wraps(make)
    def kept(*arguments: P.args, **named: P.kwargs) -> R:
        if not _folders:  # a test's file is imported, or a script runs
            return make(*arguments, **named)
        what = f"{make.__module__}.{make.__qualname__} {arguments} {sorted(named.items())}"
        file = _folders[-1] / hashlib.sha256(what.encode()).hexdigest()
        with open(f"{file}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # who comes meanwhile waits, and reads
            if not file.exists():
                result = make(*arguments, **named)
                file.write_bytes(pickle.dumps(result))
                return result
        return pickle.loads(file.read_bytes())

    return kept
