"""Refuses models that this machine cannot run, because operators are programs for other hardware."""

from __future__ import annotations

from tinyfuse.errors import CompileError, Problem
from tinyfuse.ir import Graph
from tinyfuse.ops import FAMILIES

_HINT = "test the module on the board; verify the file that Vela was given"


def check_runs_here(graph: Graph) -> None:
    """Raise CompileError if there are operators that neither an interpreter, nor the host, nor an emulated core can
    run."""
    message = "only the NPU runs this program, so the model's outputs cannot be computed here"
    # an interpreter may have operators without a family here
    elsewhere = [op for op in graph.ops if op.kind in FAMILIES and not FAMILIES[op.kind].runs_here]
    problems = [Problem(message, operator=str(op), hint=_HINT) for op in elsewhere]
    if problems:
        raise CompileError(graph.path, problems)
