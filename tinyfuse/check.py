"""What a model must be for tinyfuse to compile it: every broken rule at once, before anything else."""

from __future__ import annotations

from tinyfuse.errors import CompileError, Problem
from tinyfuse.ir import Graph, Op
from tinyfuse.ops import FAMILIES
from tinyfuse.tflite_reader import unsupported

def check(graph: Graph) -> None:
    """CompileError with every reason why `graph` can't be compiled; None where there is none."""
    problems = [problem for op in graph.ops for problem in _operator_problems(op)]
    problems += _border_problems(graph)
    if problems:
        raise CompileError(graph.path, problems)


def _operator_problems(op: Op) -> list[Problem]:
    refusal = unsupported(op)
    if refusal is not None:
        return [refusal]
    for rule in FAMILIES[op.kind].rules:
        problem = rule.problem(op)
        if problem is not None:
            # later rules rely on this one, so they would only repeat it in other words
            return [problem]
    return []


def _border_problems(graph: Graph) -> list[Problem]:
    problems = []
    if not graph.ops:
        problems.append(Problem("the model has no operators"))
    if not graph.outputs:
        problems.append(Problem("the model has no outputs"))
    varying = set(graph.inputs)
    for op in graph.ops:
        if varying.intersection(op.activations):
            varying.update(op.outputs)
    for tensor in graph.outputs:
        if tensor not in varying:
            message = "a model output depends on no input: it is always the same"
            problems.append(Problem(message, tensor=str(tensor), hint="leave it out of the model"))
    return problems
