"""Work that is counted, not timed: the same on every machine, however busy.

    with at_most(calls=1_000_000):      AssertionError as soon as more functions were called, of Python and of C
        ...

What takes the square of a file's size calls its inner functions that often.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def at_most(calls: int) -> Iterator[None]:
    left = calls

    def count(frame: FrameType, event: str, _: object) -> None:
        nonlocal left
        left -= event in ("call", "c_call")
        if left < 0:
            sys.setprofile(None)
            raise AssertionError(f"more than {calls:,} calls, the last of {frame.f_code.co_qualname}")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        yield
    finally:
        sys.setprofile(before)
    assert left >= 0  # though somebody caught the error
