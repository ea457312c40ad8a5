"""Replaces parts of a graph by a plugin's own operators.

before   %a = MINIMUM(%x, %y);  %b = MAXIMUM(%x, %y);  %c = MINIMUM(%b, %z);  %d = MAXIMUM(%a, %c)
after    %d = MEDIAN_OF_THREE(%x, %y, %z)

A part is replaced only if nothing else reads its inner tensors. That the new operator computes the same is the plugin's
claim; `verify` checks it against the file's own operators.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tinyfuse.errors import UsageError
from tinyfuse.ir import Graph, Op, Tensor
from tinyfuse.ops import FAMILIES


@dataclass(frozen=True, eq=False)
class Input:
    """A computed tensor that the new operator reads. The same Input in several places means the same tensor."""


@dataclass(frozen=True, eq=False)
class ConstantInput:
    """Constant that a pattern turns into an input of the new operator."""


@dataclass(frozen=True, eq=False)
class Operator:
    """An operator of kind `kind` whose inputs match `inputs`; further inputs must not be computed.

    The same Operator in several places means the same operator. `output` is the number of the output that is read.
    """

    kind: str
    inputs: tuple[Node, ...]
    output: int = 0

    def __init__(self, kind: str, *inputs: Node, output: int = 0):
        for name, value in (("kind", kind), ("inputs", inputs), ("output", output)):
            object.__setattr__(self, name, value)


Node = Input | ConstantInput | Operator

#: pattern node -> the operator or tensor of the graph that it matches
Found = Mapping[Node, Tensor | Op]


def chain(*kinds: str) -> Operator:
    """Return a pattern of operators of these kinds, each reading the one before as its first input."""
    node: Node = Input()
    for kind in kinds:
        node = Operator(kind, node)
    if not isinstance(node, Operator):
        raise UsageError("a chain of no operators")
    return node


@dataclass(frozen=True)
class Pattern:
    """A part of graphs to be replaced by one operator.

    name        for people
    match       operators to be replaced: the last one, with those before it as its inputs. The new operator has the
                last one's outputs
    kind        kind of the new operator. It reads the tensors that match the Inputs, then those that match the
                ConstantInputs, each in the order of their first occurrence in `match`
    condition   tells whether matching operators are to be replaced; they are passed in order, the last one last. The
                rules of the new operator must hold too
    attributes  makes the new operator's attributes from the matching operators
    constants   makes further constant inputs from the matching operators
    """

    name: str
    match: Operator
    kind: str
    condition: Callable[[tuple[Op, ...]], bool] = lambda ops: True
    attributes: Callable[[tuple[Op, ...]], object] = lambda ops: None
    constants: Callable[[tuple[Op, ...]], tuple[Tensor, ...]] = lambda ops: ()


#: patterns of the plugins in use (tinyfuse/plugin.py)
PATTERNS: list[Pattern] = []


def replace_patterns(graph: Graph) -> Graph:
    """Replace every match of the plugins' patterns by the plugin's operator."""
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
                instead[last] = made  # in the last one's place, where all inputs exist
                break
    if not instead:
        return graph
    return replace(graph, ops=tuple(new for op in graph.ops if (new := instead.get(op, op)) is not None))


def _made(graph: Graph, pattern: Pattern, found: Found, taken: Mapping[Op, Op | None]) -> Op | None:
    """Return the operator that replaces a match; None if its condition fails, or if other operators read a tensor
    inside the match."""
    nodes = _in_order(pattern.match)
    ops = tuple(op for node in nodes if isinstance(op := found[node], Op))
    if any(op in taken for op in ops) or not _is_closed(graph, ops) or not pattern.condition(ops):
        return None
    by_sort = [found[node] for sort in (Input, ConstantInput) for node in nodes if isinstance(node, sort)]
    inputs = [tensor for tensor in by_sort if isinstance(tensor, Tensor)]
    made = Op(pattern.kind, (*inputs, *pattern.constants(ops)), ops[-1].outputs, pattern.attributes(ops), ops[-1].index)
    return None if any(rule.problem(made) for rule in FAMILIES[pattern.kind].rules) else made


def _is_closed(graph: Graph, ops: Sequence[Op]) -> bool:
    """Tell whether the operators are distinct, keep no state, and are the only readers of all outputs but the last
    one's."""
    passed = [tensor for op in ops[:-1] for tensor in op.outputs]
    readers = {reader for tensor in passed for reader in graph.consumers.get(tensor, ())}
    return (
        len(set(ops)) == len(ops)
        and not any(op.states for op in ops)
        and readers <= set(ops)
        and not set(passed) & set(graph.outputs)
    )


def _in_order(node: Node) -> list[Node]:
    """Return all nodes once, inputs before their readers."""
    seen: dict[Node, None] = {}
    for source in node.inputs if isinstance(node, Operator) else ():
        seen |= dict.fromkeys(_in_order(source))
    return [*(dict.fromkeys(seen)), node]


def at_operator(graph: Graph, node: Operator, op: Op, found: Found) -> Iterator[Found]:
    """Yield the matches in which `node` is `op`, extending `found` with the nodes before it."""
    if node in found:
        if found[node] is op:
            yield found
        return
    rest = op.inputs[len(node.inputs) :]
    if op.kind != node.kind or len(op.inputs) < len(node.inputs) or any(t in op.activations for t in rest):
        return
    orders = [node.inputs]
    if FAMILIES[op.kind].commutes and len(node.inputs) == 2 and op.input.dtype != "float32":
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
