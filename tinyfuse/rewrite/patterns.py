"""Chains of operators that a plugin replaces by one of its own.

before   %a = RESHAPE(%in);  %b = TRANSPOSE(%a, %p);  %c = RESHAPE(%b)
after    %c = CHANNEL_SHUFFLE(%in)

Only where nothing else reads what the chain's operators pass on. That the new operator computes the same
is the plugin's word; `verify` compares with the file's own operators, and sees where it is broken.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from tinyfuse.ir import Graph, Op, Tensor
from tinyfuse.ops import FAMILIES


@dataclass(frozen=True)
class Pattern:
    """name        for people
    chain       kinds of operators, each the only reader of the one before, whose output is its first input
    kind        of the operator that replaces them
    condition   whether these operators of the graph are meant; the new one's rules must hold too
    attributes  the new operator's attributes, made from them
    constants   of their inputs, those that become the new operator's after the first one's activation
    """

    name: str
    chain: tuple[str, ...]
    kind: str
    condition: Callable[[tuple[Op, ...]], bool] = lambda ops: True
    attributes: Callable[[tuple[Op, ...]], object] = lambda ops: None
    constants: Callable[[tuple[Op, ...]], tuple[Tensor, ...]] = lambda ops: ()


#: those of the plugins in use (tinyfuse/plugin.py)
PATTERNS: list[Pattern] = []


def replace_patterns(graph: Graph) -> Graph:
    """The graph with the plugins' operators in the place of the chains that they stand for."""
    for pattern in PATTERNS:
        graph = _replace(graph, pattern)
    return graph


def _replace(graph: Graph, pattern: Pattern) -> Graph:
    instead: dict[Op, Op | None] = {}
    for op in graph.ops:
        chain = _chain(graph, op, pattern)
        if chain is None or any(member in instead for member in chain) or not pattern.condition(chain):
            continue
        inputs = (chain[0].input, *pattern.constants(chain))
        made = Op(pattern.kind, inputs, chain[-1].outputs, pattern.attributes(chain), op.index)
        if any(rule.problem(made) for rule in FAMILIES[pattern.kind].rules):
            continue
        instead |= dict.fromkeys(chain[:-1])
        instead[chain[-1]] = made  # in the last one's place, where all that it reads is there
    if not instead:
        return graph
    return replace(graph, ops=tuple(new for op in graph.ops if (new := instead.get(op, op)) is not None))


def _chain(graph: Graph, op: Op, pattern: Pattern) -> tuple[Op, ...] | None:
    """The operators from `op` on that have the pattern's kinds and read one another alone."""
    if op.kind != pattern.chain[0]:
        return None
    found = [op]
    for kind in pattern.chain[1:]:
        passed = found[-1].outputs
        readers = graph.consumers.get(passed[0], ()) if len(passed) == 1 else ()
        if len(readers) != 1 or passed[0] in graph.outputs:
            return None
        (reader,) = readers
        if reader.kind != kind or reader.optional(0) is not passed[0] or len(reader.activations) != 1:
            return None
        found.append(reader)
    return tuple(found)
