"""Computes which rows of each tensor a step needs, which of these it computes, and which are kept from earlier steps.

Computed from the model's end backwards. An operator that runs whole needs all rows of its inputs. An operator that
computes single rows needs the rows in their windows. The needed rows of a tensor are

    rows that see padding   made in each step, at both ends of the window.
    clean rows              the newest, as many as the window moved by, are made and kept in a ring, in which they move
                            from the window's bottom to its top, as far as any is needed; without a ring, all are made.

A tensor of which only the newest clean rows are needed has no ring.

If the frames come in several parts (`--feed-rows`), a tensor that moves by a whole number of rows per part need not
wait for the last part: each part makes its new rows. The rows that a step brings, makes and drops stay the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from tinyfuse.errors import InternalFault
from tinyfuse.ir import Graph, Op, Tensor
from tinyfuse.ops import FAMILIES
from tinyfuse.slide.ring import Ring, Span
from tinyfuse.slide.running_sums import sum_bytes
from tinyfuse.slide.time_rows import Analysis, TimeRows


@dataclass(frozen=True)
class Rows:
    """Rows of a tensor in a step.

    made   disjoint spans of rows that the step computes, or that the caller brings
    fresh  the rows among these that are new in the window and depend on no padding; with several parts, those of one
           part
    ring   ring that keeps rows, `fresh` at its end; None if none are kept
    sums   operators over all rows whose sums are also kept (running_sums.py)
    parts  times per step that it makes `fresh`: once, or for each part of the frames
    """

    made: tuple[Span, ...]
    fresh: Span
    ring: Ring | None
    sums: tuple[Op, ...] = ()
    parts: int = 1

    @property
    def made_rows(self) -> int:
        """Number of rows made in a step."""
        return sum(end - start for start, end in self.made) + self._again

    @property
    def new_rows(self) -> int:
        """Number of rows made in a step that are new in the window."""
        return min(self.fresh[1] - self.fresh[0] + self._again, self.made_rows)

    @property
    def _again(self) -> int:
        return (self.parts - 1) * (self.fresh[1] - self.fresh[0])

    @property
    def others(self) -> tuple[Span, ...]:
        """Spans that are made once per step, where `fresh` is made per part."""
        return self.made if self.parts == 1 else tuple(span for span in self.made if span != self.fresh)

    def ring_bytes(self, tensor: Tensor) -> int:
        """Bytes of the tensor's ring."""
        return 0 if self.ring is None else tensor.bytes // tensor.shape[1] * self.ring.height

    def kept_bytes(self, tensor: Tensor) -> int:
        """Bytes of the tensor's ring and of the sums."""
        sums = 0 if self.ring is None else sum(sum_bytes(op, self.ring) for op in self.sums)
        return self.ring_bytes(tensor) + sums


@dataclass(frozen=True)
class Window:
    """Rows that a span of an operator's output reads: `rows` of an input, and the number of rows outside the image."""

    rows: Span
    above: int
    below: int


@dataclass(frozen=True, eq=False)
class Needs:
    """Rows in a step, of every tensor in `analysis.rows` that it needs.

    again  tensors whose rows are computed again instead of kept
    parts  number of equal parts in which a step's frames come
    """

    graph: Graph
    frames: Tensor
    analysis: Analysis
    again: Collection[Tensor] = ()
    parts: int = 1

    @cached_property
    def rows(self) -> dict[Tensor, Rows]:
        """Rows per tensor, in order from the model's end."""
        return dict(self._rows())

    def _rows(self) -> Iterator[tuple[Tensor, Rows]]:
        known, moving = self.analysis.rows, self._moving_with_parts
        needed = needed_by_caller(self.graph, self.analysis)
        # rows needed while one part of the frames is processed, for tensors that get new rows with each part
        at_once: dict[Tensor, tuple[Span, ...]] = {}
        for op in reversed(self.graph.ops):
            made: Rows | None = None
            if makes_rows(op, self.analysis):
                tensor = op.output
                if tensor not in needed and tensor not in at_once:
                    continue
                once = rows_made(known[tensor], needed.get(tensor, ()), tensor in self.again)
                # a tensor without a ring makes only what is read
                of_parts = tensor in at_once or (tensor in moving and once.ring is not None)
                if of_parts:
                    wanted = (*needed.get(tensor, ()), *at_once.get(tensor, ()))
                    made = _of_parts(known[tensor], wanted, self.parts)
                else:
                    made = once
                yield tensor, made
                if of_parts:
                    add_reads(at_once, op, Rows((made.fresh,), made.fresh, None), self.analysis)
                    made = replace(made, made=made.others)
            add_reads(needed, op, made, self.analysis)
        if self.frames in needed or self.frames in at_once:
            wanted = (*needed.get(self.frames, ()), *at_once.get(self.frames, ()))
            yield self.frames, rows_of_frames(known[self.frames], wanted, self.parts)

    @cached_property
    def _moving_with_parts(self) -> frozenset[Tensor]:
        """Tensors of which each part of the frames makes a whole number of new rows, from such tensors only."""
        if self.parts == 1:
            return frozenset()
        found = {self.frames}
        for op in self.graph.ops:
            known = self.analysis.rows.get(op.output) if makes_rows(op, self.analysis) else None
            if (
                known is not None
                and known.phases == 1
                and known.shift % self.parts == 0
                and known.end - known.start >= known.shift
                and op.output not in self.again
                and all(tensor in found for tensor in op.activations)
            ):
                found.add(op.output)
        return frozenset(found)


def makes_rows(op: Op, analysis: Analysis) -> bool:
    """Tells whether an operator can make single rows."""
    return any(tensor in analysis.rows for tensor in op.outputs)


def needed_by_caller(graph: Graph, analysis: Analysis) -> dict[Tensor, tuple[Span, ...]]:
    """Rows of the model's outputs: all of them."""
    return {tensor: ((0, analysis.rows[tensor].height),) for tensor in graph.outputs if tensor in analysis.rows}


def macs_of(op: Op, made: Rows | None) -> int:
    """Multiply-accumulates of an operator that makes these rows; None: runs whole."""
    whole = FAMILIES[op.kind].macs(op)
    return whole if made is None else whole * made.made_rows // op.output.shape[1]


def add_reads(needed: dict[Tensor, tuple[Span, ...]], op: Op, made: Rows | None, analysis: Analysis) -> None:
    """Add to `needed` the rows that an operator reads to make the rows `made`. `made` is None if it runs as a whole."""
    for tensor, span in _reads(op, made, analysis):
        needed[tensor] = joined([*needed.get(tensor, ()), span])


def _reads(op: Op, made: Rows | None, analysis: Analysis) -> Iterator[tuple[Tensor, Span]]:
    for i, tensor in enumerate(op.inputs):
        if tensor is None or tensor not in analysis.rows:
            continue
        if made is None:
            yield tensor, (0, analysis.rows[tensor].height)
        else:
            for span in made.made:
                yield tensor, read(op, i, span).rows


def rows_made(rows: TimeRows, needed: tuple[Span, ...], again: bool) -> Rows:
    """Rows of a tensor that an operator makes; `again`: none of them is kept."""
    clean = list(within(needed, rows.start, rows.end))
    if not clean:
        return Rows(joined(needed), (0, 0), None)
    oldest, end = min(start for start, _ in clean), max(end for _, end in clean)
    fresh = (max(end - rows.shift, rows.start), end)
    if oldest >= fresh[0] or again:
        return Rows(joined(needed), fresh, None)
    dirty = [*within(needed, 0, rows.start), *within(needed, rows.end, rows.height)]
    return _kept(rows, joined([fresh, *dirty]), fresh, oldest)


def rows_of_frames(rows: TimeRows, needed: tuple[Span, ...], parts: int = 1) -> Rows:
    """Rows of the frames. A step always brings the newest ones, whether or not they are needed."""
    if parts > 1:
        # the ring ends at the last row, so that row is always needed
        return _of_parts(rows, (*needed, (rows.height - 1, rows.height)), parts)
    fresh, oldest = (rows.height - rows.shift, rows.height), min(start for start, _ in needed)
    return _kept(rows, (fresh,), fresh, oldest) if oldest < fresh[0] else Rows((fresh,), fresh, None)


def _of_parts(rows: TimeRows, needed: tuple[Span, ...], parts: int) -> Rows:
    """Return a tensor's rows, if the new frames of a step come in `parts` parts and each part adds rows."""
    clean, shift = list(within(needed, rows.start, rows.end)), rows.shift // parts
    oldest, end = min(start for start, _ in clean), max(rows.start + shift, max(end for _, end in clean))
    fresh = (end - shift, end)
    dirty = joined([*within(needed, 0, rows.start), *within(needed, rows.end, rows.height)])
    sums = _moving_sums(rows, (oldest, end), rows.shift + sum(end - start for start, end in dirty))
    ring = Ring((oldest, end), shift, leaving=bool(sums)) if oldest < fresh[0] else None
    return Rows(tuple(sorted((fresh, *dirty))), fresh, ring, sums if ring else (), parts)


def _moving_sums(rows: TimeRows, kept: Span, made_rows: int) -> tuple[Op, ...]:
    """Operators over all rows whose sums a step that makes `made_rows` rows keeps; empty if that is no less work."""
    # a step adds the new rows, subtracts as many, and adds those that see padding
    return rows.sums if kept == (rows.start, rows.end) and made_rows + rows.shift < rows.height else ()


def _kept(rows: TimeRows, made: tuple[Span, ...], fresh: Span, oldest: int) -> Rows:
    """Rows with a ring from `oldest` to the end of `fresh`."""
    sums = _moving_sums(rows, (oldest, fresh[1]), sum(end - start for start, end in made))
    return Rows(made, fresh, Ring((oldest, fresh[1]), rows.shift, rows.phases, bool(sums)), sums)


def read(op: Op, index: int, span: Span) -> Window:
    """Rows of an input that a span of an operator's output reads."""
    window, height = FAMILIES[op.kind].slide_window(op, index), op.operand(index).shape[1]
    if window is None:
        raise InternalFault("the step graph", f"{op} has no rows")
    (start, _), (_, end) = window.reach(span[0]), window.reach(span[1] - 1)
    return Window((max(0, start), min(height, end)), max(0, -start), max(0, end - height))


def within(spans: Iterable[Span], start: int, end: int) -> Iterator[Span]:
    """Yields the parts of spans from `start` to before `end`."""
    for first, after in spans:
        first, after = max(first, start), min(after, end)
        if first < after:
            yield first, after


def joined(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Merges spans into disjoint ones, sorted."""
    found: list[Span] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return tuple(found)
