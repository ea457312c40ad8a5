"""The inputs that a module is verified with."""

from __future__ import annotations

import numpy as np

from tinyfuse.fixedpoint import RANGE
from tinyfuse.ir import Graph, Tensor
from tinyfuse.ops.gather import gather_extents


def input_set(graph: Graph, runs: int, seed: int) -> list[list[np.ndarray]]:
    """inputs[run][index] for the graph's inputs: all at their smallest value, all at their largest,
    all at their zero point, then random over the whole range (`seed` is for numpy's default_rng).

    With fewer than three runs the first is random. Floats go over what the QUANTIZE that reads them
    can represent and a quarter beyond; every fourth lies halfway between two stored values.
    """
    generator = np.random.default_rng(seed)

    def random() -> list[np.ndarray]:
        return [_random(graph, tensor, generator) for tensor in graph.inputs]

    fixed = [
        [np.full(t.shape, _corners(graph, t)[corner], t.dtype) for t in graph.inputs]
        for corner in range(3)
    ]
    if runs < 3:
        return [random(), *fixed][:runs]
    return fixed + [random() for _ in range(runs - 3)]


def _corners(graph: Graph, tensor: Tensor) -> tuple[float, float, float]:
    """The smallest and the largest value of an input, and what stands for zero."""
    if tensor.dtype == "float32":
        scale, zero_point, low, high = _quantized_to(graph, tensor)
        beyond = (high - low) / 4
        return (low - beyond - zero_point) * scale, (high + beyond - zero_point) * scale, 0.0
    if tensor.dtype == "bool":
        return False, True, False
    for op in graph.consumers.get(tensor, ()):
        if op.kind == "GATHER" and tensor is op.inputs[1]:  # other indexes end a run
            return 0, gather_extents(op).slices - 1, 0
    info = np.iinfo(tensor.dtype)
    return int(info.min), int(info.max), tensor.zero_point if tensor.quant else 0


def _random(graph: Graph, tensor: Tensor, generator: np.random.Generator) -> np.ndarray:
    low, high, _ = _corners(graph, tensor)
    if tensor.dtype != "float32":
        return generator.integers(low, high, tensor.shape, tensor.dtype, endpoint=True)
    scale = np.float32(_quantized_to(graph, tensor)[0])
    values = generator.uniform(low, high, tensor.shape).astype(np.float32)
    halfway = (np.floor(values / scale) + np.float32(0.5)) * scale
    return np.where(generator.integers(0, 4, tensor.shape) == 0, halfway, values)


def _quantized_to(graph: Graph, tensor: Tensor) -> tuple[float, int, int, int]:
    """(scale, zero point, smallest, largest stored value) of the QUANTIZE that reads a float."""
    for op in graph.consumers.get(tensor, ()):
        if op.kind == "QUANTIZE":
            return op.output.scale, op.output.zero_point, *RANGE[op.output.dtype]
    return 1 / 128, 0, *RANGE["int8"]
