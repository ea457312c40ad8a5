"""Checks of models and steps for `--slide`, and warnings about steps with little gain."""

from __future__ import annotations

from math import prod

from tinyfuse.errors import CompileError, Problem
from tinyfuse.ir import Graph, Tensor
from tinyfuse.ops import FAMILIES
from tinyfuse.slide.needs import Needs, macs_of


def sliding_input(graph: Graph, axis: int) -> int:
    """Finds the first input whose dimension `axis` has frames, each contiguous. CompileError if there is none, or if
    the model keeps state."""
    if graph.states:
        message = "--slide: the model keeps state from one inference to the next, which each window would advance anew"
        raise _refused(graph, message, graph.states[0], "leave --slide out: the model is made for a stream as it is")
    for number, tensor in enumerate(graph.inputs):
        if tensor in graph.consumers and _has_frames(tensor, axis):
            return number
    others = [f"--slide-axis {other}" for other in range(6) if any(_has_frames(t, other) for t in graph.inputs)]
    message = f"--slide: no input has frames along dimension {axis}, behind dimensions of size 1 alone"
    about = next(iter(graph.inputs), None)
    raise _refused(graph, message, about, f"give {' or '.join(others) or 'the whole model, without --slide'}")


def _has_frames(tensor: Tensor, axis: int) -> bool:
    return len(tensor.shape) > axis and tensor.shape[axis] > 1 and prod(tensor.shape[:axis]) == 1


def check_step(graph: Graph, tensor: Tensor, frames: int, step: int) -> None:
    """Raises CompileError if a step replaces the whole window."""
    if step >= frames:
        message = f"--slide {step}: the window has {frames} frames, so that none of them would be there twice"
        raise _refused(graph, message, tensor, f"give a step below {frames}, or run the whole model, without --slide")


def gain_warnings(needs: Needs, step: int) -> tuple[str, ...]:
    """Warnings for a step size (--slide) that saves less than another one would."""
    analysis = needs.analysis
    if not saves_work(needs):
        why = {op: end for op, end in analysis.ends.items() if not FAMILIES[op.kind].alias}
        reasons = "; ".join(f"{op}: {end.reason}" for op, end in why.items() if end.hint)
        return (f"--slide {step}: each step computes the whole model: {reasons or 'nothing stays'}",)
    better, phases = analysis.smallest_step, max(rows.phases for rows in analysis.rows.values())
    if phases > 1 and better < needs.frames.shape[1]:
        return (
            f"--slide {step}: strides along time do not divide it, so that rows are kept for {phases} steps that take "
            f"turns; a multiple of --slide {better} needs those of one alone",
        )
    return ()


def saves_work(needs: Needs) -> bool:
    """Tells whether a step computes less than the whole model: fewer MACs, or without any MACs fewer rows."""
    macs = sum(macs_of(op, None) for op in needs.graph.ops)
    if macs:
        return step_macs(needs) < macs
    made = ((tensor, rows) for tensor, rows in needs.rows.items() if tensor is not needs.frames)
    return any(rows.made_rows < tensor.shape[1] for tensor, rows in made) or any(r.sums for r in needs.rows.values())


def step_macs(needs: Needs) -> int:
    """Multiply-accumulates of a step with these row needs."""
    return sum(macs_of(op, needs.rows.get(op.output) if op.outputs else None) for op in needs.graph.ops)


def _refused(graph: Graph, message: str, tensor: Tensor | None, hint: str) -> CompileError:
    return CompileError(graph.path, Problem(message, tensor=None if tensor is None else str(tensor), hint=hint))
