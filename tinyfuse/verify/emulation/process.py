"""Runs a program under a time limit, and ends its children with it."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tinyfuse.errors import RunTimeout
from tinyfuse.verify.emulation.result import emulation_failure, failure_text

#: message and hint if `runs_modules_here` is False
NOT_HERE = "verify, run and profile don't run on this system; gen, report, explain, board and all other commands do"
ELSEWHERE = "run them on Linux or macOS, or on Windows in WSL or a container"


def runs_modules_here() -> bool:
    """Tells whether the system has POSIX process groups, which time limits need; Windows has none."""
    return hasattr(os, "killpg")


def run_limited(
    command: Sequence[str | Path],
    time_limit: float,
    env: Mapping[str, str] | None = None,
    done: Callable[[str], bool] | None = None,
) -> tuple[int, str]:
    """Runs a program without input, and returns (exit code, standard output and error as one text).

    `done` is called repeatedly with the text so far, and tells whether the program may be ended. RunTimeout after
    `time_limit` seconds, EmulationFailed if the program cannot be started. The program and its children are always gone
    when this returns.
    """
    with tempfile.TemporaryFile() as output:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=None if env is None else {**os.environ, **env},
                start_new_session=True,
            )
        except OSError as error:  # not a program for this machine
            raise emulation_failure(f"{command[0]} can't be started: {error.strerror}", "") from None

        def text() -> str:
            # The program shares the file's position, so it must not be changed.
            size = os.fstat(output.fileno()).st_size
            return os.pread(output.fileno(), size, 0).decode("utf-8", "replace")

        try:
            deadline = time.monotonic() + time_limit
            while not (done and done(text())):
                try:
                    # Without `done`, there is no reason to wake up earlier.
                    _wait(process, min(0.1 if done else time_limit, deadline - time.monotonic()))
                    break
                except subprocess.TimeoutExpired:
                    if time.monotonic() >= deadline:
                        reason = f"{Path(command[0]).name} did not end within {time_limit:g} s"
                        raise RunTimeout(failure_text(reason, text()), text()) from None
        finally:
            end_group(process)
        return process.returncode, text()


def _wait(process: subprocess.Popen[Any], seconds: float) -> None:
    """Waits like `process.wait(seconds)`, but wakes at the process's end if the kernel can do that. `wait` polls at
    intervals as long as many programs run."""
    if sys.platform == "linux" and seconds > 0:
        with suppress(OSError):  # an older kernel
            handle = os.pidfd_open(process.pid)
            try:
                select.select([handle], [], [], seconds)
            finally:
                os.close(handle)
            seconds = 0
    process.wait(seconds)


def end_group(process: subprocess.Popen[Any]) -> None:
    """Ends a process group: first with SIGTERM, so that it removes its temporary files, then with SIGKILL."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(2)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            pass
