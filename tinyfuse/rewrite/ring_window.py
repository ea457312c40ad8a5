"""Replaces the window of a streaming convolution by a ring of rows, so that a run writes only its new rows.

before   %v = READ_VARIABLE(%s);  %w = CONCATENATION(%v, %x);  %n = STRIDED_SLICE(%w);
         ASSIGN_VARIABLE(%s, %n);  %y = CONV_2D(%w, ...)
after    RING_PUSH(%x, %r, %cursor);  %y = CONV_2D(%r, ...)       %r: a state with a cursor (ir.Tensor)

Any operators that only move elements may stand between the read and the assignment. Their effect is found by moving
numbers through them: the elements of the old state get the numbers 0 to S-1, those of the frame %x the numbers S to
S+F-1. The state is a ring if the new state is the last S of these numbers, and if every reader sees the last ones in
order: all of them, or all but the first F. Readers are convolutions without padding above or below. A convolution with
time along columns, [1, 1, T, C], becomes one with time along rows, [1, T, 1, C], which has the same bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tinyfuse.ir import Array, Graph, Op, Tensor
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.core.convolution import conv_with_axes_swapped, geometry


@dataclass(frozen=True, eq=False)
class KeptWindow:
    """Operators between the read and the assignment of a state that keeps the newest elements of a stream.

    numbers  tensor computed from the state -> numbers of its elements
    frame    tensor that adds new elements
    moves    the operators that made these tensors
    join     the first of them that reads the frame
    """

    state: Tensor
    read: Op
    assign: Op
    numbers: dict[Tensor, Array]
    frame: Tensor
    moves: tuple[Op, ...]
    join: Op


@dataclass(frozen=True, eq=False)
class _Window:
    """A window of rows kept in one state, with the operators that update and read the state.

    moves    operators to remove, among them the read and the assignment of the state
    frame    the tensor that adds new elements
    join     the first operator that reads the frame
    readers  convolutions over the window
    rows     number of rows of the window
    """

    state: Tensor
    moves: tuple[Op, ...]
    frame: Tensor
    join: Op
    readers: tuple[Op, ...]
    rows: int


def ring_window(graph: Graph) -> Graph:
    """Turn states that hold a window of a stream into rings."""
    for state in graph.states:
        window = _window(graph, state)
        if window is not None:
            graph = _with_ring(graph, window)
    return graph


def _window(graph: Graph, state: Tensor) -> _Window | None:
    """Return the window that a state keeps if convolutions can read it as a ring; else None."""
    kept = kept_window(graph, state)
    if kept is None:
        return None
    read, assign, numbers, frame, moves, join = kept.read, kept.assign, kept.numbers, kept.frame, kept.moves, kept.join
    size, total = state.elements, state.elements + frame.elements
    readers: dict[Op, None] = {}
    for tensor in numbers:
        for op in graph.consumers.get(tensor, ()):
            if op not in moves and op is not assign:
                readers[op] = None
        if tensor in graph.outputs:
            return None
    starts = {_start(op, numbers, total) for op in readers}
    if len(starts) != 1 or not starts <= {0, frame.elements} or not all(map(reads_rings, readers)):
        return None
    first, *others = (_by_rows(op) for op in readers)
    row = first.input.elements // first.input.shape[1]
    like = (first.input.shape, first.input.quant)
    if frame.elements % row or size % row or any((op.input.shape, op.input.quant) != like for op in others):
        return None
    return _Window(state, (read, assign, *moves), frame, join, tuple(readers), first.input.shape[1])


def kept_window(graph: Graph, state: Tensor) -> KeptWindow | None:
    """Return how a state keeps a stream's newest elements; None if it keeps something else."""
    users = [op for op in graph.ops if state in op.inputs]
    if state.lent or len(users) != 2 or not all(FAMILIES[op.kind].resource for op in users):
        return None
    read, assign = users
    if FAMILIES[read.kind].updates or not FAMILIES[assign.kind].updates:
        return None
    found = _moved(graph, read)
    if found is None:
        return None
    numbers, frame, moves, join = found
    assigned, total = numbers.get(assign.operand(1)), state.elements + frame.elements
    if assigned is None or not np.array_equal(assigned.reshape(-1), np.arange(frame.elements, total)):
        return None
    return KeptWindow(state, read, assign, numbers, frame, moves, join)


def _moved(graph: Graph, read: Op) -> tuple[dict[Tensor, Array], Tensor, tuple[Op, ...], Op] | None:
    """Trace element numbers from the read of a state.

    Return (element numbers of every tensor made of the state, the frame, the operators that made them, the first that
    needs the frame); None if anything else is mixed in, or no frame is.
    """
    numbers: dict[Tensor, Array] = {read.output: np.arange(read.output.elements).reshape(read.output.shape)}
    frame: Tensor | None = None
    join: Op | None = None
    moves: list[Op] = []
    for op in graph.ops:
        moved = FAMILIES[op.kind].moves(op)
        if not moved or numbers.keys().isdisjoint(op.inputs):
            continue
        arguments: list[Array | None] = []
        for i, tensor in enumerate(op.inputs):
            if tensor in numbers:
                arguments.append(numbers[tensor])
            elif tensor is None or (tensor.is_constant and i not in moved):
                arguments.append(None if tensor is None else tensor.data)
            elif tensor.is_constant or (frame is not None and tensor is not frame):
                return None
            else:
                frame, join = tensor, join or op
                start = read.output.elements
                arguments.append(np.arange(start, start + tensor.elements).reshape(tensor.shape))
        moves.append(op)
        numbers.update(zip(op.outputs, FAMILIES[op.kind].reference(op, *arguments), strict=True))
    if frame is None or join is None:
        return None
    return numbers, frame, tuple(moves), join


def _start(op: Op, numbers: dict[Tensor, Array], total: int) -> int | None:
    """Return the first number of a reader that reads all numbers from it on, in order, as its only input; else None."""
    seen = [numbers[tensor].reshape(-1) for tensor in op.activations if tensor in numbers]
    if not FAMILIES[op.kind].convolution or len(op.activations) != 1 or not seen:
        return None
    start = int(seen[0][0])
    return start if np.array_equal(seen[0], np.arange(start, total)) else None


def reads_rings(op: Op) -> bool:
    """Tell whether an operator can read a ring: a convolution of an image, batch 1, no padding above or below, and a
    row stride of 1 unless it makes a single row."""
    if not FAMILIES[op.kind].convolution or not (op.input.is_image and op.output.is_image):
        return False
    g = geometry(_by_rows(op))
    inside = g.pad_top == 0 and (g.out_h - 1) * g.stride_h + g.window.kernel <= g.in_h
    return inside and (g.stride_h == 1 or g.out_h == 1)


def _by_rows(op: Op) -> Op:
    """Turn a convolution over one row of pixels into one over one column of pixels: the bytes are the same."""
    weights = op.operand(1)
    if op.input.shape[1] != 1 or weights.shape[1] != 1 or op.output.shape[1] != 1:
        return op
    return replace(
        conv_with_axes_swapped(op, (_with_axes_swapped(op.input), *op.inputs[1:])),
        outputs=(_with_axes_swapped(op.output),),
    )


def _with_axes_swapped(tensor: Tensor) -> Tensor:
    batch, height, width, channels = tensor.shape
    return replace(tensor, shape=(batch, width, height, channels), index=-1)


def _with_ring(graph: Graph, window: _Window) -> Graph:
    state, frame = window.state, window.frame
    by_rows = {op: _by_rows(op) for op in window.readers}
    seen = by_rows[window.readers[0]].input
    cursor = Tensor(f"{state.name} (cursor)", (1,), "int32", initial=np.zeros(1, np.int32))
    ring = replace(seen, name=state.name, index=-1, initial=_initial(state, seen), cursor=cursor)
    push = Op("RING_PUSH", (frame, ring, cursor), (), index=window.join.index)
    ops: list[Op] = []
    for op in graph.ops:
        if op is window.join:
            ops.append(push)
        if op in by_rows:
            reader = by_rows[op]
            ops.append(replace(reader, inputs=(ring, *reader.inputs[1:])))
            if reader is not op:  # later readers expect the output in its old shape
                ops.append(Op("RESHAPE", (reader.output,), op.outputs, index=op.index))
        elif op not in window.moves:
            ops.append(op)
    return replace(graph, ops=tuple(ops))


def _initial(state: Tensor, seen: Tensor) -> Array:
    """Return the ring after a reset: the state is its newest rows; the rows that the first frame overwrites are
    arbitrary."""
    initial = state.initial_values
    values = initial.reshape(-1)
    if initial.strides == (0,) * initial.ndim:  # a single value, broadcast
        return np.broadcast_to(values[0], seen.shape)
    room = np.full(seen.elements - values.size, values[0])
    return np.concatenate([room, values]).reshape(seen.shape)
