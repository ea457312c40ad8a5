"""Runs a program under a time limit that also ends what it started."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence

from tinyfuse.emulation.result import failed


def run_limited(
    command: Sequence[str], time_limit: float, env: Mapping[str, str] | None = None
) -> tuple[int, str]:
    """(exit code, standard output and error as one text). EmulationFailed after `time_limit`
    seconds: the program and its children are killed by then."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=None if env is None else {**os.environ, **env},
            start_new_session=True,
        )
        try:
            code = process.wait(time_limit)
            timed_out = False
        except subprocess.TimeoutExpired:
            timed_out = True
        finally:
            # Also where the program ended well or we were interrupted: a launcher may leave children.
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
        output.seek(0)
        text = output.read().decode("utf-8", "replace")
    if timed_out:
        raise failed(f"{command[0]} did not end within {time_limit:g} s", text)
    return code, text
