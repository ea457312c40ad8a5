"""Checks operators that call functions of libm, whose last bits no standard defines (OpFamily.ulp).

An operator's bound is not the model's, because later layers may enlarge or reduce an error. So two things are proven
instead (docs/decisions/15-bounds-of-libm.md): the module computes every bit of our references, and each operator's
reference, given the interpreter's own tensors, computes the interpreter's result: every bit, or within the operator's
bound.

IF and WHILE are followed into their graphs if these call libm. The interpreter runs each call of a graph as a model of
its own, on its outputs of the call before, and the last outputs must be the bits that it has for the operator.
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
    """Distance of an operator's results from the interpreter's for the same inputs, in units of the last place, and its
    permitted distance."""

    operator: str
    ulp: int
    bound: int


@dataclass(frozen=True)
class OperatorChecks:
    """Result of the checks: `bounds` of operators that have one, `broken` with a sentence for each wrong operator."""

    bounds: tuple[OperatorBound, ...]
    broken: tuple[str, ...]


def has_bounds(graph: Graph) -> bool:
    """Tells whether an operator calls functions of libm, and all states are kept by such operators of the graph
    itself."""
    keepers = [op for op in graph.ops if FAMILIES[op.kind].ulp(op) is not None]
    return calls_libm(graph) and {t for op in keepers for t in op.states} == set(graph.states)


def check_operators(graph: Graph, oracle: InterpreterOracle, inputs: list[list[np.ndarray]]) -> OperatorChecks:
    """Checks every operator of a graph that `has_bounds`, on the interpreter's tensors for inputs[run][index].

    Each run begins with the initial state. Operators of constants are checked as well, and other operators read the
    interpreter's results of these: their last bits may differ from those of `fold_constants`.
    """
    checks = _Checks(oracle)
    checks.check_graph(graph, fold_constants(graph), oracle, inputs, "")
    bounds = tuple(OperatorBound(name, ulp, bound) for name, (ulp, bound) in checks.found.items())
    return OperatorChecks(bounds, tuple(checks.broken.values()))


class _Checks:
    """Collects the results of checks.

    found    operator -> its distance in units of the last place, and its bound
    broken   operator -> a sentence
    _oracle  the file's oracle
    """

    def __init__(self, oracle: InterpreterOracle) -> None:
        self.found: dict[str, tuple[int, int]] = {}
        self.broken: dict[str, str] = {}
        self._oracle = oracle
        self._called: dict[int, InterpreterOracle] = {}

    def check_graph(
        self, graph: Graph, folded: Graph, oracle: InterpreterOracle, inputs: list[list[np.ndarray]], where: str
    ) -> list[list[Array]]:
        """Checks every operator of `folded`, for inputs[run][index] of `graph`, and returns the interpreter's outputs.

        `folded` is `graph` with its constants computed. The outputs are [run][index]. Names of operators begin with
        `where`.
        """
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
        """Checks that an operator's result on the tensors of one run (by their index in the file) is within its
        bound."""
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
        """Checks the calls of an operator's graphs, all runs side by side: each round asks once for each graph.

        `op` is the file's operator; in `folded`, the graphs have their constants computed.
        """
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
        """Checks calls of one of an operator's graphs, given their inputs; returns the interpreter's outputs of
        each."""
        number, graph = called_graphs(op)[place]
        if not graph.ops:
            return [_handed_through(graph, shape_inputs(graph, values)) for values in calls]
        if number not in self._called:
            self._called[number] = self._oracle.for_subgraph(number)
        inputs = [shape_inputs(graph, values) for values in calls]
        within = called_graphs(folded)[place][1]
        return self.check_graph(graph, within, self._called[number], inputs, f"in subgraph {number}: ")

    def _compare(self, op: Op, ends: Sequence[Array], values: dict[int, Array], name: str) -> None:
        """Compares the outputs of the last call of an operator's graphs with the operator's outputs."""
        for tensor, end in zip(op.outputs, ends, strict=True):
            expected = values.get(tensor.index)  # None for a constant output
            if expected is not None and not same_bits(end.reshape(tensor.shape), expected).all():
                self.broken[name] = f"{name} differs from the interpreter's calls of its graphs"


def _handed_through(graph: Graph, inputs: list[Array]) -> list[Array]:
    """Outputs of a graph without operators."""
    given = dict(zip(graph.inputs, inputs, strict=True))
    return [t.values if t.is_constant else given[t] for t in graph.outputs]


def _value(tensor: Tensor, values: dict[int, Array]) -> Array:
    """Values of a tensor in a run: the interpreter's, even for constants that it computes."""
    if tensor.index in values and not tensor.is_state:
        return values[tensor.index]
    return tensor.initial_values if tensor.is_state else tensor.values
