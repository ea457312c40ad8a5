"""What stands behind a comparison where operators call functions of libm, which no standard rounds (OpFamily.ulp).

A bound of an operator is none of a model: what an exp is off by, later layers make larger or smaller. So two things are
proven instead (docs/decisions/15-bounds-of-libm.md): the module computes the bits of our references, and each
operator's reference computes, from the very tensors of the interpreter, what the interpreter computes: every bit, or
within the operator's bound.

IF and WHILE are followed into their graphs where these call libm: the interpreter runs each call of a graph as a model
of its own, on what it computed for the call before, and ends with the bits that it has for the operator's outputs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tinyfuse.ir import Array, Graph, Op, Tensor
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.program.control_flow import ControlFlow, called_graphs, given_values, next_call, shape_inputs
from tinyfuse.rewrite.fold_constants import fold_constants, folded_operators
from tinyfuse.verify.comparison import same_bits, ulp_distance
from tinyfuse.verify.oracle import InterpreterOracle
from tinyfuse.verify.pieces import calls_libm


@dataclass(frozen=True)
class OperatorBound:
    """Of one operator: how far its results are from the interpreter's on the interpreter's inputs, in units of the last
    place, and how far they may be."""

    operator: str
    ulp: int
    bound: int


@dataclass(frozen=True)
class OperatorChecks:
    """bounds: of each operator that has one; broken: a sentence for each operator that computes something else."""

    bounds: tuple[OperatorBound, ...]
    broken: tuple[str, ...]


def has_bounds(graph: Graph) -> bool:
    """Whether any operator calls functions of libm, and no state is kept but by such operators of the graph itself."""
    keepers = [op for op in graph.ops if FAMILIES[op.kind].ulp(op) is not None]
    return calls_libm(graph) and {t for op in keepers for t in op.states} == set(graph.states)


def check_operators(graph: Graph, oracle: InterpreterOracle, inputs: list[list[np.ndarray]]) -> OperatorChecks:
    """Every operator of a graph that `has_bounds` on the interpreter's tensors, for inputs[run][index]; each run begins
    with the state as a reset leaves it. Operators of constants alone are checked as well, and others read what the
    interpreter made of these: its last bits may differ from those of the constants that `fold_constants` makes."""
    checks = _Checks(oracle)
    checks.check_graph(graph, fold_constants(graph), oracle, inputs, "")
    bounds = tuple(OperatorBound(name, ulp, bound) for name, (ulp, bound) in checks.found.items())
    return OperatorChecks(bounds, tuple(checks.broken.values()))


class _Checks:
    """Collects what runs show. found: operator -> its distance in units of the last place, and its bound; broken:
    operator -> a sentence. `oracle` is that of the file."""

    def __init__(self, oracle: InterpreterOracle) -> None:
        self.found: dict[str, tuple[int, int]] = {}
        self.broken: dict[str, str] = {}
        self._oracle = oracle
        self._called: dict[int, InterpreterOracle] = {}

    def check_graph(
        self, graph: Graph, folded: Graph, oracle: InterpreterOracle, inputs: list[list[np.ndarray]], where: str
    ) -> list[list[Array]]:
        """Every operator of `folded`, which is `graph` with its constants computed, for inputs[run][index] of `graph`.
        The interpreter's outputs, [run][index]. `where` begins an operator's name."""
        originals = {op.index: op for op in graph.ops}
        removed = folded_operators(graph)
        computed = {tensor.index for op in removed for tensor in op.outputs}
        wanted = [t for op in (*removed, *folded.ops) for t in (*op.inputs, *op.outputs) if t is not None]
        tensors = {
            t.index: t
            for t in (*wanted, *graph.outputs)
            if not t.is_state and (not t.is_constant or t.index in computed)
        }
        runs = [
            {index: array.reshape(tensor.shape) for (index, tensor), array in zip(tensors.items(), found, strict=True)}
            for found in oracle.tensors(inputs, list(tensors))
        ]
        for op in (*removed, *folded.ops):
            name = f"{where}{op}"
            if any(calls_libm(called) for _, called in called_graphs(op)):
                self._follow(originals[op.index], op, runs, name)
            else:
                for values in runs:
                    self._check(op, values, name)
        return [[_value(t, values) for t in graph.outputs] for values in runs]

    def _check(self, op: Op, values: dict[int, Array], name: str) -> None:
        """An operator on the tensors of one run, by their places in the file."""
        arguments = [None if t is None else _value(t, values) for t in op.inputs]
        family = FAMILIES[op.kind]
        theirs = family.settled(op, [values[tensor.index] for tensor in op.outputs])
        bound = family.ulp(op)
        for expected, computed in zip(theirs, family.reference_beside(op, theirs, *arguments), strict=False):
            if bound is None:
                if not same_bits(np.asarray(computed), expected).all():
                    self.broken[name] = f"{name} differs from the interpreter on the interpreter's own inputs"
                continue
            distance = int(ulp_distance(computed, expected, family.ulp_of).max())
            self.found[name] = max(self.found.get(name, (0, bound))[0], distance), bound
            if distance > bound:
                self.broken[name] = (
                    f"{name} is {distance} units of the last place from the interpreter's, above its bound of {bound}"
                )

    def _follow(self, op: Op, folded: Op, runs: list[dict[int, Array]], name: str) -> None:
        """The calls of an operator's graphs, all runs side by side: each round asks once for each graph. `op` is the
        file's, `folded` the one whose graphs have their constants computed."""
        family = FAMILIES[op.kind]
        assert isinstance(family, ControlFlow)
        sequences = [
            family.calls(op, [_value(t, values) for t in given_values(op) if t is not None]) for values in runs
        ]
        sent: dict[int, list[Array] | None] = dict.fromkeys(range(len(runs)))
        while sent:
            waiting: dict[int, dict[int, Sequence[Array]]] = defaultdict(dict)
            for run, outputs in sent.items():
                call = next_call(sequences[run], outputs)
                if isinstance(call, tuple):
                    waiting[call[0]][run] = call[1]
                else:
                    self._compare(op, call, runs[run], name)
            sent = {}
            for place, calls in waiting.items():
                sent |= zip(calls, self._check_calls(op, folded, place, list(calls.values())), strict=True)

    def _check_calls(self, op: Op, folded: Op, place: int, calls: list[Sequence[Array]]) -> list[list[Array]]:
        """Calls of one graph of an operator, with their inputs; the interpreter's outputs of each."""
        number, graph = called_graphs(op)[place]
        if not graph.ops:
            return [_handed_through(graph, shape_inputs(graph, values)) for values in calls]
        if number not in self._called:
            self._called[number] = self._oracle.for_subgraph(number)
        inputs = [shape_inputs(graph, values) for values in calls]
        within = called_graphs(folded)[place][1]
        return self.check_graph(graph, within, self._called[number], inputs, f"in subgraph {number}: ")

    def _compare(self, op: Op, ends: Sequence[Array], values: dict[int, Array], name: str) -> None:
        """Outputs of the last call of an operator's graphs, with the operator's."""
        for tensor, end in zip(op.outputs, ends, strict=True):
            expected = values.get(tensor.index)  # none of an output that is a constant
            if expected is not None and not same_bits(end.reshape(tensor.shape), expected).all():
                self.broken[name] = f"{name} differs from the interpreter's calls of its graphs"


def _handed_through(graph: Graph, inputs: list[Array]) -> list[Array]:
    """Outputs of a graph without operators."""
    given = dict(zip(graph.inputs, inputs, strict=True))
    return [t.values if t.is_constant else given[t] for t in graph.outputs]


def _value(tensor: Tensor, values: dict[int, Array]) -> Array:
    """A tensor's values in a run: the interpreter's, of constants that it computes as well."""
    if tensor.index in values and not tensor.is_state:
        return values[tensor.index]
    return tensor.initial_values if tensor.is_state else tensor.values
