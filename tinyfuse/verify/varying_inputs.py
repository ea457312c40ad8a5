"""Draws inputs for which every output changes, because a constant output proves little."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tinyfuse.ir import Graph, Tensor
from tinyfuse.verify.emulation.inputs import input_set
from tinyfuse.verify.extreme_inputs import extreme_inputs
from tinyfuse.verify.oracle import Oracle
from tinyfuse.verify.streams import join_streams, split_streams

#: further draws that are tried, and the factor on runs if the user did not fix their number
_DRAWS, _LONGER = 3, 4

#: first run with extreme inputs, and the distance from one to the next: two of eight
_FIRST_EXTREME, _EACH = 4, 3

Arrays = list[list[np.ndarray]]


def varying_inputs(
    graph: Graph, oracle: Oracle, runs: int, frames: int | None, seed: int, fixed: bool, effort: int = 1
) -> tuple[Arrays, Arrays, int | None]:
    """(inputs, the oracle's outputs, frames of a stream) of the first draw in which every output changes from run to
    run, else of the draw in which most do. If `fixed` is False, more runs are tried last. `effort` as in
    `extreme_inputs`."""
    best = None
    for number, length, draw in _draws(runs, frames, seed, fixed):
        inputs = _drawn(graph, number, draw, effort)
        outputs = join_streams(oracle.run_streams(split_streams(inputs, length)), length)
        still = len(unchanging(graph, outputs))
        if best is None or still < best[0]:
            best = still, inputs, outputs, length
        if still == 0:
            break
    assert best is not None
    return best[1:]


def _drawn(graph: Graph, runs: int, seed: int, effort: int) -> Arrays:
    """inputs[run][index] of `input_set`, some replaced by inputs that drive layers to their bounds."""
    inputs, places = input_set(graph, runs, seed), range(_FIRST_EXTREME, runs, _EACH)
    for place, extreme in zip(places, extreme_inputs(graph, len(places), seed, effort), strict=False):
        inputs[place] = [old if new is None else new for old, new in zip(inputs[place], extreme, strict=True)]
    return inputs


def _draws(runs: int, frames: int | None, seed: int, fixed: bool) -> Iterator[tuple[int, int | None, int]]:
    """Yields (runs, frames, seed) in the order of trial."""
    for draw in range(seed, seed + 1 + _DRAWS):
        yield runs, frames, draw
    if not fixed:
        yield runs * _LONGER, None if frames is None else frames * _LONGER, seed


def unchanging_warnings(graph: Graph, outputs: Arrays) -> list[str]:
    """Warning for each output that is the same in all runs."""
    return [
        f"output {name!r} is the same in all {len(outputs)} runs, which proves little: give more --runs, another --seed"
        for name in unchanging(graph, outputs)
    ]


def unchanging(graph: Graph, outputs: Arrays) -> list[str]:
    """Names of outputs that are the same in every run although they depend on an input or a state; empty for a single
    run."""
    if len(outputs) < 2:
        return []
    varying = _varying(graph)
    return [
        tensor.name
        for index, tensor in enumerate(graph.outputs)
        if tensor in varying and all(run[index].tobytes() == outputs[0][index].tobytes() for run in outputs)
    ]


def _varying(graph: Graph) -> set[Tensor]:
    """Tensors that depend on an input or a state."""
    found = set(graph.inputs)
    for op in graph.ops:
        if op.states or found.intersection(op.activations):
            found.update(op.outputs)
    return found
