"""Processes in which interpreters run (oracle_worker.py), one per kind. They start at the first request, because
loading an interpreter's library takes longer than running most models. They end with this process, whose pipe they
read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from tinyfuse.verify.emulation.process import end_group
from tinyfuse.verify.emulation.result import emulation_failure

_WORKER = Path(__file__).with_name("oracle_worker.py")


class _Process:
    """Process of one kind of interpreter, in a process group of its own, so that its children end with it."""

    def __init__(self, kind: str):
        # -P: modules beside the worker must not hide others with the same name
        self._process = subprocess.Popen(
            [sys.executable, "-P", _WORKER, kind],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
            start_new_session=True,
        )

    def ask(self, request: dict[str, Any], time_limit: float) -> int | None:
        """Exit code of the request; None if there was no answer within the limit, and the process was ended."""
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
        return self._process.returncode or 1  # the interpreter's own, if it runs in the process itself

    def end(self) -> None:
        end_group(self._process)

    @property
    def alive(self) -> bool:
        return self._process.poll() is None


#: by kind and process id, because a forked child has a copy of this table, and must not read its parent's answers
_PROCESSES: dict[tuple[str, int], _Process] = {}
_KINDS = ("tflm", "litert", "float", "onnxruntime", "executorch")
_ONE_AT_A_TIME: dict[str, threading.Lock] = {kind: threading.Lock() for kind in _KINDS}


def run_interpreter(
    kind: str, folder: Path, arena_bytes: int, afresh: bool, frames: list[int], tensors: list[int], time_limit: float
) -> tuple[int, str]:
    """(exit code, printed text) of one request to the interpreter `kind`, one of _KINDS.

    Its files are in `folder` (oracle_worker.py). A negative code is the signal that ended it. EmulationFailed after
    `time_limit` seconds.
    """
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
        except BaseException:  # Ctrl-C: the late answer would be taken for the next request's
            process.end()
            raise
    log = folder / "log.txt"
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    if code is None:
        raise emulation_failure(f"{kind}'s interpreter did not end within {time_limit:g} s", text)
    return code, text
