"""The inputs that a module is verified with."""

from __future__ import annotations

import numpy as np

from tinyfuse.ir import Array, Graph, Op, Tensor
from tinyfuse.ir.fixedpoint import RANGE
from tinyfuse.ops import FAMILIES


def input_set(graph: Graph, runs: int, seed: int) -> list[list[np.ndarray]]:
    """inputs[run][index] for the graph's inputs: all at their smallest value, all at their largest,
    all at their zero point, then random ones (`seed` is for numpy's default_rng), which take turns: over the
    whole range; the ends of the range alone, which drives sums far; one value a channel, as flat images
    have; and within a quarter of the range.

    With fewer than three runs the first is random. Floats go over what the QUANTIZE that reads them
    can represent and a quarter beyond; every fourth lies halfway between two stored values. Others go from -8 to 8,
    every fourth of any magnitude down to 2^-40; none is NaN or infinite.
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
    """What to try of an input whose elements say together what some operator does; () of any other."""
    readers = ((op, i) for op in _known(graph, tensor) for i, t in enumerate(op.inputs) if t is tensor)
    return next((values for values in (FAMILIES[op.kind].tried(op, i) for op, i in readers) if values), ())


def _known(graph: Graph, tensor: Tensor) -> list[Op]:
    """Who reads a tensor, but for operators that an interpreter alone has."""
    return [op for op in graph.consumers.get(tensor, ()) if op.kind in FAMILIES]


def _corners(graph: Graph, tensor: Tensor) -> tuple[float, float, float]:
    """The smallest and the largest value of an input, and what stands for zero."""
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
    if ends is not None:  # others may end a run
        return *ends, ends[0]
    info = np.iinfo(tensor.dtype)
    one = tensor.quant is not None and not tensor.quant.per_channel
    return int(info.min), int(info.max), tensor.zero_point if one else 0


def free_ends(graph: Graph, tensor: Tensor) -> tuple[float, float] | None:
    """The smallest and the largest value of an input whose elements may have any between; None of indexes, of bool, and
    of what an operator wants tried as a whole."""
    if tensor.dtype == "bool" or _tried(graph, tensor) or _indexes(graph, tensor) is not None:
        return None
    return _corners(graph, tensor)[:2]


def _indexes(graph: Graph, tensor: Tensor) -> tuple[int, int] | None:
    """The least and the greatest value of what some operator takes for indexes, moved by others or not; else None."""
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
    """The smallest or the largest value in every element."""
    low, high, _ = _corners(graph, tensor)
    ends = np.array([low, high], tensor.dtype)  # one dtype: numpy has none for 0 and 2^64 - 1
    return ends[generator.integers(0, 2, tensor.shape)]


def _flat(graph: Graph, tensor: Tensor, generator: np.random.Generator) -> np.ndarray:
    """One value in all places of a channel."""
    values = _uniform(graph, tensor, generator)
    if values.ndim < 2:
        return values
    return np.ascontiguousarray(np.broadcast_to(values.reshape(-1, values.shape[-1])[0], values.shape))


def _narrow(graph: Graph, tensor: Tensor, generator: np.random.Generator) -> np.ndarray:
    """A quarter of the range, somewhere in it."""
    low, high, _ = _corners(graph, tensor)
    values = _uniform(graph, tensor, generator).astype(np.float64)
    squeezed = low + (values - low) / 4 + generator.uniform(0, 0.75) * (float(high) - float(low))
    return (squeezed if tensor.dtype == "float32" else np.floor(squeezed)).astype(tensor.dtype)


_KINDS = (_uniform, _ends, _flat, _narrow)


#: of floats that no QUANTIZE reads
_LARGEST = 8.0


def _quantized_to(graph: Graph, tensor: Tensor) -> tuple[float, int, int, int] | None:
    """(scale, zero point, smallest, largest stored value) of the QUANTIZE that reads a float, None where none does."""
    for op in graph.consumers.get(tensor, ()):
        if op.kind == "QUANTIZE":
            return op.output.scale, op.output.zero_point, *RANGE[op.output.dtype]
    return None
