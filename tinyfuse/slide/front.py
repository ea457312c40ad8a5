"""Chooses which rows to keep as state and which to compute again in each step, which costs work.

A row that is not kept is computed again in each step that needs it, which needs more rows of earlier tensors. The rows
of a tensor that are needed depend only on choices for later operators, so one pass through the operators from the
model's end tries both for each tensor. Choices that need the same rows compete: those remain that no other beats in
both state and work (work.py), at most limits.STEP_CHOICES in all, evenly spread.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from tinyfuse import limits
from tinyfuse.ir import Tensor
from tinyfuse.limits import Reached
from tinyfuse.slide.needs import (
    Needs,
    add_reads,
    macs_of,
    makes_rows,
    needed_by_caller,
    rows_made,
    rows_of_frames,
)
from tinyfuse.slide.ring import Span
from tinyfuse.slide.work import work_of
from tinyfuse.thinning import pick_evenly


@dataclass(frozen=True)
class Choice:
    """Choice of tensors to keep.

    again        numbers of the operators, in `Needs.graph`, whose outputs are made again
    state_bytes  bytes of the rows that are kept
    work         work of a step (work.py)
    """

    again: frozenset[int]
    state_bytes: int
    work: int


@dataclass(frozen=True)
class _Way:
    """Partial choice: it covers the operators from the last one back to some operator. `needed` are the rows of earlier
    tensors that these operators need with this choice."""

    choice: Choice
    needed: tuple[tuple[Tensor, tuple[Span, ...]], ...]

    def after(self, state_bytes: int, work: int, needed: dict[Tensor, tuple[Span, ...]], again: Iterable[int]) -> _Way:
        made = Choice(self.choice.again.union(again), self.choice.state_bytes + state_bytes, self.choice.work + work)
        return replace(self, choice=made, needed=tuple(needed.items()))


def front(needs: Needs, reached: Reached | None = None) -> list[Choice]:
    """Choices that no other choice beats in both state and work, those with the least state first. Limits that were
    reached are recorded in `reached`."""
    graph, analysis, frames = needs.graph, needs.analysis, needs.frames
    reached = Reached() if reached is None else reached
    ways = [_Way(Choice(frozenset(), 0, 0), tuple(needed_by_caller(graph, analysis).items()))]
    for number in range(len(graph.ops) - 1, -1, -1):
        ways = _best([way for before in ways for way in _ways_through(needs, number, before)], reached)
    found = []
    for way in ways:
        needed = dict(way.needed)
        brought = rows_of_frames(analysis.rows[frames], needed[frames]).kept_bytes(frames) if frames in needed else 0
        found.append(replace(way.choice, state_bytes=way.choice.state_bytes + brought))
    return _unbeaten(found)


def _ways_through(needs: Needs, number: int, before: _Way) -> Iterator[_Way]:
    """Yields the ways to treat an operator's output rows: kept, if some would be, and made again."""
    op, analysis = needs.graph.ops[number], needs.analysis
    if not makes_rows(op, analysis):
        needed = dict(before.needed)
        add_reads(needed, op, None, analysis)
        yield before.after(0, macs_of(op, None), needed, ())
        return
    wanted = dict(before.needed).get(op.output)
    if wanted is None:
        yield before
        return
    kept = rows_made(analysis.rows[op.output], wanted, again=False)
    ways = (
        [(kept, ())]
        if kept.ring is None
        else [(kept, ()), (rows_made(analysis.rows[op.output], wanted, True), (number,))]
    )
    for rows, again in ways:
        needed = {tensor: spans for tensor, spans in before.needed if tensor is not op.output}
        add_reads(needed, op, rows, analysis)
        yield before.after(rows.kept_bytes(op.output), work_of(op, rows, analysis), needed, again)


def _best(ways: list[_Way], reached: Reached) -> list[_Way]:
    alike: dict[frozenset[tuple[Tensor, tuple[Span, ...]]], list[_Way]] = {}
    for way in ways:
        alike.setdefault(frozenset(way.needed), []).append(way)
    kept = []
    for same in alike.values():
        by_choice = {way.choice: way for way in same}
        kept += [by_choice[choice] for choice in _unbeaten(by_choice)]
    kept.sort(key=lambda way: (way.choice.state_bytes, way.choice.work))
    if len(kept) > limits.STEP_CHOICES.most:
        reached.note(limits.STEP_CHOICES)
    return pick_evenly(kept, limits.STEP_CHOICES.most)


def _unbeaten(choices: Iterable[Choice]) -> list[Choice]:
    found: list[Choice] = []
    for choice in sorted(choices, key=lambda c: (c.state_bytes, c.work, len(c.again), sorted(c.again))):
        if not found or choice.work < found[-1].work:
            found.append(choice)
    return found
