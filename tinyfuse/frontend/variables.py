"""Replaces the resource variables of a .tflite file by states; part of `tinyfuse.frontend.reader`.

before   %h = VAR_HANDLE() shared_name="x";  CALL_ONCE() init_subgraph_index=1
         %v = READ_VARIABLE(%h);  ASSIGN_VARIABLE(%h, %n);
after    %v = READ_VARIABLE(%state);  ASSIGN_VARIABLE(%state, %n).

before   CALL_ONCE() init_subgraph_index=1                  in a graph that IF or WHILE runs, or after a use;
after    ASSIGN_ONCE(%state, value, %done).

A reset sets the values that TensorFlow Lite Micro (TFLM) has before the first inference of a new interpreter: those
that the subgraph of CALL_ONCE assigns, else the zero point of the tensor that the first ASSIGN_VARIABLE of the file
writes (micro_resource_variable.cc).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace

import numpy as np

from tinyfuse.frontend.tensors import HINT_UNSOUND, Problems, reset_value
from tinyfuse.ir import Graph, Op, Tensor, given
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.core.family import OpFamily
from tinyfuse.ops.program.control_flow import Calls, ControlFlow, called_graphs, with_states
from tinyfuse.ops.sequence.variables import CallOnce, Resolved, VarHandle

_HINT_ASSIGN = "give the variable an initial value, or assign it in the model"
_HINT_INITIALIZE = "initialize variables with constants alone"


def _initializes(op: Op) -> bool:
    """Tell whether a subgraph of CALL_ONCE may contain this operator besides assignments of constants."""
    family = FAMILIES.get(op.kind)
    return family is not None and (family.elementwise or family.alias)


def _is_gone(op: Op) -> bool:
    """Tell whether an operator on variables is removed once the file has been read."""
    return isinstance(FAMILIES.get(op.kind), Resolved)


def plain_outputs(ops: tuple[Op, ...], outputs: list[Tensor]) -> tuple[tuple[Op, ...], list[Tensor]]:
    """Return a graph's operators and outputs, with activations in place of the variables that hold operators' outputs.

    Those operators have states of their own (`OpFamily.hidden_states`).
    """
    keepers = [op for op in ops if op.kind in FAMILIES and FAMILIES[op.kind].keeps_output]
    instead = {tensor: replace(tensor, initial=None) for op in keepers for tensor in op.outputs if tensor.is_state}
    if not instead:
        return ops, outputs
    kept = tuple(replace(op.reading(instead), outputs=tuple(instead.get(t, t) for t in op.outputs)) for op in ops)
    return kept, [instead.get(tensor, tensor) for tensor in outputs]


@dataclass(eq=False)
class _Variable:
    """A resource variable. `value` is the first tensor assigned, which gives dtype, shape and zero point. `lent`:
    a graph that an operator runs uses it too."""

    name: str
    container: str
    value: Tensor | None = None
    initial: np.ndarray | None = None
    state: Tensor | None = None
    lent: bool = False


def resolve_variables(
    ops: tuple[Op, ...],
    subgraph_ops: Callable[[int], Sequence[Op]],
    subgraphs: int,
    bad: Set[Tensor],
    problems: Problems,
) -> tuple[Op, ...]:
    """Return the main graph's operators with states in place of resources, without VAR_HANDLE and CALL_ONCE.

    Graphs that operators run are resolved too. `subgraph_ops(i)` reads the operators of subgraph i of `subgraphs`.
    `bad` are tensors whose problems are already recorded.
    """
    return _Resolver(subgraph_ops, subgraphs, bad, problems).resolve(ops)


class _Resolver:
    def __init__(
        self, subgraph_ops: Callable[[int], Sequence[Op]], subgraphs: int, bad: Set[Tensor], problems: Problems
    ):
        self.subgraph_ops, self.subgraphs, self.require = subgraph_ops, subgraphs, problems.require
        self.problems, self.bad = problems, bad
        self.variables: dict[str, _Variable] = {}
        #: CALL_ONCE subgraph -> the values that it gives variables
        self.played: dict[int, dict[_Variable, np.ndarray]] = {}
        #: CALL_ONCE that some runs skip or reach late -> its subgraph
        self.once: dict[Op, int] = {}
        #: resource tensor -> its variable, and variable -> its uses, in all graphs
        self.handles: dict[Tensor, _Variable] = {}
        self.used: dict[Op, _Variable] = {}
        #: (place of the graph, variable, value) of assignments through handles of the same graph: TFLM allocates a
        #: variable by the first of them, in file order
        self.assigned: list[tuple[int, _Variable, Tensor]] = []
        self.made: set[Tensor] = set()  # variables that a VAR_HANDLE of this graph makes
        self.walked: set[Graph] = set()
        self.rebuilt: dict[Graph, Graph] = {}
        self.lent: dict[Tensor, Tensor] = {}

    def resolve(self, ops: tuple[Op, ...]) -> tuple[Op, ...]:
        initializations: list[Op] = []
        for op in ops:
            if op.kind == "CALL_ONCE" and not self.used:
                initializations.append(op)
            else:
                self._note(op, 0)
        for op in initializations:
            for variable, initial in self._initial_values(op, 0).items():
                variable.initial = initial
        for _, variable, value in sorted(self.assigned, key=lambda each: each[0]):
            variable.value = variable.value or value
        return tuple(made for op in ops for made in self._resolved(op))

    # --- variables that resources refer to ---------------------------------------------------

    def _note(self, op: Op, number: int) -> None:
        """Record the effect of an operator of graph `number` on variables."""
        if called_graphs(op):
            self._enter(op)
            return
        if op.kind == "CALL_ONCE":
            self.once[op] = number
            for initialized in self._initial_values(op, number):
                initialized.lent = True  # rewrites cannot see its uses in other graphs
            return
        variable = self._variable(op, number)
        if variable is not None:
            self.used[op] = variable
            variable.lent = variable.lent or number != 0

    def _enter(self, op: Op) -> None:
        """Process the graphs that an operator runs, which receive handles and pass them on."""
        family = self._families()[op.kind]
        assert isinstance(family, ControlFlow)
        for number, graph in called_graphs(op):
            for value, tensor in zip(family.handed(op), graph.inputs, strict=False):
                self._stands_for(op, tensor, [value])
            if graph not in self.walked:
                self.walked.add(graph)
                with self.problems.inside(f"subgraph {number}"):
                    for inner in graph.ops:
                        self._note(inner, number)
        for i, output in enumerate(op.outputs):
            self._stands_for(op, output, [graph.outputs[i] for graph in family.makers(op) if i < len(graph.outputs)])

    def _stands_for(self, op: Op, tensor: Tensor, values: Sequence[Tensor | None]) -> None:
        """Note the variable that a resource refers to: the one of `values`, or its own."""
        if tensor.dtype != "resource":
            return
        known = [self.handles.get(value) for value in values if value is not None]
        known += [self.handles[tensor]] if tensor in self.handles else []
        if self.require(
            bool(known) and None not in known, "no operator before it creates its resource", HINT_UNSOUND, op, tensor
        ):
            self.handles[tensor] = known[0]  # type: ignore[assignment]
            hint = "give each IF and WHILE its own graphs, with their own variables"
            self.require(len(set(known)) == 1, "it can be any of several variables", hint, op, tensor)

    def _variable(self, op: Op, number: int) -> _Variable | None:
        """Return the variable that an operator reads or assigns; notes handles and assigned values."""
        resources = [t for t in (*op.inputs, *op.outputs) if t is not None and t.dtype == "resource"]
        if op.kind == "VAR_HANDLE":
            good = not op.inputs and len(op.outputs) == 1 == len(resources)
            if self.require(good, "it must have one output, a resource", HINT_UNSOUND, op):
                self.handles[op.output] = self._named(op)
                self.made.add(op.output)
            return None
        family = FAMILIES.get(op.kind)
        if family is None or not family.resource:
            for tensor in resources:
                self.require(False, "it cannot read a resource", HINT_UNSOUND, op, tensor)
            return None
        reads = not family.updates
        good = len(op.inputs) == (1 if reads else 2) and len(op.outputs) == (1 if reads else 0)
        good = good and None not in op.inputs and len(resources) == 1 and resources[0] is op.inputs[0]
        if not self.require(good, "it must have a resource and a value", HINT_UNSOUND, op):
            return None
        variable = self.handles.get(op.input)
        message = "no operator before it creates its resource"
        self.require(variable is not None, message, HINT_UNSOUND, op, op.input)
        if variable is not None and not reads and op.input in self.made:
            self.assigned.append((number, variable, op.operand(1)))
        return variable

    def _named(self, op: Op) -> _Variable:
        # None: its options are damaged, which is noted already
        handle = VarHandle("?") if op.attributes is None else op.attributes_as(VarHandle)
        name, container = handle.shared_name, handle.container
        self.require(bool(name), "the variable has no name", HINT_UNSOUND, op)
        variable = self.variables.setdefault(name, _Variable(name, container))
        message = f"variable {name!r} is in two containers"
        self.require(variable.container == container, message, HINT_UNSOUND, op)
        return variable

    def _initial_values(self, call: Op, caller: int) -> Mapping[_Variable, np.ndarray]:
        """Return the values that a CALL_ONCE of graph `caller` gives variables; its subgraph may only compute
        constants."""
        if call.attributes is None:  # its options are damaged, which is noted already
            return {}
        number = call.attributes_as(CallOnce).init_subgraph_index
        message = f"it calls subgraph {number}, of {self.subgraphs}"
        good = self.require(0 <= number < self.subgraphs, message, HINT_UNSOUND, call)
        message = "it calls the subgraph that it is in"
        if not good or not self.require(number not in (0, caller), message, HINT_UNSOUND, call):
            return {}
        if number not in self.played:
            self.played[number] = self._play(call, number)
        return self.played[number]

    def _play(self, call: Op, number: int) -> dict[_Variable, np.ndarray]:
        found: dict[_Variable, np.ndarray] = {}
        known: dict[Tensor, np.ndarray] = {}
        for op in self.subgraph_ops(number):
            variable = self._variable(op, number)
            values = [None if t is None else t.data if t.is_constant else known.get(t) for t in op.inputs]
            if op.kind == "ASSIGN_VARIABLE":
                if variable is None:
                    continue
                message = f"subgraph {number} gives {variable.name!r} a value that is not a constant"
                if self.require(values[1] is not None, message, _HINT_INITIALIZE, call):
                    found[variable] = given(values[1])
            elif _initializes(op):
                reason = self._broken(op, values)
                message = f"subgraph {number}: {op}: {reason}"
                if self.require(reason is None, message, _HINT_INITIALIZE, call):
                    known[op.output] = self._families()[op.kind].reference(op, *values)[0]
            elif op.kind != "VAR_HANDLE":
                message = f"subgraph {number} has {op.kind}, which initializes no variable"
                self.require(False, message, _HINT_INITIALIZE, call)
        return found

    @staticmethod
    def _families() -> Mapping[str, OpFamily]:
        return FAMILIES

    def _broken(self, op: Op, values: list[np.ndarray | None]) -> str | None:
        """Return why an operator's output is no known constant: the first rule that it breaks, or its input."""
        for rule in self._families()[op.kind].rules:
            problem = rule.problem(op)
            if problem is not None:
                return problem.message
        return "its input is not a constant" if values[0] is None else None

    # --- states in their place ---------------------------------------------------------------

    def _resolved(self, op: Op) -> list[Op]:
        """Return the operator with states instead of resources; [] if it does nothing in a run."""
        if op in self.once:
            return self._assigning_once(op)
        if _is_gone(op):
            return []
        if op in self.used:
            state = self._state(op, self.used[op])
            return [op if state is None else replace(op, inputs=(state, *op.inputs[1:]))]
        calls = op.attributes
        if not isinstance(calls, Calls) or not calls.graphs:
            return [op]
        values = tuple(t for t in op.inputs if t is None or t.dtype != "resource")
        calls = replace(calls, graphs=tuple(map(self._rebuilt, calls.graphs)))
        return [with_states(replace(op, inputs=values, outputs=_plain(op.outputs), attributes=calls))]

    def _assigning_once(self, call: Op) -> list[Op]:
        """Return an ASSIGN_ONCE for each variable, with a state that tells whether it has run."""
        made: list[Op] = []
        for variable, initial in self._initial_values(call, self.once[call]).items():
            state = self._state(call, variable)
            if state is None or not self._fits(call, variable, initial, state):
                continue
            place = f"{variable.name} (CALL_ONCE {len(made)})"
            value = replace(state, name=place, data=initial.reshape(state.shape), initial=None, lent=False)
            done = Tensor(place, (1,), "int8", initial=np.zeros(1, np.int8), lent=True)
            made.append(Op("ASSIGN_ONCE", (state, value, done), (), None, call.index))
        return made

    def _fits(self, op: Op, variable: _Variable, value: np.ndarray, state: Tensor) -> bool:
        message = f"variable {variable.name!r} is initialized with another dtype or size"
        like = (str(value.dtype), value.size) == (state.dtype, state.elements)
        return self.require(like, message, HINT_UNSOUND, op)

    def _rebuilt(self, graph: Graph) -> Graph:
        """Return a graph that operators run, with its states lent: its caller passes them as inputs."""
        if graph not in self.rebuilt:
            ops = [made for op in graph.ops for made in self._resolved(op)]
            for state in (t for op in ops for t in op.states if not t.lent):
                self.lent.setdefault(state, replace(state, lent=True))
            lent = tuple(op.reading(self.lent) for op in ops)
            self.rebuilt[graph] = replace(graph, ops=lent, inputs=_plain(graph.inputs), outputs=_plain(graph.outputs))
        return self.rebuilt[graph]

    def _state(self, op: Op, variable: _Variable) -> Tensor | None:
        """Return the state that replaces a variable; None if it is never assigned."""
        value = variable.value
        if variable.state is None and value is None:
            self.require(False, f"variable {variable.name!r} has no value: nothing assigns it", _HINT_ASSIGN, op)
        if value is None or value in self.bad:
            return None
        if variable.state is None:
            initial = reset_value(value, value.quant.zero_point[0] if value.quant else 0)
            if variable.initial is not None and self._fits(op, variable, variable.initial, value):
                initial = variable.initial.reshape(value.shape)
            variable.state = Tensor(
                variable.name, value.shape, value.dtype, value.quant, initial=initial, lent=variable.lent
            )
        return variable.state


def _plain(tensors: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Return the tensors that are not resources."""
    return tuple(tensor for tensor in tensors if tensor.dtype != "resource")
