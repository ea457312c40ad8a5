"""Processes of the interpreters: one serves many requests, and a failing request spoils no other."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest
from test_oracle import add_and_relu, broken_shapes

from tinyfuse.errors import EmulationFailed
from tinyfuse.verify import interpreter_process
from tinyfuse.verify.interpreter_process import InterpreterFailed, run_interpreter
from tinyfuse.verify.oracle_worker import _LEAST_STREAMS

pytestmark = pytest.mark.slow


SHAPE = (1, 2, 3, 4)
ADD = (add_and_relu(), [np.ones(SHAPE, np.int8), np.ones(SHAPE, np.int8)])


def outputs_of(kind: str, data: bytes, *runs: list[np.ndarray], seconds: float = 60) -> list[list[np.ndarray]]:
    return [stream[0] for stream in run_interpreter(kind, data, [[run] for run in runs], seconds, 1 << 24)]


def process_id(kind: str) -> int:
    return interpreter_process._PROCESSES[kind, os.getpid()]._process.pid


@pytest.mark.parametrize("kind", ["tflm", "litert"])
def test_one_process_answers_all_and_outlives_what_aborts(kind: str) -> None:
    first = outputs_of(kind, *ADD)
    before = process_id(kind)
    with pytest.raises(InterpreterFailed, match=r"\w"):
        outputs_of(kind, b"no model", [np.ones(1, np.int8)])
    if kind == "tflm":
        with pytest.raises(InterpreterFailed):
            outputs_of(kind, broken_shapes(), [np.ones((1, 4), np.int8)] * 2)
    np.testing.assert_array_equal(outputs_of(kind, *ADD), first)
    assert process_id(kind) == before


def test_many_streams_are_computed_as_single_ones() -> None:
    """Child processes share them. Each stream has numbers of its own, so that none is taken for another."""
    rng = np.random.default_rng(0)
    runs = [[rng.integers(-128, 128, SHAPE, np.int8) for _ in range(2)] for _ in range(2 * _LEAST_STREAMS + 1)]
    found = outputs_of("tflm", ADD[0], *runs)
    halves = runs[:_LEAST_STREAMS], runs[_LEAST_STREAMS:-1], runs[-1:]
    np.testing.assert_array_equal(found, [each for half in halves for each in outputs_of("tflm", ADD[0], *half)])
    runs[1][1] = np.ones((1, 4), np.int8)
    with pytest.raises(InterpreterFailed, match="Dimension"):
        outputs_of("tflm", ADD[0], *runs)


def test_what_takes_too_long_is_ended_and_the_next_gets_an_answer() -> None:
    shape = (1, 90, 90, 40)
    large = (add_and_relu(shape), *[[np.ones(shape, np.int8)] * 2] * 20)
    with pytest.raises(EmulationFailed, match=r"tflm's interpreter did not end within 0\.001 s"):
        outputs_of("tflm", *large, seconds=0.001)
    assert len(outputs_of("tflm", *large)) == 20


def test_a_process_that_was_killed_is_started_again() -> None:
    outputs_of("tflm", *ADD)
    os.kill(process_id("tflm"), signal.SIGKILL)
    interpreter_process._PROCESSES["tflm", os.getpid()]._process.wait()
    outputs_of("tflm", *ADD)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_has_a_process_of_its_own() -> None:
    """joblib's workers are forked: a child must not read answers from its parent's process."""
    outputs_of("tflm", *ADD)
    child = os.fork()
    if child == 0:
        code = 9
        try:
            outputs_of("tflm", *ADD)
            interpreter_process._PROCESSES["tflm", os.getpid()].end()
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    outputs_of("tflm", *ADD)
