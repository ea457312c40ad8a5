"""Limits a test by the number of calls instead of time: the same on every machine, however busy.

    with at_most(calls=1_000_000):      AssertionError where more functions were called, of Python and of C
        ...

What takes the square of a file's size calls its inner functions that often.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from cProfile import Profile


@contextmanager
def at_most(calls: int) -> Iterator[None]:
    with Profile(builtins=True) as profile:  # whose counters, in C, take a third of the time of any in Python
        yield
    made = sum(entry.callcount for entry in profile.getstats())
    assert made <= calls, f"{made:,} calls, more than {calls:,}"
