"""Draws the inputs that a module is verified with."""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import Array, Graph, Op, Tensor
from tinyfuse.ir.fixedpoint import RANGE
from tinyfuse.ops import FAMILIES


def input_set(graph: Graph, runs: int, seed: int) -> list[list[np.ndarray]]:
    """inputs[run][index] for the graph's inputs: all smallest, all largest, all zero points, then random ones.

    Random runs take turns: values over the whole range; only the ends of the range, which drives sums far; one value
    per channel, as in flat images; values within a quarter of the range. `seed` is for numpy's default_rng. With fewer
    than three runs the first one is random.

    Floats cover the range of the QUANTIZE that reads them and a quarter beyond; every fourth is halfway between two
    stored values. Other floats are between -8 and 8, every fourth of any magnitude down to 2^-40. None is NaN or
    infinite.
    """
    generator = np.random.default_rng(seed)

    tried = {tensor: _tried(graph, tensor) for tensor in graph.inputs}

    def random(number: int = 0) -> list[np.ndarray]:
        kind = _KINDS[number % len(_KINDS)]
        return [
            tried[t][generator.integers(len(tried[t]))] if tried[t] else kind(graph, t, generator) for t in graph.inputs
        ]

    def corner(number: int) -> list[np.ndarray]:
        return [
            tried[t][number % len(tried[t])] if tried[t] else np.full(t.shape, _corners(graph, t)[number], t.dtype)
            for t in graph.inputs
        ]

    fixed = [corner(number) for number in range(3)]
    if runs < 3:
        return [random(), *fixed][:runs]
    return fixed + [random(number) for number in range(runs - 3)]


def _tried(graph: Graph, tensor: Tensor) -> tuple[Array, ...]:
    """Arrays to try for an input whose elements control an operator together; () for other inputs."""
    readers = ((op, i) for op in _known(graph, tensor) for i, t in enumerate(op.inputs) if t is tensor)
    return next((values for values in (FAMILIES[op.kind].tried(op, i) for op, i in readers) if values), ())


def _known(graph: Graph, tensor: Tensor) -> list[Op]:
    """Readers of a tensor that have a family; others are run by interpreters only."""
    return [op for op in graph.consumers.get(tensor, ()) if op.kind in FAMILIES]


def _corners(graph: Graph, tensor: Tensor) -> tuple[float, float, float]:
    """Smallest and largest value of an input, and the value that stands for zero."""
    if tensor.dtype == "float32":
        quantized = _quantized_to(graph, tensor)
        if quantized is None:
            return -_LARGEST, _LARGEST, 0.0
        scale, zero_point, low, high = quantized
        beyond = (high - low) / 4
        return (low - beyond - zero_point) * scale, (high + beyond - zero_point) * scale, 0.0
    if tensor.dtype == "bool":
        return False, True, False
    ends = _indexes(graph, tensor)
    if ends is not None:  # indexes outside this range may abort a run
        return *ends, ends[0]
    info = np.iinfo(tensor.dtype)
    one = tensor.quant is not None and not tensor.quant.per_channel
    return int(info.min), int(info.max), tensor.zero_point if one else 0


def free_ends(graph: Graph, tensor: Tensor) -> tuple[float, float] | None:
    """Smallest and largest value of an input whose elements are independent; None for indexes, for bool, and for inputs
    that are tried as a whole."""
    if tensor.dtype == "bool" or _tried(graph, tensor) or _indexes(graph, tensor) is not None:
        return None
    return _corners(graph, tensor)[:2]


def _indexes(graph: Graph, tensor: Tensor) -> tuple[int, int] | None:
    """Smallest and largest valid index of an input that some operator reads as indexes, possibly after other operators
    moved it; None for other inputs."""
    waiting, seen = [tensor], {tensor}
    for moved in waiting:
        for op in _known(graph, moved):
            family = FAMILIES[op.kind]
            places = [index for index, operand in enumerate(op.inputs) if operand is moved]
            found = next((ends for ends in (family.indexes(op, index) for index in places) if ends is not None), None)
            if found is not None:
                return found
            if set(places) & set(family.moves(op)):
                waiting += [t for t in op.outputs if t not in seen]
                seen.update(op.outputs)
    return None


def _uniform(graph: Graph, tensor: Tensor, generator: np.random.Generator) -> np.ndarray:
    low, high, _ = _corners(graph, tensor)
    if tensor.dtype != "float32":
        drawn: Array = generator.integers(int(low), int(high), tensor.shape, np.dtype(tensor.dtype), endpoint=True)
        return drawn
    quantized = _quantized_to(graph, tensor)
    values = generator.uniform(low, high, tensor.shape).astype(np.float32)
    if quantized is None:
        others = values * np.exp2(-generator.integers(0, 41, tensor.shape)).astype(np.float32)
    else:
        scale = np.float32(quantized[0])
        others = (np.floor(values / scale) + np.float32(0.5)) * scale
    return np.where(generator.integers(0, 4, tensor.shape) == 0, others, values)


def _ends(graph: Graph, tensor: Tensor, generator: np.random.Generator) -> np.ndarray:
    """Array whose elements are the smallest or the largest value at random."""
    low, high, _ = _corners(graph, tensor)
    ends = np.array([low, high], tensor.dtype)  # one dtype: numpy has none for 0 and 2^64 - 1
    return ends[generator.integers(0, 2, tensor.shape)]


def _flat(graph: Graph, tensor: Tensor, generator: np.random.Generator) -> np.ndarray:
    """Array with one value per channel."""
    values = _uniform(graph, tensor, generator)
    if values.ndim < 2:
        return values
    return np.ascontiguousarray(np.broadcast_to(values.reshape(-1, values.shape[-1])[0], values.shape))


def _narrow(graph: Graph, tensor: Tensor, generator: np.random.Generator) -> np.ndarray:
    """Array with values in a random quarter of the range."""
    low, high, _ = _corners(graph, tensor)
    values = _uniform(graph, tensor, generator).astype(np.float64)
    squeezed = low + (values - low) / 4 + generator.uniform(0, 0.75) * (float(high) - float(low))
    return (squeezed if tensor.dtype == "float32" else np.floor(squeezed)).astype(tensor.dtype)


_KINDS = (_uniform, _ends, _flat, _narrow)


#: range of floats that no QUANTIZE reads
_LARGEST = 8.0


def _quantized_to(graph: Graph, tensor: Tensor) -> tuple[float, int, int, int] | None:
    """(scale, zero point, smallest, largest stored value) of the QUANTIZE that reads a float input; None without
    one."""
    for op in graph.consumers.get(tensor, ()):
        if op.kind == "QUANTIZE":
            return op.output.scale, op.output.zero_point, *RANGE[op.output.dtype]
    return None
