"""Draws inputs that drive the sums of layers to their smallest and largest values.

Random inputs leave sums near their mean: the spread of n products grows with the square root of n, the proven bounds of
an accumulator with n. So they would never reveal arithmetic that overflows or clamps only at the bounds. A layer that
reads an input directly gets windows whose elements have the signs of one filter's weights, which reach the bound
exactly. Later layers are driven by a bounded search among such inputs: parts of the input that drives a channel
furthest are changed at random, and what drives some channel further is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from tinyfuse.ir import Array, Graph, Op, Tensor
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.core.convolution import geometry
from tinyfuse.ops.program.interpret import run_graph
from tinyfuse.rewrite.fold_constants import fold_constants
from tinyfuse.verify.channel_ends import channel_ends
from tinyfuse.verify.emulation.inputs import free_ends

#: MACs that a search may spend in references, and most pairs of inputs that it draws and changes: a few tenths of a
#: second
_MACS, _DRAWN, _CHANGED = 160_000_000, 8, 12

#: for each element, True for the input's largest value, False for its smallest
Pattern = npt.NDArray[np.bool_]
Patterns = Mapping[Tensor, Pattern]
#: smallest and largest value of each channel of all layers
Ranges = tuple[Array, Array]


def extreme_inputs(graph: Graph, runs: int, seed: int, effort: int = 1) -> list[list[Array | None]]:
    """inputs[run][index], in pairs of opposites: every element is the smallest or the largest value of its input.

    None stands for an input whose elements are not independent: indexes, and those of `OpFamily.tried`. Empty for a
    graph without any other input, and for a step of a sliding window. `seed` is for numpy's default_rng. A search tries
    `effort` times as many inputs as usual.
    """
    graph = fold_constants(graph)  # references read the constants of their operators
    ends = {tensor: found for tensor in graph.inputs if (found := free_ends(graph, tensor)) is not None}
    if not ends or graph.window is not None or runs == 0:
        return []
    pairs = -(-runs // 2)
    generator, layers = np.random.default_rng(seed), {tensor: first_layers(graph, tensor) for tensor in ends}

    def draw(number: int) -> Patterns:
        found = {}
        for tensor, readers in layers.items():
            found[tensor] = _blocks(tensor.shape, generator)
            if readers:
                op, route = readers[number % len(readers)]
                found[tensor] = _driven(op, route, found[tensor], number // len(readers))
        return found

    def opposites(patterns: Patterns) -> list[list[Array | None]]:
        both = (patterns, {tensor: ~values for tensor, values in patterns.items()})
        return [[_filled(pattern[t], t, ends[t]) if t in ends else None for t in graph.inputs] for pattern in both]

    affordable = _affordable(graph, effort)
    drawn = [draw(number) for number in range(max(pairs, min(_DRAWN, affordable)))]
    if affordable > pairs and len(ends) == len(graph.inputs):
        drawn = _search(graph, drawn, opposites, affordable, pairs, generator)
    return [run for patterns in drawn[:pairs] for run in opposites(patterns)][:runs]


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
    """Return the pattern at the output of an operator that moves elements, from the pattern at its input."""
    if FAMILIES[op.kind].pads:
        return np.pad(pattern, op.operand(1).values.reshape(-1, 2).tolist())
    if FAMILIES[op.kind].transposes:
        return pattern.transpose(op.operand(1).values.reshape(-1).tolist())
    return pattern.reshape(op.output.shape)


def _moved_back(op: Op, pattern: Pattern) -> Pattern:
    """Return the pattern at the input of an operator that moves elements, from the pattern at its output."""
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


def _affordable(graph: Graph, effort: int) -> int:
    """Number of pairs of inputs that there is time to try on the references; 0 if an operator has no reference."""
    if not all(op.kind in FAMILIES and FAMILIES[op.kind].runs_here for op in graph.ops):
        return 0
    macs = sum(FAMILIES[op.kind].macs(op) for op in graph.ops)
    elements = sum(t.elements for op in graph.ops for t in op.outputs)
    return effort * min(_DRAWN + _CHANGED, _MACS // (2 * max(1, macs + 16 * elements)))


def _search(
    graph: Graph, drawn: list[Patterns], opposites: Callable[[Patterns], list[list[Array | None]]], most: int,
    count: int, generator: np.random.Generator,
) -> list[Patterns]:  # fmt: skip
    """The `count` pairs, in order of choice, that together give the layers' channels the widest ranges. Candidates are
    the pairs of `drawn` and changed copies of them, `most` in all."""
    layers = [op for op in graph.ops if FAMILIES[op.kind].data_and_weights and not op.output.is_constant]
    if not layers:
        return drawn
    watched, ends = replace(graph, outputs=tuple(op.output for op in layers)), channel_ends(graph)
    unknown = {op: (np.full(op.output.shape[-1:], -np.inf), np.full(op.output.shape[-1:], np.inf)) for op in layers}
    low_goals, high_goals = (np.concatenate([ends.get(op, unknown[op])[side] for op in layers]) for side in range(2))
    goals = np.concatenate([low_goals, -high_goals])

    def measure(patterns: Patterns) -> Ranges:
        runs = zip(*(_observe(watched, run) for run in opposites(patterns)), strict=True)
        low, high = zip(*map(_range, runs), strict=True)
        return np.concatenate(low), np.concatenate(high)

    tried = list(drawn)
    found = [measure(patterns) for patterns in tried]
    all_ends = np.array([np.concatenate([low, -high]) for low, high in found])
    reached, owners = all_ends.min(axis=0), all_ends.argmin(axis=0)
    for _ in range(most - len(tried)):
        left = owners[reached > goals]
        if not len(left):
            break
        changed = _changed(tried[generator.choice(left)], tried[generator.integers(len(tried))], generator)
        low, high = measure(changed)
        now = np.concatenate([low, -high])
        further = now < reached
        if further.any():
            reached[further], owners[further] = now[further], len(tried)
            tried.append(changed)
            found.append((low, high))
    return [tried[number] for number in _widest(found, (low_goals, high_goals), count)]


def _changed(patterns: Patterns, other: Patterns, generator: np.random.Generator) -> Patterns:
    """Copies of `patterns` in which a block of random size is inverted, taken from `other`, or drawn at random."""
    kind, found = int(generator.integers(3)), {}
    for tensor, old in patterns.items():
        part = []
        for length in old.shape:
            size = max(1, length >> int(generator.integers(5)))
            start = int(generator.integers(length - size + 1))
            part.append(slice(start, start + size))
        new, place = old.copy(), tuple(part)
        fresh = (~old, other[tensor], _blocks(old.shape, generator))[kind]
        new[place] = fresh[place]
        found[tensor] = new
    return found


def _widest(ranges: list[Ranges], goals: Ranges, count: int) -> list[int]:
    """Return the indexes of at most `count` of the ranges, which together reach the most goals, in the order in which
    they are chosen. Of ranges that reach equally many, the widest is chosen."""
    whole = np.maximum(1e-30, np.max([high - low for low, high in ranges], axis=0))
    joined = np.full(whole.shape, np.inf), np.full(whole.shape, -np.inf)
    chosen: list[int] = []

    def score(low: Array, high: Array) -> tuple[int, float]:
        return int((low <= goals[0]).sum() + (high >= goals[1]).sum()), float(((high - low) / whole).mean())

    while len(chosen) < min(count, len(ranges)):
        others = {
            number: (np.minimum(joined[0], low), np.maximum(joined[1], high))
            for number, (low, high) in enumerate(ranges)
            if number not in chosen
        }
        best = max(others, key=lambda number: score(*others[number]))
        chosen.append(best)
        joined = others[best]
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
