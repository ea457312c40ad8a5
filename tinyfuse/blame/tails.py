"""Computes the effect of one tensor's error on the float model's outputs: LiteRT runs the operators that follow it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tinyfuse.blame.layers import run_steps
from tinyfuse.errors import CompileError, UsageError
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.ir import Array, Graph, Op, Tensor
from tinyfuse.verify.oracle import InterpreterOracle
from tinyfuse.verify.pieces import piece_file


class Tails:
    """Float model in which single tensors can be replaced by other values.

    data, graph   the float file's bytes, and its graph with constants computed
    scores        tensors by which errors are judged: the float32 outputs, and the float32 tensors from which other
                  outputs are computed
    """

    def __init__(self, data: bytes, graph: Graph) -> None:
        self._data, self.graph = data, graph
        self.scores = _scores(graph)
        self._oracle = InterpreterOracle("litert", data, read_tflite(graph.path, data))
        self._tensors = [t for op in graph.ops for t in op.outputs if not t.is_state]
        self._pieces: dict[Tensor, tuple[Graph, InterpreterOracle | None] | None] = {}

    @property
    def bytes_of_sample(self) -> int:
        """Bytes of all tensors of one inference."""
        return sum(tensor.bytes for tensor in self._tensors)

    def values(self, inputs: list[list[Array]]) -> list[dict[Tensor, Array]]:
        """Return the values of all inputs and operators, for each run of inputs[run][index]."""
        found = self._oracle.tensors(inputs, [tensor.index for tensor in self._tensors])
        return [
            dict(zip(self.graph.inputs, run, strict=True))
            | {t: array.reshape(t.shape) for t, array in zip(self._tensors, arrays, strict=True)}
            for run, arrays in zip(inputs, found, strict=True)
        ]

    def scores_with(
        self, tensor: Tensor, instead: Sequence[Array], values: Sequence[dict[Tensor, Array]]
    ) -> list[list[Array]]:
        """Return the scores, [run][score], of runs in which `tensor` has other values."""
        found = [[run[score] for score in self.scores] for run in values]
        piece = self._piece(tensor)
        if tensor in self.scores:
            for run, array in zip(found, instead, strict=True):
                run[self.scores.index(tensor)] = array
        if piece is None:
            return found
        graph, oracle = piece
        if oracle is None:
            for known, array, scores in zip(values, instead, found, strict=True):
                computed = run_steps(graph.ops, {**known, tensor: array})
                for score in graph.outputs:
                    scores[self.scores.index(score)] = computed[score]
            return found
        inputs = [
            [array if t is tensor else run[t] for t in graph.inputs]
            for run, array in zip(values, instead, strict=True)
        ]  # fmt: skip
        for run, arrays in zip(found, oracle.run_all(inputs), strict=True):
            for score, array in zip(graph.outputs, arrays, strict=True):
                run[self.scores.index(score)] = array
        return found

    def _oracle_of(self, graph: Graph) -> InterpreterOracle | None:
        """Return the interpreter of a part of the model; None if the part is no model by itself, so that our references
        run it."""
        try:
            data = piece_file(self._data, self.graph, graph)
            return InterpreterOracle("litert", data, read_tflite(self.graph.path, data))
        except (CompileError, UsageError):
            return None

    def _piece(self, tensor: Tensor) -> tuple[Graph, InterpreterOracle | None] | None:
        """Return the operators between a tensor and the scores, and their interpreter; None if there are none."""
        if tensor not in self._pieces:
            ops = _behind(self.graph, tensor, self.scores)
            made = {t for op in ops for t in op.outputs}
            self._pieces[tensor] = None
            if ops:
                read = dict.fromkeys(t for op in ops for t in op.activations if t not in made)
                outputs = tuple(t for t in self.scores if t in made)
                graph = replace(self.graph, ops=ops, inputs=tuple(read), outputs=outputs)
                self._pieces[tensor] = graph, self._oracle_of(graph)
        return self._pieces[tensor]


def _scores(graph: Graph) -> tuple[Tensor, ...]:
    """Return the float32 outputs, and for each other output the float32 tensors from which it is computed."""
    found, waiting, seen = dict[Tensor, None](), list(graph.outputs), set[Tensor]()
    while waiting:
        tensor = waiting.pop(0)
        if tensor in seen:
            continue
        seen.add(tensor)
        if tensor.dtype == "float32":
            found[tensor] = None
        elif tensor in graph.producer:
            waiting += graph.producer[tensor].activations
    return tuple(tensor for tensor in found if tensor in graph.producer)


def _behind(graph: Graph, tensor: Tensor, scores: Sequence[Tensor]) -> tuple[Op, ...]:
    """Return the operators on the way from a tensor to the scores, in order."""
    reached, ops = {tensor}, list[Op]()
    for op in graph.ops:
        if reached & set(op.activations):
            reached |= set(op.outputs)
            ops.append(op)
    wanted, kept = set(scores), list[Op]()
    for op in reversed(ops):
        if wanted & set(op.outputs):
            wanted |= set(op.activations)
            kept.insert(0, op)
    return tuple(kept)


def decibels(signal: float, noise: float) -> float | None:
    """Return a signal-to-noise ratio of energies; None where there is no noise, or no signal."""
    return None if noise <= 0 or signal <= 0 else float(10 * np.log10(signal / noise))
