"""Processes of the interpreters: one serves many requests, and a failing request spoils no other."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
import pytest
from test_oracle import add_and_relu, broken_shapes

from tinyfuse.errors import EmulationFailed
from tinyfuse.verify import interpreter_process
from tinyfuse.verify.interpreter_process import run_interpreter

pytestmark = pytest.mark.slow


def prepared(folder: Path, data: bytes, *shapes: tuple[int, ...], runs: int = 1) -> Path:
    (folder / "model.tflite").write_bytes(data)
    arrays = {f"{s}_0_{i}": np.ones(shape, np.int8) for s in range(runs) for i, shape in enumerate(shapes)}
    np.savez(folder / "inputs.npz", allow_pickle=False, **arrays)
    return folder


def process_id(kind: str) -> int:
    return interpreter_process._PROCESSES[kind, os.getpid()]._process.pid


@pytest.mark.parametrize("kind", ["tflm", "litert"])
def test_one_process_answers_all_and_outlives_what_aborts(tmp_path: Path, kind: str) -> None:
    folder = prepared(tmp_path, add_and_relu(), (1, 2, 3, 4), (1, 2, 3, 4))
    assert run_interpreter(kind, folder, 1 << 20, False, [1], [], 60)[0] == 0
    before = process_id(kind)
    with np.load(folder / "outputs.npz") as outputs:
        first = outputs["0_0_0"].tobytes()
    prepared(folder, b"no model", (1,))
    code, log = run_interpreter(kind, folder, 1 << 20, False, [1], [], 60)
    assert code != 0
    assert log or code < 0
    prepared(folder, broken_shapes(), (1, 4), (1, 4))
    if kind == "tflm":
        assert run_interpreter(kind, folder, 1 << 20, False, [1], [], 60)[0] != 0
    prepared(folder, add_and_relu(), (1, 2, 3, 4), (1, 2, 3, 4))
    assert run_interpreter(kind, folder, 1 << 20, False, [1], [], 60)[0] == 0
    with np.load(folder / "outputs.npz") as outputs:
        assert outputs["0_0_0"].tobytes() == first
    assert process_id(kind) == before


def test_what_takes_too_long_is_ended_and_the_next_gets_an_answer(tmp_path: Path) -> None:
    folder = prepared(tmp_path, add_and_relu((1, 90, 90, 40)), (1, 90, 90, 40), (1, 90, 90, 40), runs=20)
    with pytest.raises(EmulationFailed, match=r"tflm's interpreter did not end within 0\.001 s"):
        run_interpreter("tflm", folder, 1 << 24, False, [1] * 20, [], 0.001)
    assert run_interpreter("tflm", folder, 1 << 24, False, [1] * 20, [], 60)[0] == 0


def test_a_process_that_was_killed_is_started_again(tmp_path: Path) -> None:
    folder = prepared(tmp_path, add_and_relu(), (1, 2, 3, 4), (1, 2, 3, 4))
    assert run_interpreter("tflm", folder, 1 << 20, False, [1], [], 60)[0] == 0
    os.kill(process_id("tflm"), signal.SIGKILL)
    interpreter_process._PROCESSES["tflm", os.getpid()]._process.wait()
    assert run_interpreter("tflm", folder, 1 << 20, False, [1], [], 60)[0] == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_has_a_process_of_its_own(tmp_path: Path) -> None:
    """joblib's workers are forked: a child must not read answers from its parent's process."""
    folder = prepared(tmp_path, add_and_relu(), (1, 2, 3, 4), (1, 2, 3, 4))
    assert run_interpreter("tflm", folder, 1 << 20, False, [1], [], 60)[0] == 0
    child = os.fork()
    if child == 0:
        code = 9
        try:
            code = run_interpreter("tflm", folder, 1 << 20, False, [1], [], 60)[0]
            interpreter_process._PROCESSES["tflm", os.getpid()].end()
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert run_interpreter("tflm", folder, 1 << 20, False, [1], [], 60)[0] == 0
