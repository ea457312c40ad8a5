"""Draws inputs that drive the sums of layers to their smallest and largest values.

Random inputs leave sums near their mean: the spread of n products grows with the square root of n, the proven bounds of
an accumulator with n. So they would never reveal arithmetic that overflows or clamps only at the bounds. A layer that
reads an input directly gets windows whose elements have the signs of one filter's weights, which reach the bound
exactly. Later layers are driven by a bounded random search among such inputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from tinyfuse.ir import Array, Graph, Op, Tensor
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.core.convolution import geometry
from tinyfuse.ops.program.interpret import run_graph
from tinyfuse.rewrite.fold_constants import fold_constants
from tinyfuse.verify.emulation.inputs import free_ends

#: MACs that a search may spend in references, and most pairs of inputs that it tries: a few tenths of a second
_MACS, _MOST = 80_000_000, 8

#: for each element, True for the input's largest value, False for its smallest
Pattern = npt.NDArray[np.bool_]


def extreme_inputs(graph: Graph, runs: int, seed: int) -> list[list[Array | None]]:
    """inputs[run][index], in pairs of opposites: every element is the smallest or the largest value of its input.

    None stands for an input whose elements are not independent: indexes, and those of `OpFamily.tried`. Empty for a
    graph without any other input, and for a step of a sliding window. `seed` is for numpy's default_rng.
    """
    graph = fold_constants(graph)  # references read the constants of their operators
    ends = {tensor: found for tensor in graph.inputs if (found := free_ends(graph, tensor)) is not None}
    if not ends or graph.window is not None or runs == 0:
        return []
    pairs = -(-runs // 2)
    generator, layers = np.random.default_rng(seed), {tensor: first_layers(graph, tensor) for tensor in ends}

    def draw(number: int) -> dict[Tensor, Pattern]:
        found = {}
        for tensor, readers in layers.items():
            found[tensor] = _blocks(tensor.shape, generator)
            if readers:
                op, route = readers[number % len(readers)]
                found[tensor] = _driven(op, route, found[tensor], number // len(readers))
        return found

    def opposites(patterns: Mapping[Tensor, Pattern]) -> Iterator[list[Array | None]]:
        for pattern in (patterns, {tensor: ~values for tensor, values in patterns.items()}):
            yield [_filled(pattern[t], t, ends[t]) if t in ends else None for t in graph.inputs]

    drawn = [list(opposites(draw(number))) for number in range(max(pairs, _affordable(graph)))]
    if len(drawn) > pairs and len(ends) == len(graph.inputs):
        drawn = [drawn[number] for number in _widest(graph, drawn, pairs)]
    return [run for pair in drawn[:pairs] for run in pair][:runs]


def first_layers(graph: Graph, tensor: Tensor) -> list[tuple[Op, tuple[Op, ...]]]:
    """(layer, operators from the input to it) for convolutions and dense layers with constant weights that read the
    input, directly or through operators that only move elements or compute each from the one at its place."""
    found, waiting = list[tuple[Op, tuple[Op, ...]]](), [(tensor, tuple[Op, ...]())]
    for value, route in waiting:
        for op in graph.consumers.get(value, ()):
            family = FAMILIES.get(op.kind)
            if family is None:
                continue
            if family.data_and_weights == (0, 1) and op.inputs[0] is value and op.operand(1).is_constant:
                if family.convolution or (family.channel_axis == 0 and len(op.operand(1).shape) == 2):
                    found.append((op, route))
            elif len(op.activations) == 1 and not op.states and len(op.outputs) == 1 and _keeps_elements(op):
                waiting.append((op.output, (*route, op)))
    return found


def _keeps_elements(op: Op) -> bool:
    """Tells whether each element of an operator's activation has exactly one place in its output."""
    family = FAMILIES[op.kind]
    same_size = op.output.elements == op.first_activation.elements
    return family.pads or family.transposes or (same_size and (family.alias or family.elementwise or family.pointwise))


def _driven(op: Op, route: tuple[Op, ...], rest: Pattern, number: int) -> Pattern:
    """Pattern of the input that drives a layer behind `route`; `rest` has the other elements."""
    for mover in route:
        rest = _moved(mover, rest)
    pattern = _signs(op, rest, number)
    for mover in reversed(route):
        pattern = _moved_back(mover, pattern)
    return pattern


def _moved(op: Op, pattern: Pattern) -> Pattern:
    """Pattern of an operator's output, from that of its activation."""
    if FAMILIES[op.kind].pads:
        return np.pad(pattern, op.operand(1).values.reshape(-1, 2).tolist())
    if FAMILIES[op.kind].transposes:
        return pattern.transpose(op.operand(1).values.reshape(-1).tolist())
    return pattern.reshape(op.output.shape)


def _moved_back(op: Op, pattern: Pattern) -> Pattern:
    """Pattern of an operator's activation, from that of its output."""
    shape = op.first_activation.shape
    if FAMILIES[op.kind].pads:
        before = op.operand(1).values.reshape(-1, 2)[:, 0].tolist()
        return pattern[tuple(slice(start, start + size) for start, size in zip(before, shape, strict=True))]
    if FAMILIES[op.kind].transposes:
        return pattern.transpose(np.argsort(op.operand(1).values.reshape(-1)))
    return pattern.reshape(shape)


def _signs(op: Op, rest: Pattern, number: int) -> Pattern:
    """Pattern of a layer's input whose windows have the signs of weights, as many as fit side by side.

    Windows alternate: a filter's largest sum, its smallest, then the next filter's. `number` selects the filter of the
    first window; if it is odd, every second pair of windows stays as in `rest`, and so do elements between windows.
    """
    pattern, weights = rest.copy(), op.operand(1).values
    if not FAMILIES[op.kind].convolution:
        count = pattern.size // weights.shape[1]
        vectors = [_window(weights[:, None, None, :], 1, number, row) for row in range(count)]
        return np.concatenate(vectors).reshape(pattern.shape)
    g = geometry(op)
    filters = weights.transpose(3, 1, 2, 0) if FAMILIES[op.kind].depthwise else weights
    steps = (
        -(-((g.kernel_h - 1) * g.dilation_h + 1) // g.stride_h),
        -(-((g.kernel_w - 1) * g.dilation_w + 1) // g.stride_w),
    )
    places = [(y, x) for y in range(0, g.out_h, steps[0]) for x in range(0, g.out_w, steps[1])]
    for turn, (y, x) in enumerate(places):
        if number % 2 == 0 or turn // 2 % 2 == 0:
            rows = y * g.stride_h - g.pad_top + np.arange(g.kernel_h) * g.dilation_h
            columns = x * g.stride_w - g.pad_left + np.arange(g.kernel_w) * g.dilation_w
            inside_y, inside_x = (rows >= 0) & (rows < g.in_h), (columns >= 0) & (columns < g.in_w)
            window = _window(filters, g.groups, number, turn)[inside_y][:, inside_x]
            pattern[:, rows[inside_y, None], columns[None, inside_x]] = window
    return pattern


def _window(filters: Array, groups: int, number: int, turn: int) -> Pattern:
    """[kernel rows, kernel columns, channels]: signs of one filter per group, inverted at odd turns.

    filters  [output channels, kernel rows, kernel columns, channels of a group]
    """
    each = len(filters) // groups
    chosen = filters[np.arange(groups) * each + (number + turn // 2) % each]
    signs: Pattern = np.concatenate(list(chosen), axis=-1) > 0
    return ~signs if turn % 2 else signs


def _blocks(shape: tuple[int, ...], generator: np.random.Generator) -> Pattern:
    """Random pattern of blocks of 1, 2, 4 or 8 elements along each dimension but the last."""
    size = 1 << int(generator.integers(0, 4))
    sizes = [1 if axis == len(shape) - 1 else size for axis in range(len(shape))]
    coarse = generator.integers(0, 2, [-(-n // s) for n, s in zip(shape, sizes, strict=True)]).astype(bool)
    return coarse[np.ix_(*(np.arange(n) // s for n, s in zip(shape, sizes, strict=True)))] if shape else coarse


def _filled(pattern: Pattern, tensor: Tensor, ends: tuple[float, float]) -> Array:
    low, high = np.array(ends, tensor.dtype)
    filled: Array = np.where(pattern, high, low)
    return filled


def _affordable(graph: Graph) -> int:
    """Number of pairs of inputs that the references may try; 0 if an operator has no reference."""
    if not all(op.kind in FAMILIES and FAMILIES[op.kind].runs_here for op in graph.ops):
        return 0
    macs = sum(FAMILIES[op.kind].macs(op) for op in graph.ops)
    elements = sum(t.elements for op in graph.ops for t in op.outputs)
    return min(_MOST, _MACS // (2 * max(1, macs + 16 * elements)))


def _widest(graph: Graph, drawn: list[list[list[Array | None]]], count: int) -> list[int]:
    """Numbers of `count` pairs, in order of choice, that together give the layers' channels the widest ranges."""
    outputs = [op.output for op in graph.ops if FAMILIES[op.kind].data_and_weights and not op.output.is_constant]
    if not outputs:
        return list(range(count))
    watched = replace(graph, outputs=tuple(outputs))
    # [pair][layer]: smallest and largest of each channel
    ranges = [
        [_range(values) for values in zip(*(_observe(watched, run) for run in pair), strict=True)] for pair in drawn
    ]
    widths = [
        np.maximum(1e-30, np.max([high - low for low, high in layer], axis=0)) for layer in zip(*ranges, strict=True)
    ]
    known = [(np.full(w.shape, np.inf), np.full(w.shape, -np.inf)) for w in widths]
    chosen: list[int] = []
    while len(chosen) < count:
        joined = {
            number: [
                (np.minimum(a, low), np.maximum(b, high)) for (a, b), (low, high) in zip(known, found, strict=True)
            ]
            for number, found in enumerate(ranges)
            if number not in chosen
        }
        best = max(joined, key=lambda n: sum(((b - a) / w).mean() for (a, b), w in zip(joined[n], widths, strict=True)))
        chosen.append(best)
        known = joined[best]
    return chosen


def _observe(watched: Graph, run: list[Array | None]) -> list[Array]:
    """Outputs of one run from the initial states."""
    states = {tensor: tensor.initial_values for tensor in watched.states}
    return run_graph(FAMILIES, watched, [values for values in run if values is not None], states)


def _range(runs: tuple[Array, ...]) -> tuple[Array, Array]:
    """(smallest, largest) value of each channel over some runs, as float64 without NaN or infinity."""
    values = np.nan_to_num(
        np.concatenate([run.reshape(-1, run.shape[-1]) for run in runs]).astype(np.float64), posinf=3e38, neginf=-3e38
    )
    return values.min(axis=0), values.max(axis=0)
