"""Oracle for the steps of a sliding window: the whole model, run on each window by another oracle."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tinyfuse.ir import Window
from tinyfuse.ops import graph_macs
from tinyfuse.verify.oracle import Oracle

#: multiply-accumulates per request to an interpreter
_MACS = 4_000_000_000


class WindowOracle:
    """Oracle of a step graph (`tinyfuse.slide`).

    A run's inputs are those of a step: the new frames, and the current values of the whole model's other inputs.
    Outputs are zeros until the window is full.
    """

    def __init__(self, window: Window, oracle: Oracle, progress: Callable[[str], None] = lambda line: None):
        """`oracle` runs the whole model, which has no state unless it keeps the window itself. `progress` gets lines,
        because a long stream takes minutes."""
        self._progress = progress
        self.name, self.version, self.warnings = oracle.name, oracle.version, oracle.warnings
        self._window, self._oracle = window, oracle

    def run_streams(self, inputs: list[list[list[np.ndarray]]]) -> list[list[list[np.ndarray]]]:
        """See Oracle.run_streams."""
        if self._window.own is not None:
            return self._runs(inputs, self._window.own.runs)
        whole = [self._windows(stream) for stream in inputs]
        results = iter(self._in_parts([run for stream in whole for run in stream]))
        empty = [np.zeros(t.shape, t.dtype) for t in self._window.whole.outputs]
        return [
            [empty] * (len(steps) - len(windows)) + [next(results) for _ in windows]
            for steps, windows in zip(inputs, whole, strict=True)
        ]

    def _in_parts(self, windows: list[list[np.ndarray]]) -> list[list[np.ndarray]]:
        """Oracle's outputs for all windows, in requests of about a minute each."""
        found: list[list[np.ndarray]] = []
        macs = graph_macs(self._window.whole)
        count = max(1, _MACS // max(macs, 1))
        for start in range(0, len(windows), count):
            if start:
                self._progress(f"computing results with {self.name}: {start:,} of {len(windows):,}")
            found += self._oracle.run_all(windows[start : start + count])
        return found

    def run_all(self, inputs: list[list[np.ndarray]]) -> list[list[np.ndarray]]:
        """See Oracle.run_all."""
        return [frames[0] for frames in self.run_streams([[run] for run in inputs])]

    def run(self, inputs: list[np.ndarray]) -> list[np.ndarray]:
        """See Oracle.run."""
        return self.run_all([inputs])[0]

    def _runs(self, inputs: list[list[list[np.ndarray]]], runs: int) -> list[list[list[np.ndarray]]]:
        """Outputs of a model that keeps its window itself; each step is `runs` runs, of which the last has the
        outputs."""
        number, fill = self._window.input, self._window.steps_to_fill
        given, empty = (
            self._window.whole.inputs[number],
            [np.zeros(t.shape, t.dtype) for t in self._window.whole.outputs],
        )

        def parts(step: list[np.ndarray]) -> list[list[np.ndarray]]:
            brought = step[number].reshape(runs, *given.shape)
            return [[part if i == number else array for i, array in enumerate(step)] for part in brought]

        results = self._oracle.run_streams([[run for step in stream for run in parts(step)] for stream in inputs])
        return [
            [empty if step < fill - 1 else outputs for step, outputs in enumerate(stream[runs - 1 :: runs])]
            for stream in results
        ]

    def _windows(self, steps: list[list[np.ndarray]]) -> list[list[np.ndarray]]:
        """Inputs of the whole model for each step of a stream that has a result."""
        number, frames, axis = self._window.input, self._window.frames, self._window.axis
        shape = self._window.whole.inputs[number].shape
        found: list[list[np.ndarray]] = []
        if not steps:
            return found
        stream = np.concatenate([step[number].reshape(_frames_first(shape, axis)) for step in steps])
        for step in range(self._window.steps_to_fill, len(steps) + 1):
            end = step * self._window.step
            window = stream[end - frames : end].reshape(shape)
            found.append([window if i == number else array for i, array in enumerate(steps[step - 1])])
        return found


def _frames_first(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    """Shape of frames in sequence, for an input whose dimensions before `axis` are 1."""
    return (-1, *shape[axis + 1 :])
