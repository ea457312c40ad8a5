"""Parts of a graph that a plugin replaces by an operator of its own.

before   %a = MINIMUM(%x, %y);  %b = MAXIMUM(%x, %y);  %c = MINIMUM(%b, %z);  %d = MAXIMUM(%a, %c)
after    %d = MEDIAN_OF_THREE(%x, %y, %z)

Only where nothing else reads what the part's operators pass on. That the new operator computes the same is the plugin's
word; `verify` compares with the file's own operators, and sees where it is broken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tinyfuse.errors import UsageError
from tinyfuse.ir import Graph, Op, Tensor
from tinyfuse.ops import FAMILIES

#: kinds whose two inputs may stand in either order
COMMUTATIVE = ("ADD", "MUL", "MAXIMUM", "MINIMUM", "EQUAL", "NOT_EQUAL", "LOGICAL_AND", "LOGICAL_OR")


@dataclass(frozen=True, eq=False)
class Input:
    """A tensor that is computed, which the new operator reads. One that stands in several places is the same tensor in
    all of them."""


@dataclass(frozen=True, eq=False)
class ConstantInput:
    """A constant, which becomes an input of the new operator."""


@dataclass(frozen=True, eq=False)
class Operator:
    """An operator of that kind that reads what `inputs` describe; of what they leave out, nothing may be computed. One
    that stands in several places is the same operator in all of them. `output`: the number of the one that is read."""

    kind: str
    inputs: tuple[Node, ...]
    output: int = 0

    def __init__(self, kind: str, *inputs: Node, output: int = 0):
        for name, value in (("kind", kind), ("inputs", inputs), ("output", output)):
            object.__setattr__(self, name, value)


Node = Input | ConstantInput | Operator

#: what the nodes of a pattern stand for
Found = Mapping[Node, Tensor | Op]


def chain(*kinds: str) -> Operator:
    """Operators of these kinds, each of which reads the one before as its first input."""
    node: Node = Input()
    for kind in kinds:
        node = Operator(kind, node)
    if not isinstance(node, Operator):
        raise UsageError("a chain of no operators")
    return node


@dataclass(frozen=True)
class Pattern:
    """name        for people
    match       the operators that are replaced: the last one, whose outputs the new operator has
    kind        of the operator that replaces them. It reads what stands for the Inputs, then for the Constants, each in
                the order in which `match` first names it
    condition   whether these operators of the graph are meant, each after those that it reads, the last one last; the
                new one's rules must hold too
    attributes  the new operator's attributes, made from them
    constants   further constant inputs, made from them
    """

    name: str
    match: Operator
    kind: str
    condition: Callable[[tuple[Op, ...]], bool] = lambda ops: True
    attributes: Callable[[tuple[Op, ...]], object] = lambda ops: None
    constants: Callable[[tuple[Op, ...]], tuple[Tensor, ...]] = lambda ops: ()


#: those of the plugins in use (tinyfuse/plugin.py)
PATTERNS: list[Pattern] = []


def replace_patterns(graph: Graph) -> Graph:
    """The graph with the plugins' operators in the place of the parts that they stand for."""
    for pattern in PATTERNS:
        graph = _replace(graph, pattern)
    return graph


def _replace(graph: Graph, pattern: Pattern) -> Graph:
    instead: dict[Op, Op | None] = {}
    for last in graph.ops:
        for found in at_operator(graph, pattern.match, last, {}):
            made = _made(graph, pattern, found, instead)
            if made is not None:
                instead |= dict.fromkeys(op for op in found.values() if isinstance(op, Op))
                instead[last] = made  # in the last one's place, where all that it reads is there
                break
    if not instead:
        return graph
    return replace(graph, ops=tuple(new for op in graph.ops if (new := instead.get(op, op)) is not None))


def _made(graph: Graph, pattern: Pattern, found: Found, taken: Mapping[Op, Op | None]) -> Op | None:
    """The operator in the place of those found; None where they are not meant, or others need what they pass on."""
    nodes = _in_order(pattern.match)
    ops = tuple(op for node in nodes if isinstance(op := found[node], Op))
    if any(op in taken for op in ops) or not _is_closed(graph, ops) or not pattern.condition(ops):
        return None
    by_sort = [found[node] for sort in (Input, ConstantInput) for node in nodes if isinstance(node, sort)]
    inputs = [tensor for tensor in by_sort if isinstance(tensor, Tensor)]
    made = Op(pattern.kind, (*inputs, *pattern.constants(ops)), ops[-1].outputs, pattern.attributes(ops), ops[-1].index)
    return None if any(rule.problem(made) for rule in FAMILIES[pattern.kind].rules) else made


def _is_closed(graph: Graph, ops: Sequence[Op]) -> bool:
    """Whether they are different ones, keep no state, and what all but the last one compute they alone read."""
    passed = [tensor for op in ops[:-1] for tensor in op.outputs]
    readers = {reader for tensor in passed for reader in graph.consumers.get(tensor, ())}
    return (
        len(set(ops)) == len(ops)
        and not any(op.states for op in ops)
        and readers <= set(ops)
        and not set(passed) & set(graph.outputs)
    )


def _in_order(node: Node) -> list[Node]:
    """All nodes, each once: inputs before those that read them."""
    seen: dict[Node, None] = {}
    for source in node.inputs if isinstance(node, Operator) else ():
        seen |= dict.fromkeys(_in_order(source))
    return [*(dict.fromkeys(seen)), node]


def at_operator(graph: Graph, node: Operator, op: Op, found: Found) -> Iterator[Found]:
    """What else the nodes up to `node` may stand for, if it is `op`."""
    if node in found:
        if found[node] is op:
            yield found
        return
    rest = op.inputs[len(node.inputs) :]
    if op.kind != node.kind or len(op.inputs) < len(node.inputs) or any(t in op.activations for t in rest):
        return
    orders = [node.inputs]
    if op.kind in COMMUTATIVE and len(node.inputs) == 2:
        orders.append(node.inputs[::-1])
    for sources in orders:
        yield from _at_inputs(graph, sources, op.inputs, {**found, node: op})


def _at_inputs(graph: Graph, nodes: Sequence[Node], tensors: Sequence[Tensor | None], found: Found) -> Iterator[Found]:
    if not nodes:
        yield found
        return
    for so_far in _at_tensor(graph, nodes[0], tensors[0], found):
        yield from _at_inputs(graph, nodes[1:], tensors[1:], so_far)


def _at_tensor(graph: Graph, node: Node, tensor: Tensor | None, found: Found) -> Iterator[Found]:
    if tensor is None or tensor.is_state:
        return
    if isinstance(node, Operator):
        maker = graph.producer.get(tensor)
        if maker is not None and maker.outputs.index(tensor) == node.output:
            yield from at_operator(graph, node, maker, found)
    elif tensor.is_constant == isinstance(node, ConstantInput) and found.get(node, tensor) is tensor:
        yield {**found, node: tensor}
