"""Builds the graph that computes a step of another graph over a sliding window.

before   in %x[1,10,W,C];  %a[1,8,..] = CONV_2D(%x) 3 rows, VALID;  %b = FULLY_CONNECTED(%a)
after    in %x[1,1,W,C]
         RING_PUSH(%x, %ring of 3 rows);  %w = RING_ROWS(%ring);  %c[1,1,..] = CONV_2D(%w)
         RING_PUSH(%c, %other of 8 rows);  %a = RING_ROWS(%other);  %b = FULLY_CONNECTED(%a)
         AWAIT_WINDOW()

The input of an operator that makes some rows is assembled (`_Builder.rows`) from rows that the step made and rows from
rings, with slices and concatenations, most of which become views later. Every ring is pushed once, as soon as the rows
are made, and read only after that.

If the frames come in parts (--feed-rows), a run takes one of them:

         in %x[1,1,W,C];  operators that move with the parts, as above
         AWAIT_ROWS()
         operators that run once per step;  AWAIT_WINDOW()
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tinyfuse.errors import InternalFault
from tinyfuse.ir import Graph, Op, OwnWindow, Tensor, Window
from tinyfuse.ir.fixedpoint import RANGE
from tinyfuse.limits import Reached, merge_limits
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.movement.concatenation import Concatenation
from tinyfuse.ops.movement.slice import slice_of
from tinyfuse.ops.sequence.move_sum import MoveSum
from tinyfuse.ops.sequence.ring_rows import RingRows
from tinyfuse.rewrite.dilate import dilate
from tinyfuse.rewrite.fold_pad import fold_pad
from tinyfuse.slide.by_row import replace_outputs, rows_per_step
from tinyfuse.slide.extremes import halve_extremes
from tinyfuse.slide.front import front
from tinyfuse.slide.needs import Needs, read
from tinyfuse.slide.own_window import own_window, prepend_front_end
from tinyfuse.slide.refusals import check_step, gain_warnings, sliding_input
from tinyfuse.slide.ring import Ring, Span
from tinyfuse.slide.running_sums import sums_of
from tinyfuse.slide.time_rows import time_rows
from tinyfuse.slide.to_row_operators import to_row_operators
from tinyfuse.slide.upright import upright


def step_graph(graph: Graph, step: int, axis: int | None = None) -> Graph:
    """Step graph of a checked graph whose window moves by `step` frames, with the least work.

    `axis` is the dimension of its input that has the frames; None: 1. CompileError if the model cannot slide.
    """
    return step_graphs(graph, step, axis)[-1]


def step_graphs(graph: Graph, step: int, axis: int | None = None, by_row: bool = False) -> list[Graph]:
    """Step graphs that no other beats in both state and work, least state first; the last one is the result of
    `step_graph`.

    `by_row`: a step can also take its frames one by one (`Window.by_row`).
    """
    window = _window(graph, step, 1 if axis is None else axis)
    needs = needs_of(window)
    warnings = (*graph.warnings, *gain_warnings(needs, step))
    if by_row:
        window = replace(window, rows=rows_per_step(needs) if window.own is None else window.own.runs)
    reached = Reached()
    windows = [replace(window, again=choice.again) for choice in front(needs, reached)]
    return [replace(_graph_of(one, warnings), limits=merge_limits(graph.limits, reached.found)) for one in windows]


def _window(graph: Graph, step: int, axis: int) -> Window:
    """Sliding window over one of the graph's inputs, or over frames that the model keeps in a variable
    (own_window.py)."""
    found = own_window(graph, axis, step)
    number, own = (sliding_input(graph, axis), None) if found is None else found
    given = graph.inputs[number] if own is None else own.network.inputs[0]
    check_step(graph, given, given.shape[axis], step)
    return Window(graph, number, given.shape[axis], step, axis, own=own)


def _graph_of(window: Window, warnings: tuple[str, ...]) -> Graph:
    """Step graph of a window, with these warnings."""
    needs = needs_of(replace(window, rows=None))
    whole = _whole_step(needs, window, warnings, window.own)
    if window.rows is None or window.rows == 1:
        return whole
    one_run = None if window.own is None else replace(window.own, runs=1)
    by_row = _whole_step(replace(needs, parts=window.rows), window, warnings, one_run)
    return replace(whole, window=replace(window, by_row=replace_outputs(replace(by_row, window=None), whole.outputs)))


def _whole_step(needs: Needs, window: Window, warnings: tuple[str, ...], own: OwnWindow | None) -> Graph:
    graph = replace(_Builder(needs).graph(window), warnings=warnings)
    return graph if own is None else prepend_front_end(graph, window.input, own)


def needs_of(window: Window) -> Needs:
    """Needs of a step, of the sliding graph with frames as rows (upright.py)."""
    sliding, number = window.sliding
    shown, frames = upright(to_row_operators(dilate(sliding)), number, window.axis)
    shown = halve_extremes(fold_pad(shown), frames, window.step)
    again = frozenset(shown.ops[number].output for number in window.again)
    return Needs(shown, frames, time_rows(shown, frames, window.step), again, window.rows or 1)


class _Builder:
    def __init__(self, needs: Needs):
        self.needs, self.known = needs, needs.analysis.rows
        self.ops: list[Op] = []
        self.made: dict[Tensor, list[tuple[Span, Tensor]]] = {}
        self.rings: dict[Tensor, Tensor] = {}
        self.put_together: dict[tuple[Tensor, Span], Tensor] = {}
        self.sums: dict[Op, Tensor] = {}

    def graph(self, window: Window) -> Graph:
        """Step graph for a run that takes one of `needs.parts` parts of the frames."""
        whole, frames, parts = self.needs.graph, self.needs.frames, self.needs.parts
        brought = replace(frames, shape=(1, window.step // parts, *frames.shape[2:]))
        if frames in self.needs.rows:
            self._keep(frames, [(self.needs.rows[frames].fresh, brought)], index=-1)
        if parts > 1:
            self._make_of_each_part()
            self._await("AWAIT_ROWS", "rows to come", parts)
        for op in whole.ops:
            if any(tensor in self.known for tensor in op.outputs):
                if op.output in self.needs.rows:
                    rows = self.needs.rows[op.output]
                    self._keep(op.output, self._make(op, rows.others), op.index)
            elif op in self.sums:
                self._make_of_sums(op)
            else:
                whole_inputs = {t: self._whole(t, op.index) for t in op.activations if t in self.known}
                self.ops.append(op.reading(whole_inputs))
        outputs = tuple(self._whole(t, -1) if t in self.known else t for t in whole.outputs)
        self._await("AWAIT_WINDOW", "steps to come", window.steps_to_fill)
        inputs = tuple(brought if t is frames else t for t in whole.inputs)
        return replace(whole, ops=tuple(self.ops), inputs=inputs, outputs=outputs, window=window)

    def _await(self, kind: str, name: str, count: int) -> None:
        state = Tensor(name, (1,), "int32", initial=np.array([count], np.int32))
        self.ops.append(Op(kind, (state,), ()))

    def _make_of_each_part(self) -> None:
        """Adds the operators that run with each part of the frames."""
        for op in self.needs.graph.ops:
            rows = self.needs.rows.get(op.output) if op.outputs else None
            if rows is not None and rows.parts > 1:
                self._keep(op.output, self._make(op, (rows.fresh,)), op.index)

    def _make(self, op: Op, spans: tuple[Span, ...]) -> list[tuple[Span, Tensor]]:
        """Adds operators that compute some rows of an output, one per span."""
        made = []
        for span in spans:
            output = self._part(op.output, span)
            inputs, above, below = list(op.inputs), 0, 0
            for i, tensor in enumerate(op.inputs):
                if tensor in self.known:
                    seen = read(op, i, span)
                    inputs[i] = self._rows(tensor, seen.rows, op.index)
                    above, below = max(above, seen.above), max(below, seen.below)
            partial = FAMILIES[op.kind].of_rows(op, tuple(inputs), output, span[0], above, below)
            if partial is None:
                raise InternalFault("the step graph", f"{op} has no rows")
            self.ops.append(partial)
            made.append((span, output))
        return made

    def _make_of_sums(self, op: Op) -> None:
        """Adds the operators that compute the output of an operator over all rows, from the kept sums of rows that do
        not change and from the other rows."""
        sums, known, tensor = self.sums[op], self.known[op.input], op.input
        dirty = [span for span in ((0, known.start), (known.end, known.height)) if span[0] < span[1]]
        if dirty:
            others, clean = [self._of_made(tensor, span) for span in dirty], sums
            sums = sums_of(op, "sums of all rows")
            self.ops.append(Op("MOVE_SUM", (clean, *others), (sums,), MoveSum(len(others)), index=op.index))
        output = op.output if op.output.shape == sums.shape else replace(op.output, shape=sums.shape, index=-1)
        made = FAMILIES[op.kind].of_sums(op, sums, output)
        if made is None:
            raise InternalFault("the step graph", f"{op} has no sums")
        self.ops.append(made)
        if output is not op.output:
            self.ops.append(Op("RESHAPE", (output,), op.outputs, index=op.index))

    def _keep(self, tensor: Tensor, made: list[tuple[Span, Tensor]], index: int) -> None:
        """Records the rows made of a tensor, and pushes the new ones into its ring, once."""
        rows = self.needs.rows[tensor]
        self.made[tensor] = sorted([*self.made.get(tensor, ()), *made], key=lambda of: of[0])
        if rows.ring is None or tensor in self.rings:
            return
        fresh, zero = self._of_made(tensor, rows.fresh), _zero(tensor)
        shape = (1, rows.ring.height, *tensor.shape[2:])
        self.rings[tensor] = _ring(replace(tensor, name=f"{tensor.name} (kept)", shape=shape, index=-1), zero)
        for op in rows.sums:
            self._keep_sums(op, fresh, zero, index)
        self._push(fresh, self.rings[tensor], index)

    def _push(self, rows: Tensor, ring: Tensor, index: int) -> None:
        self.ops.append(Op("RING_PUSH", (rows, ring, ring.cursor), (), index=index))

    def _keep_sums(self, op: Op, fresh: Tensor, zero: int, index: int) -> None:
        """Moves an operator's sums: subtracts the rows that leave, which are still in their ring, and adds the new
        ones. `index` is the operator that made these."""
        ring = self._ring_of(op.input)
        # as if the window had begun with rows of zeros
        kept_rows = (ring.rows[1] - ring.rows[0]) * (op.input.elements // op.input.shape[1])
        kept = _ring(sums_of(op, "sums kept", ring.phases), zero * kept_rows // op.output.elements)
        before, self.sums[op] = sums_of(op, "sums before"), sums_of(op, "sums")
        self.ops.append(Op("RING_ROWS", (kept.cursor, kept), (before,), RingRows(0), index=index))
        leaving = [
            self._copied(op.input, span, ring.place(span[0]) + ring.shift, index)
            for span in ring.pieces((ring.rows[0] - ring.shift, ring.rows[0]))
        ]
        self.ops.append(Op("MOVE_SUM", (before, fresh, *leaving), (self.sums[op],), MoveSum(1), index=op.index))
        self._push(self.sums[op], kept, index)

    def _whole(self, tensor: Tensor, index: int) -> Tensor:
        return self._rows(tensor, (0, tensor.shape[1]), index)

    def _rows(self, tensor: Tensor, span: Span, index: int) -> Tensor:
        """Rows of a span, assembled for the operator with that index."""
        if (tensor, span) not in self.put_together:
            pieces = self._pieces(tensor, span, index)
            rows = pieces[0]
            if len(pieces) > 1:
                rows = self._part(tensor, span)
                self.ops.append(Op("CONCATENATION", tuple(pieces), (rows,), Concatenation(axis=1), index=index))
            self.put_together[tensor, span] = rows
        return self.put_together[tensor, span]

    def _pieces(self, tensor: Tensor, span: Span, index: int) -> list[Tensor]:
        """Tensors with the rows of a span, in order: from the ring if it has them all, else rows that the step made,
        and between them kept ones."""
        ring = self.needs.rows[tensor].ring
        if any(start <= span[0] and span[1] <= end for (start, end), _ in self.made[tensor]):
            return [self._of_made(tensor, span)]
        if ring is not None and ring.rows[0] <= span[0] and span[1] <= ring.rows[1]:
            return [self._of_ring(tensor, span, index)]
        pieces, at = [], span[0]
        for (start, end), _ in self.made[tensor]:
            start, end = max(start, at), min(end, span[1])
            if start < end:
                if at < start:
                    pieces.append(self._of_ring(tensor, (at, start), index))
                pieces.append(self._of_made(tensor, (start, end)))
                at = end
        if at < span[1]:
            pieces.append(self._of_ring(tensor, (at, span[1]), index))
        return pieces

    def _ring_of(self, tensor: Tensor) -> Ring:
        ring = self.needs.rows[tensor].ring
        if ring is None:
            raise InternalFault("the step graph", f"{tensor}: no rows are kept")
        return ring

    def _of_ring(self, tensor: Tensor, span: Span, index: int) -> Tensor:
        ring = self._ring_of(tensor)
        if span[0] < ring.rows[0] or ring.rows[1] < span[1]:
            raise InternalFault("the step graph", f"{tensor}: rows {span} are not kept")
        first, *more = ring.pieces(span)
        places = (first[1] - first[0], ring.shift, ring.between) if more else ()
        return self._copied(tensor, span, ring.place(span[0]), index, *places)

    def _copied(self, tensor: Tensor, span: Span, place: int, index: int, *places: int) -> Tensor:
        """Copies the rows of a span out of the ring, from `place` on."""
        ring, rows = self.rings[tensor], self._part(tensor, span)
        self.ops.append(Op("RING_ROWS", (ring.cursor, ring), (rows,), RingRows(place, *places), index=index))
        return rows

    def _of_made(self, tensor: Tensor, span: Span) -> Tensor:
        """Rows of a span that lies inside a single span of rows that the step made."""
        (start, end), made = next(m for m in self.made[tensor] if m[0][0] <= span[0] and span[1] <= m[0][1])
        if (start, end) == span:
            return made
        rows = self._part(tensor, span)
        self.ops.append(slice_of(made, (0, span[0] - start, 0, 0), rows, index=-1))
        return rows

    def _part(self, tensor: Tensor, span: Span) -> Tensor:
        """Tensor for some rows; for all rows the tensor itself, unless that is the step's input."""
        whole = span == (0, tensor.shape[1])
        if whole and tensor is not self.needs.frames:
            return tensor
        name = tensor.name if whole else f"{tensor.name} (rows {span[0]} to {span[1] - 1})"
        return replace(tensor, name=name, shape=(1, span[1] - span[0], *tensor.shape[2:]), index=-1)


def _zero(tensor: Tensor) -> int:
    """Value that fills a ring before the first frames; no output that is returned depends on it."""
    one = tensor.dtype in RANGE and tensor.quant is not None and not tensor.quant.per_channel
    return tensor.zero_point if one else 0


def _ring(tensor: Tensor, initial: int) -> Tensor:
    """Ring state with that tensor's shape, filled with a value."""
    cursor = Tensor(f"{tensor.name} (cursor)", (1,), "int32", initial=np.zeros(1, np.int32))
    values = np.broadcast_to(np.array(initial, tensor.dtype), tensor.shape)
    return replace(tensor, initial=values, cursor=cursor)
