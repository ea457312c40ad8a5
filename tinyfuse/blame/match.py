"""Pairs the tensors of a quantized graph with those of the float graph from which it was made."""

from __future__ import annotations

from difflib import SequenceMatcher

from tinyfuse.errors import UsageError
from tinyfuse.ir import Graph, Op, Tensor, type_text
from tinyfuse.ops.real_numbers import converts

Pairs = dict[Tensor, Tensor]


def matched_tensors(quantized: Graph, floats: Graph) -> Pairs:
    """Map tensors of the quantized graph to their counterparts in the float graph, as far as these are known.

    Inputs and outputs are matched by their places, then outputs of operators by name, and between these by the longest
    common run of operators of one kind and shape. The output of a conversion has the counterpart of its input. Raises
    UsageError if inputs or outputs differ in number or shape.
    """
    pairs: Pairs = {}
    for end, ours, theirs in (
        ("inputs", quantized.inputs, floats.inputs),
        ("outputs", quantized.outputs, floats.outputs),
    ):
        if [t.shape for t in ours] != [t.shape for t in theirs]:
            told = "; ".join(f"{graph.path}: {', '.join(map(type_text, each))}"
                             for graph, each in ((quantized, ours), (floats, theirs)))  # fmt: skip
            raise UsageError(f"--float: MODEL was not made from this model, because their {end} differ ({told})")
        pairs |= zip(ours, theirs, strict=True)
    for first, second in _aligned(_computing(quantized), _computing(floats), pairs):
        pairs |= zip(first.outputs, second.outputs, strict=False)
    for op in quantized.ops:  # forwards: what is behind a conversion
        if converts(op) and op.input in pairs:
            pairs.setdefault(op.output, pairs[op.input])
    for op in reversed(quantized.ops):  # and backwards: what is before one
        if converts(op) and op.output in pairs:
            pairs.setdefault(op.input, pairs[op.output])
    return pairs


def _computing(graph: Graph) -> list[Op]:
    return [op for op in graph.ops if not converts(op) and op.outputs]


def _aligned(ours: list[Op], theirs: list[Op], pairs: Pairs) -> list[tuple[Op, Op]]:
    """Return pairs of operators in the order of both graphs."""
    places = {op.outputs[0].name: place for place, op in enumerate(theirs)}
    known = {pairs[t]: t for t in pairs}
    ends = {known[op.outputs[0]]: place for place, op in enumerate(theirs) if op.outputs[0] in known}
    found, last = list[tuple[int, int]](), -1
    for place, op in enumerate(ours):
        other = ends.get(op.outputs[0], places.get(op.outputs[0].name))
        # an equal name that would reverse the order belongs to another tensor
        if other is not None and other > last and _shape(op) == _shape(theirs[other]):
            found.append((place, other))
            last = other
    aligned, before = list[tuple[int, int]](), (-1, -1)
    for anchor in [*found, (len(ours), len(theirs))]:
        first, second = (list(range(a + 1, b)) for a, b in zip(before, anchor, strict=True))
        blocks = SequenceMatcher(
            None, [_key(ours[i]) for i in first], [_key(theirs[i]) for i in second], autojunk=False
        ).get_matching_blocks()
        aligned += [(first[b.a + k], second[b.b + k]) for b in blocks for k in range(b.size)]
        aligned.append(anchor)
        before = anchor
    return [(ours[a], theirs[b]) for a, b in aligned[:-1]]


def _shape(op: Op) -> tuple[int, ...]:
    return op.outputs[0].shape


def _key(op: Op) -> tuple[str, tuple[int, ...]]:
    return op.kind, _shape(op)
