"""IF and WHILE: operators that run other graphs of the file, as TFLM's if.cc and while.cc do.

Values go to and from the graphs they run as bytes: shapes and quantizations may differ, dtypes and sizes may not.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Generator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tinyfuse.ir import Array, Graph, Op, Tensor, all_given
from tinyfuse.ops.core.family import OpFamily, Rule

#: computes a graph's outputs from its inputs, and updates its states (tinyfuse/ops/program/interpret.py)
Run = Callable[[Graph, Sequence[Array], MutableMapping[Tensor, Array]], list[Array]]


class RunEnds(Exception):
    """Raised if a graph waits for more inputs, so that the model's run ends without a result. `states`: new values of
    the states that the operator's graphs have changed until then."""

    def __init__(self, states: Mapping[Tensor, Array]):
        super().__init__("the run ends without a result")
        self.states = states


#: yields the calls of an operator's graphs, each as the graph's number among them and its inputs, and is sent the
#: outputs of each; returns the operator's outputs
CallSequence = Generator[tuple[int, Sequence[Array]], Sequence[Array], Sequence[Array]]

#: multiply-accumulates of one run of a graph
CountMacs = Callable[[Graph], int]


@dataclass(frozen=True, eq=False)
class Program:
    """Plan of a graph that an operator calls, and how a call passes inputs and outputs.

    plan     its Plan (tinyfuse/plan), whose arena lies in the caller's scratch; None if nothing is computed
    inputs   byte offset of each input in that arena; None if the graph doesn't read it
    outputs  for each output its byte offset, or its constant value, or an `InputItself` if it is one of the inputs
    bytes    size of that arena
    """

    plan: Any
    inputs: tuple[int | None, ...]
    outputs: tuple[int | Array | InputItself, ...]
    bytes: int


@dataclass(frozen=True)
class InputItself:
    """Output of a graph that is input `index`, unchanged."""

    index: int


@dataclass(frozen=True, eq=False)
class Calls:
    """Attributes of an operator that runs two other graphs of the file.

    numbers   indexes of the graphs in the file
    graphs    the graphs, once the file is read
    programs  their programs, once they are planned
    """

    numbers: tuple[int, int]
    graphs: tuple[Graph, ...] = field(default=(), repr=False)
    programs: tuple[Program, ...] = field(default=(), repr=False)


def called_graphs(op: Op) -> tuple[tuple[int, Graph], ...]:
    """Graphs that an operator runs, with their numbers in the file; empty for most operators."""
    calls = op.attributes
    return tuple(zip(calls.numbers, calls.graphs, strict=True)) if isinstance(calls, Calls) and calls.graphs else ()


def change_graphs(op: Op, changed: Callable[[Graph], Graph]) -> Op:
    """Operator with its graphs replaced by `changed` of them; the operator itself if no graph changes."""
    graphs = [graph for _, graph in called_graphs(op)]
    new = tuple(map(changed, graphs))
    if all(a is b for a, b in zip(new, graphs, strict=True)):
        return op
    return replace(op, attributes=replace(op.attributes_as(Calls), graphs=new))


def graph_states(op: Op) -> tuple[Tensor, ...]:
    """States of the graphs that an operator runs; they are its last inputs. Once the graphs are planned, only states
    that some plan uses."""
    programs = op.attributes_as(Calls).programs if called_graphs(op) else ()
    keepers = [p.plan for p in programs if p.plan is not None] if programs else [g for _, g in called_graphs(op)]
    return tuple(dict.fromkeys(state for keeper in keepers for state in keeper.states))


def given_values(op: Op) -> tuple[Tensor | None, ...]:
    """The inputs of an operator that runs graphs, without its states."""
    return op.inputs[: len(op.inputs) - len(graph_states(op))]


def with_states(op: Op) -> Op:
    """Operator on values, with the states of its graphs appended to its inputs."""
    return replace(op, inputs=op.inputs + graph_states(op))


def next_call(
    sequence: CallSequence, outputs: Sequence[Array] | None
) -> tuple[int, Sequence[Array]] | list[Array]:  # fmt: skip
    """The next call after one with these outputs, or the first call for None. After the last call, the operator's
    outputs."""
    try:
        return next(sequence) if outputs is None else sequence.send(outputs)
    except StopIteration as end:
        return list(end.value)


def shape_inputs(graph: Graph, values: Sequence[Array]) -> list[Array]:
    """Values of a call, in the shapes of the inputs of the called `graph`."""
    return [value.reshape(tensor.shape) for value, tensor in zip(values, graph.inputs, strict=True)]


def _graphs(op: Op) -> tuple[Graph, ...]:
    return op.attributes_as(Calls).graphs


# --- rules -----------------------------------------------------------------------------------


def _unlike(values: Sequence[Tensor], others: Sequence[Tensor]) -> Tensor | None:
    """First of `values` whose dtype or size differs from that of its counterpart in `others`; None if there is none."""
    pairs = zip(values, others, strict=True)
    return next((a for a, b in pairs if (a.dtype, a.elements) != (b.dtype, b.elements)), None)


def _no_bool(tensor: Tensor) -> Tensor | None:
    return None if tensor.dtype == "bool" and tensor.elements == 1 else tensor


_HINT = "convert the model again, with another version of the converter if it stays so"
_ALL_GIVEN = Rule("no input is left out", lambda op: None in op.inputs, _HINT)


class ControlFlow(OpFamily):
    """Base of operators that run two other graphs. If one of these waits for more inputs, the model's run ends. They
    are not computed at compile time, because a loop need not end. Their inputs are values, then the states of the
    graphs.
    """

    folds = False

    def __init__(self, run: Run, count_macs: CountMacs):
        self._run, self._count_macs = run, count_macs

    def updated(self, op: Op) -> tuple[int, ...]:
        return tuple(range(len(given_values(op)), len(op.inputs)))

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        count, given = len(given_values(op)), all_given(inputs)
        states = dict(zip(graph_states(op), given[count:], strict=True))
        try:
            outputs = self._computed(op, given[:count], states)
        except RunEnds:
            raise RunEnds(states) from None
        shaped = (o.reshape(t.shape) for o, t in zip(outputs, op.outputs, strict=True))
        return *shaped, *states.values()

    @abstractmethod
    def handed(self, op: Op) -> tuple[Tensor | None, ...]:
        """Tensors that IF or WHILE passes to its graphs at the start."""

    @abstractmethod
    def makers(self, op: Op) -> tuple[Graph, ...]:
        """The graphs whose outputs may become the operator's."""

    @abstractmethod
    def calls(self, op: Op, inputs: Sequence[Array]) -> CallSequence:
        """The calls of the operator's graphs for `inputs`, the values of `given_values`. Arrays have the shapes of any
        graph that they come from: only their dtypes and sizes are those of the graph that they go to."""

    def _computed(self, op: Op, inputs: Sequence[Array], states: MutableMapping[Tensor, Array]) -> Sequence[Array]:
        """The outputs, in the shapes of the graph that computes them; `states` are advanced."""
        graphs, sequence = _graphs(op), self.calls(op, inputs)
        call = next_call(sequence, None)
        while isinstance(call, tuple):
            graph, values = graphs[call[0]], call[1]
            call = next_call(sequence, self._run(graph, shape_inputs(graph, values), states))
        return call

    def macs(self, op: Op) -> int:
        """Return the multiply-accumulates of each graph counted once: which graphs run, and how often, only a run
        shows."""
        return sum(map(self._count_macs, _graphs(op)))


def _bad_branch(op: Op) -> Tensor | bool | None:
    for graph in _graphs(op):
        values = op.operands[: len(given_values(op))]
        if len(graph.inputs) != len(values) - 1 or len(graph.outputs) != len(op.outputs):
            return True
        wrong = _unlike(values[1:], graph.inputs) or _unlike(op.outputs, graph.outputs)
        if wrong is not None:
            return wrong
    return None


class IfFamily(ControlFlow):
    """IF: input 0 chooses one of two graphs. The other inputs are the inputs of both graphs; the outputs are those of
    the graph that runs."""

    kind = "IF"
    options_table = "IfOptions"
    summary = "runs one graph or another"
    rules = (
        _ALL_GIVEN,
        Rule("its condition is one bool", lambda op: True if not op.inputs else _no_bool(op.input), _HINT),
        Rule("both graphs take its other inputs and make its outputs, in dtype and size", _bad_branch, _HINT),
    )

    def attributes(self, options: Mapping[str, Any]) -> Calls:
        return Calls((options.get("then_subgraph_index", 0), options.get("else_subgraph_index", 0)))

    def handed(self, op: Op) -> tuple[Tensor | None, ...]:
        return given_values(op)[1:]

    def makers(self, op: Op) -> tuple[Graph, ...]:
        return _graphs(op)

    def calls(self, op: Op, inputs: Sequence[Array]) -> CallSequence:
        return (yield (0 if inputs[0].reshape(-1)[0] else 1), inputs[1:])


def _bad_loop(op: Op) -> Tensor | bool | None:
    condition, body = _graphs(op)
    values = op.operands[: len(given_values(op))]
    counts = {len(values), len(op.outputs), len(condition.inputs), len(body.inputs), len(body.outputs)}
    if len(counts) != 1 or len(condition.outputs) != 1:
        return True
    return next(
        (
            wrong
            for wrong in (
                _unlike(op.outputs, values),
                _unlike(condition.inputs, values),
                _unlike(body.inputs, values),
                _unlike(body.outputs, values),
                _no_bool(condition.outputs[0]),
            )
            if wrong is not None
        ),
        None,
    )


class WhileFamily(ControlFlow):
    """WHILE: as long as the first graph returns true for the values, the second graph computes new values. At the start
    the values are the inputs; at the end they are the outputs."""

    kind = "WHILE"
    options_table = "WhileOptions"
    summary = "runs a graph again and again, while another one says so"
    rules = (
        _ALL_GIVEN,
        Rule(
            "the condition's graph makes one bool of its inputs, the body's makes new ones of them, in dtype and size",
            _bad_loop,
            _HINT,
        ),
    )

    def attributes(self, options: Mapping[str, Any]) -> Calls:
        return Calls((options.get("cond_subgraph_index", 0), options.get("body_subgraph_index", 0)))

    def handed(self, op: Op) -> tuple[Tensor | None, ...]:
        return given_values(op)

    def makers(self, op: Op) -> tuple[Graph, ...]:
        return _graphs(op)[1:]

    def calls(self, op: Op, inputs: Sequence[Array]) -> CallSequence:
        values: Sequence[Array] = [np.array(value) for value in inputs]
        while (yield 0, values)[0].reshape(-1)[0]:
            values = yield 1, values
        return values
