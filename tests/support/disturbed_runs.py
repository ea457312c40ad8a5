"""Runs a function in a process of its own, and disturbs it before one of its calls that open or change a file."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable

#: events of the interpreter's audit hooks
_CALLS = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir"}
_ALL_CALLS, _FAILED, _FEWER_CALLS, _KILLED = 0, 1, 2, 3


def disturbed(run: Callable[[], None], step: int, disturb: Callable[[], None]) -> bool:
    """Calls `run`, and `disturb` before the call number `step`, counted from 0. False if it made no such call.

    An exception from `run` is a failure. `disturb` may end the process by `end_process`.
    """
    child = os.fork()
    if child == 0:
        left = step

        def hook(event: str, _) -> None:
            nonlocal left
            if event in _CALLS:
                left -= 1
                if left == -1:
                    disturb()

        try:
            sys.addaudithook(hook)
            run()
        except BaseException:
            traceback.print_exc()
            os._exit(_FAILED)
        os._exit(_FEWER_CALLS if left >= 0 else _ALL_CALLS)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (_ALL_CALLS, _FEWER_CALLS, _KILLED), code
    return code != _FEWER_CALLS


def end_process() -> None:
    """Ends the process at once, as a signal that kills it would."""
    os._exit(_KILLED)
