"""Processes in which interpreters run (oracle_worker.py): one for each kind, started when first asked, for loading an
interpreter's library takes longer than most models do. They end with this process, whose pipe they read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from tinyfuse.verify.emulation.process import end_group
from tinyfuse.verify.emulation.result import failed

_WORKER = Path(__file__).with_name("oracle_worker.py")


class _Process:
    """The process of one kind of interpreter, in a group of its own: what it starts ends with it."""

    def __init__(self, kind: str):
        # -P: modules beside the worker must not hide others' of the same name
        self._process = subprocess.Popen(
            [sys.executable, "-P", _WORKER, kind],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
            start_new_session=True,
        )

    def ask(self, request: dict[str, Any], time_limit: float) -> int | None:
        """The request's exit code; None where there was no answer within the limit, and the process is gone."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        late = threading.Event()

        def stop() -> None:
            late.set()
            self.end()

        timer = threading.Timer(time_limit, stop)
        timer.start()
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        finally:
            timer.cancel()
        if late.is_set():
            timer.join()  # the process is gone then
            return None
        if answer.strip():
            return int(answer)
        self.end()
        return self._process.returncode or 1  # the interpreter's, where it runs in the process itself

    def end(self) -> None:
        end_group(self._process)

    @property
    def alive(self) -> bool:
        return self._process.poll() is None


#: by kind, and by who asks: a forked child has its parent's table, and must not read its parent's answers
_PROCESSES: dict[tuple[str, int], _Process] = {}
_ONE_AT_A_TIME: dict[str, threading.Lock] = {kind: threading.Lock() for kind in ("tflm", "litert", "float")}


def run_interpreter(
    kind: str, folder: Path, arena_bytes: int, afresh: bool, frames: list[int], tensors: list[int], time_limit: float
) -> tuple[int, str]:
    """(exit code, what was printed) of one request to the interpreter `kind`, "tflm", "litert" or "float", whose files
    are in `folder` (oracle_worker.py). A code below 0 is the signal that ended it. EmulationFailed after `time_limit`
    seconds."""
    request = {
        "folder": str(folder), "arena_bytes": arena_bytes, "afresh": afresh, "frames": frames, "tensors": tensors
    }  # fmt: skip
    key = (kind, os.getpid())
    with _ONE_AT_A_TIME[kind]:
        process = _PROCESSES.get(key)
        if process is None or not process.alive:
            process = _PROCESSES[key] = _Process(kind)
        try:
            code = process.ask(request, time_limit)
        except BaseException:  # Ctrl-C: its answer would be taken for the next request's
            process.end()
            raise
    log = folder / "log.txt"
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    if code is None:
        raise failed(f"{kind}'s interpreter did not end within {time_limit:g} s", text)
    return code, text
