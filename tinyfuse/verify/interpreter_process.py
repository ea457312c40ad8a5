"""Processes in which interpreters run (oracle_worker.py), one per kind. They start at the first request, because
loading an interpreter's library takes longer than running most models. They end with this process, whose pipe they
read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tinyfuse.ir import Array
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


class InterpreterFailed(Exception):
    """Raised if an interpreter cannot run a model. The message is the interpreter's."""


def run_interpreter(
    kind: str, model: bytes, inputs: Sequence[Sequence[Sequence[Array]]], time_limit: float, arena_bytes: int = 0,
    afresh: bool = False, tensors: Sequence[int] = (),
) -> list[list[list[Array]]]:  # fmt: skip
    """Outputs of a file's model for inputs[stream][frame][index], or its tensors at the places `tensors`:
    [stream][frame][position].

    kind         one of _KINDS
    arena_bytes  memory of TFLM
    afresh       each stream gets an interpreter of its own

    InterpreterFailed, or EmulationFailed after `time_limit` seconds.
    """
    named = {
        f"{s}_{f}_{i}": array
        for s, stream in enumerate(inputs)
        for f, frame in enumerate(stream)
        for i, array in enumerate(frame)
    }
    with tempfile.TemporaryDirectory(prefix="tinyfuse-") as work:
        folder = Path(work)
        (folder / "model.tflite").write_bytes(model)
        np.savez(folder / "inputs.npz", allow_pickle=False, **named)
        request = {
            "folder": work, "arena_bytes": arena_bytes, "afresh": afresh, "frames": list(map(len, inputs)),
            "tensors": list(tensors),
        }  # fmt: skip
        code = _ask(kind, request, time_limit)
        log = "".join(file.read_text(encoding="utf-8", errors="replace") for file in sorted(folder.glob("log_*.txt")))
        if code is None:
            raise emulation_failure(f"{kind}'s interpreter did not end within {time_limit:g} s", log)
        if code != 0:
            end = f"killed by signal {-code}" if code < 0 else ""
            reasons = [line.strip() for line in [*log.splitlines(), end] if line.strip()]
            raise InterpreterFailed("; ".join(reasons[-3:]) or f"exit code {code}")
        outputs = dict[str, Array]()
        for file in folder.glob("outputs_*.npz"):
            with np.load(file) as arrays:
                outputs |= arrays
    count = len(tensors) or sum(name.startswith("0_0_") for name in outputs)
    return [
        [[outputs[f"{s}_{f}_{i}"] for i in range(count)] for f in range(len(stream))] for s, stream in enumerate(inputs)
    ]


def _ask(kind: str, request: dict[str, Any], time_limit: float) -> int | None:
    """Exit code of a request (oracle_worker.py); None if its process was killed after `time_limit` seconds. A negative
    code is the signal that ended the process."""
    key = (kind, os.getpid())
    with _ONE_AT_A_TIME[kind]:
        process = _PROCESSES.get(key)
        if process is None or not process.alive:
            process = _PROCESSES[key] = _Process(kind)
        try:
            return process.ask(request, time_limit)
        except BaseException:  # Ctrl-C: the late answer would be taken for the next request's
            process.end()
            raise
