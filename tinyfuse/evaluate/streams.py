"""Turns samples of a data set into calls of the module, and into inferences of the model in its file.

A sample of a model without state is one inference. For a model with state, a sample is a stream: frames that follow a
reset of the state. With --slide, a sample is a window, which steps fill after a reset; if the model keeps its window
itself, the sample is a stream. The outputs of a sample are those of its last inference.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tinyfuse.data.inputs import InputSpec, input_specs
from tinyfuse.errors import UsageError
from tinyfuse.ir import Array, Graph, Window
from tinyfuse.plan import Plan


@dataclass(frozen=True, eq=False)
class Feeding:
    """Relates the samples of a data set to calls of a module, and to inferences of the model in its file.

    inputs   inputs of `graph`, for which data are read
    graph    graph that interpreters run: the module's, or the whole model of a sliding window
    streams  True if a sample may have several frames
    window   the module's sliding window; None if it has none
    """

    inputs: tuple[InputSpec, ...]
    graph: Graph
    streams: bool
    window: Window | None

    def calls(self, frames: int | None) -> int:
        """Number of calls of the module for a sample of `frames` frames (None: the data lacks that dimension).
        UsageError if these calls give no result."""
        if self.window is None:
            return frames or 1
        if self.window.own is None:
            return self.window.steps_to_fill
        runs, frames = self.window.own.runs, frames or 1
        least = runs * self.window.steps_to_fill
        if frames % runs or frames < least:
            raise UsageError(
                f"{frames} frames per sample, but --slide takes {runs} in each step, and has no result before {least}; "
                f"give a multiple of {runs}, {least} or more"
            )
        if len(self.inputs) > 1 and runs > 1:
            raise UsageError("--slide with several inputs and several frames a step can't be evaluated")
        return frames // runs

    def to_module(self, stored: Mapping[str, Array], calls: int) -> list[Array]:
        """Inputs of the module, in its order: arrays [samples, calls, ...]."""
        arrays = [stored[spec.name] for spec in self.inputs]
        window = self.window
        if window is None or window.own is not None:
            return [array.reshape(len(array), calls, -1) for array in arrays]
        return [
            _steps(array, window) if number == window.input else np.repeat(array.reshape(len(array), 1, -1), calls, 1)
            for number, array in enumerate(arrays)
        ]

    def to_interpreter(self, stored: Mapping[str, Array], frames: int | None) -> list[list[list[Array]]]:
        """Inputs of each inference of `graph`: [sample][frame][index]."""
        arrays = [stored[spec.name].reshape(len(stored[spec.name]), frames or 1, *spec.shape) for spec in self.inputs]
        return [
            [[array[sample, frame] for array in arrays] for frame in range(frames or 1)]
            for sample in range(len(arrays[0]))
        ]


def feeding_of(plan: Plan) -> Feeding:
    """Feeding of a plan's module."""
    window = plan.source.window
    graph = plan.source if window is None else window.whole
    has_stream = bool(plan.states) and (window is None or window.own is not None)
    return Feeding(input_specs(graph.inputs), graph, has_stream, window)


def _steps(array: Array, window: Window) -> Array:
    """Newest frames of each step, [samples, steps, ...], from windows [samples, *shape]. The first step may need more
    frames than the window has; these are zeros, on which no result depends."""
    samples, steps = len(array), window.steps_to_fill
    frames = array.reshape(samples, window.frames, -1)
    more = steps * window.step - window.frames
    padded = np.concatenate([np.zeros((samples, more, frames.shape[2]), array.dtype), frames], axis=1)
    return padded.reshape(samples, steps, -1)
