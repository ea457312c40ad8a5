"""Checks that tinyfuse can compile a model: reports every broken rule at once, before anything is planned."""

from __future__ import annotations

from dataclasses import replace

from tinyfuse.errors import CompileError, Problem
from tinyfuse.frontend.model_kind import sort_of
from tinyfuse.frontend.reader import unsupported
from tinyfuse.frontend.tensors import HINT_QUANTIZE
from tinyfuse.ir import Graph, Op
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.program.control_flow import called_graphs

_HINT_VARIABLE = "keep state as the converter writes it: in SVDF, LSTM, or READ_VARIABLE and ASSIGN_VARIABLE"

#: most rows of all operators' outputs together: planning that many takes about a minute
MOST_ROWS = 1 << 18


def check(graph: Graph) -> None:
    """Raise CompileError with every reason why `graph` can't be compiled."""
    problems = _problems_of_operators(graph)
    problems += _border_problems(graph)
    problems += _size_problems(graph)
    if problems:
        sort = sort_of(graph.ops)
        raise CompileError(graph.path, [*([sort] if sort else []), *problems])


def _problems_of_operators(graph: Graph) -> list[Problem]:
    """Return the problems of the graph's operators and of the graphs that they run, each operator checked once."""
    problems = []
    waiting, seen = [("", graph)], {graph}
    while waiting:
        place, inner = waiting.pop()
        for op in inner.ops:
            problems += [replace(p, message=f"{place}{p.message}") for p in _operator_problems(op)]
            for number, called in called_graphs(op):
                if called not in seen:
                    seen.add(called)
                    waiting.append((f"in subgraph {number}: ", called))
    return problems


def warnings_of(graph: Graph) -> list[str]:
    """Return warnings about the operators of a checked graph."""
    told = ((op, FAMILIES[op.kind].warning(op)) for op in graph.ops)
    return [f"{op}: {warning}" for op, warning in told if warning is not None]


def _operator_problems(op: Op) -> list[Problem]:
    refusal = unsupported(op)
    if refusal is not None:
        return [refusal]
    family = FAMILIES[op.kind]
    for i, tensor in enumerate(op.inputs):
        if tensor is not None and tensor.is_state and i not in family.updated(op) + family.reads:
            message = "a variable can't be its input"
            return [Problem(message, operator=str(op), tensor=str(tensor), hint=_HINT_VARIABLE)]
    for i in family.updated(op) + family.reads:
        state = op.optional(i)
        if i < len(op.inputs) and (state is None or not state.is_state):
            message, about = f"its input {i} must be a variable", None if state is None else str(state)
            return [Problem(message, operator=str(op), tensor=about, hint=_HINT_VARIABLE)]
    unusable = family.unusable_scale(op)
    if unusable is not None:
        return [Problem(f"a scale is 0.0; {op.kind} needs a positive one", str(op), str(unusable), HINT_QUANTIZE)]
    for rule in family.rules:
        problem = rule.problem(op)
        if problem is not None:
            # later rules rely on this one: they would repeat the problem in other words
            return [problem]
    return []


def _size_problems(graph: Graph) -> list[Problem]:
    """Return a problem if the graph has too many rows: the planner simulates a row group row by row."""
    rows = sum(t.shape[1] for op in graph.ops for t in op.outputs if len(t.shape) == 4)
    if rows <= MOST_ROWS:
        return []
    message = f"its images have {rows:,} rows in all, more than {MOST_ROWS:,}"
    return [Problem(message, hint="make the images smaller, or let the longer side be the columns")]


def _border_problems(graph: Graph) -> list[Problem]:
    problems = []
    if not graph.ops:
        hint = "give a model that computes something of its inputs"
        problems.append(Problem("no operator is left: every output is an input or follows from constants", hint=hint))
    if not graph.outputs:
        problems.append(Problem("the model has no outputs"))
    return problems
