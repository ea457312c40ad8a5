"""Which models and steps `--slide` takes, and what is said of those that it takes without a gain."""

from __future__ import annotations

from math import prod

from tinyfuse.errors import CompileError, Problem
from tinyfuse.ir import Graph, Tensor
from tinyfuse.slide.needs import Needs, macs_of
from tinyfuse.slide.time_rows import time_rows


def sliding_input(graph: Graph, axis: int) -> int:
    """The number of the first input whose dimension `axis` has frames, each one piece of memory. CompileError where
    there is none, or where the model keeps state."""
    if graph.states:
        message = "--slide: the model keeps state from one inference to the next, which each window would advance anew"
        raise _refused(graph, message, graph.states[0], "leave --slide out: the model is made for a stream as it is")
    for number, tensor in enumerate(graph.inputs):
        if tensor in graph.consumers and _has_frames(tensor, axis):
            return number
    others = [f"--slide-axis {other}" for other in range(6) if any(_has_frames(t, other) for t in graph.inputs)]
    message = f"--slide: no input has frames along dimension {axis}, behind dimensions of size 1 alone"
    raise _refused(graph, message, graph.inputs[0], f"give {' or '.join(others) or 'the whole model, without --slide'}")


def _has_frames(tensor: Tensor, axis: int) -> bool:
    return len(tensor.shape) > axis and tensor.shape[axis] > 1 and prod(tensor.shape[:axis]) == 1


def check_step(graph: Graph, tensor: Tensor, frames: int, step: int) -> None:
    """CompileError where nothing of a window would stay."""
    if step >= frames:
        message = f"--slide {step}: the window has {frames} frames, so that none of them would be there twice"
        raise _refused(graph, message, tensor, f"give a step below {frames}, or run the whole model, without --slide")


def worth(graph: Graph, needs: Needs, step: int) -> tuple[str, ...]:
    """What a user should know of a step that gains less than another would. CompileError where no operator gains for
    its stride, which another step fits."""
    gains, analysis = saves(needs), needs.analysis
    op = next((op for op, end in analysis.ends.items() if end.smallest is not None), None)
    if op is not None:
        reason = f"{op}: {analysis.ends[op].reason}"
        better = smallest_step(needs.graph, needs.frames, step)
        if not gains and better is not None:
            message = f"--slide {step}: {reason}: every step would compute the whole model"
            raise _refused(graph, message, needs.frames, f"give --slide {better}, or a multiple of it")
        if better is not None:
            return (f"{reason}: from there on each step computes all rows; --slide {better} would spare them",)
    if not gains:
        reasons = "; ".join(f"{op}: {end.reason}" for op, end in analysis.ends.items())
        return (f"--slide {step}: each step computes the whole model: {reasons or 'nothing stays'}",)
    return ()


def smallest_step(shown: Graph, frames: Tensor, step: int) -> int | None:
    """The smallest step that fits the strides of all operators whose rows could move; None where that is the window, or
    more."""
    while step < frames.shape[1]:
        ends = time_rows(shown, frames, step).ends.values()
        unfit = [end.smallest for end in ends if end.smallest is not None]
        if not unfit:
            return step
        step = unfit[0]
    return None


def saves(needs: Needs) -> bool:
    """Whether a step computes less than the whole model, of what its layers compute; where it has none, of all."""
    macs = sum(macs_of(op, None) for op in needs.graph.ops)
    if macs:
        return step_macs(needs) < macs
    return any(rows.ring is not None or rows.made_rows < tensor.shape[1] for tensor, rows in needs.rows.items())


def step_macs(needs: Needs) -> int:
    """Multiply-accumulates of a step."""
    return sum(macs_of(op, needs.rows.get(op.output) if op.outputs else None) for op in needs.graph.ops)


def _refused(graph: Graph, message: str, tensor: Tensor, hint: str) -> CompileError:
    return CompileError(graph.path, Problem(message, tensor=str(tensor), hint=hint))
