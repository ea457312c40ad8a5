"""Models that keep their window themselves: a front end makes frames of each run's input, a variable keeps the last
ones, and a stateless network reads them all. A network with its front end for audio (--front-end) is one.

    %f[1,40] = front end (%samples, its own states)
    %v = READ_VARIABLE(%s);  %w[1,49,40,1] = RESHAPE(CONCATENATION(%v, %f));  ASSIGN_VARIABLE(%s, STRIDED_SLICE(...))
    %scores = network (%w)

The network slides, over %w. In each step the front end runs as often as the step's frames require, and advances its
states as the model's runs would. rewrite/ring_window.py finds which elements the variable keeps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod

import numpy as np

from tinyfuse.errors import CompileError, Problem
from tinyfuse.ir import Graph, Op, OwnWindow, Tensor
from tinyfuse.ops.movement.concatenation import Concatenation
from tinyfuse.rewrite.ring_window import KeptWindow, kept_window


def own_window(graph: Graph, axis: int, step: int) -> tuple[int, OwnWindow] | None:
    """Finds (number of the input that each run brings, parts of the model) if dimension `axis` of the network's input
    has the frames; None for other models.

    Raises CompileError for a step that is no whole number of runs.
    """
    for state in graph.states:
        kept = kept_window(graph, state)
        for tensor in reversed(list(kept.numbers) if kept else []):
            found = _parts(graph, kept, tensor, axis) if kept and _is_window(kept, tensor, axis) else None
            if found is not None:
                number, own, frames = found
                if step % frames:
                    message = f"--slide {step}: a run of the model makes {frames} frames of {graph.inputs[number]}"
                    hint = f"give --slide {frames}, or a multiple of it"
                    raise CompileError(graph.path, Problem(message, tensor=str(graph.inputs[number]), hint=hint))
                return number, replace(own, runs=step // frames)
    return None


def _is_window(kept: KeptWindow, tensor: Tensor, axis: int) -> bool:
    """Tells whether a tensor contains the newest frames in order, each of them contiguous."""
    shape, numbers = tensor.shape, kept.numbers[tensor].reshape(-1)
    total = kept.state.elements + kept.frame.elements
    if len(shape) <= axis or shape[axis] < 2 or prod(shape[:axis]) != 1:
        return False
    in_order = np.array_equal(numbers, np.arange(total - tensor.elements, total))
    return in_order and kept.frame.elements % prod(shape[axis + 1 :]) == 0


def _parts(graph: Graph, kept: KeptWindow, window: Tensor, axis: int) -> tuple[int, OwnWindow, int] | None:
    """Splits a model whose network reads `window`: (input, parts, frames per run).

    None if the network reads other computed tensors or has states, or if the frames do not come from equal parts of
    exactly one input.
    """
    network = list(_network(graph, window))
    moving = {op for op in kept.moves if op not in network} | {kept.read, kept.assign}
    front = tuple(op for op in graph.ops if op not in network and op not in moving)
    made = {tensor for op in network for tensor in op.outputs}
    seen = {tensor for op in front for tensor in op.activations} | {kept.frame}
    brought = [tensor for tensor in graph.inputs if tensor in seen]
    beside = [tensor for tensor in graph.inputs if tensor not in brought]
    read = {tensor for op in network for tensor in op.activations} - made - {window, *beside}
    stateful = any(op.states for op in network)
    if len(brought) != 1 or read or seen & kept.numbers.keys() or stateful or not set(graph.outputs) <= made:
        return None
    whole = replace(graph, ops=tuple(network), inputs=(window, *beside))
    frames = kept.frame.elements // prod(window.shape[axis + 1 :])
    if brought[0].elements % frames:
        return None
    return graph.inputs.index(brought[0]), OwnWindow(whole, front, kept.frame, 1), frames


def _network(graph: Graph, window: Tensor) -> Iterator[Op]:
    """Yields the operators between the window and the model's outputs."""
    wanted = set(graph.outputs)
    for op in reversed(graph.ops):
        if not wanted.isdisjoint(op.outputs):
            wanted.update(op.activations)
    known = {window}
    for op in graph.ops:
        if not known.isdisjoint(op.activations) and not wanted.isdisjoint(op.outputs):
            known.update(op.outputs)
            yield op


def prepend_front_end(step: Graph, number: int, own: OwnWindow) -> Graph:
    """Puts the front end's runs in front of the step graph of the network (`own.network`, whose first input has the
    frames). Input `number` brings the samples of all runs."""
    frames, *beside = step.inputs
    whole = step.window.whole if step.window else step
    given = whole.inputs[number]
    brought = given if own.runs == 1 else replace(given, shape=_longer(given, own.runs), index=-1)
    ops: list[Op] = []
    parts = []
    for run in range(own.runs):
        made = {given: _part(ops, brought, given, run)}
        for op in own.front:
            ops.append(op if own.runs == 1 else _copy(op, made, first=run == 0))
        frame = made.get(own.frame, own.frame)
        rows = replace(frames, shape=(1, frames.shape[1] // own.runs, *frames.shape[2:]), index=-1)
        rows = frames if own.runs == 1 else rows
        ops.append(Op("RESHAPE", (frame,), (rows,)))
        parts.append(rows)
    if own.runs > 1:
        ops.append(Op("CONCATENATION", tuple(parts), (frames,), Concatenation(axis=1)))
    inputs = (*beside[:number], brought, *beside[number:])
    return replace(step, ops=(*ops, *step.ops), inputs=inputs)


def _copy(op: Op, made: dict[Tensor, Tensor], first: bool) -> Op:
    """Copies a front-end operator for one of several runs, reading and extending `made`. The first run keeps the
    operator indexes of the file, so that errors name them."""
    inputs = tuple(made.get(t, t) if t is not None else None for t in op.inputs)
    outputs = tuple(replace(t, index=-1) for t in op.outputs)
    made.update(zip(op.outputs, outputs, strict=True))
    return replace(op, inputs=inputs, outputs=outputs, index=op.index if first else -1)


def _axis(tensor: Tensor) -> int:
    """Index of the time axis: the first dimension that is not 1, else the last one."""
    return next((i for i, size in enumerate(tensor.shape) if size > 1), len(tensor.shape) - 1)


def _longer(tensor: Tensor, runs: int) -> tuple[int, ...]:
    """Shape of `runs` tensors of this kind, concatenated along the axis of time."""
    return tuple(size * runs if i == _axis(tensor) else size for i, size in enumerate(tensor.shape))


def _part(ops: list[Op], brought: Tensor, given: Tensor, run: int) -> Tensor:
    """Part of a step's input tensor that run number `run` of the step reads: a SLICE along the axis of time."""
    if brought is given:
        return given
    axis = _axis(given)
    part = replace(given, name=f"{given.name} ({run})", index=-1)
    begin = np.array([run * given.shape[axis] if i == axis else 0 for i in range(len(given.shape))], np.int32)
    size = np.array(given.shape, np.int32)
    vectors = (Tensor("", begin.shape, "int32", data=data) for data in (begin, size))
    ops.append(Op("SLICE", (brought, *vectors), (part,)))
    return part
