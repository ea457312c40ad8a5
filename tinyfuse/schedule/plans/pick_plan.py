"""Picks the partition that `--optimize` and `--max-ram` ask for, among those that the search found.

speed     fewest predicted instructions within --max-ram
balanced  least RAM within 8 % of the fewest instructions (15 % with Helium, 4 % under --kernels cmsis-nn). Beyond 6 %,
          each 3 % of instructions must save 1 % of RAM. Loops over rows must save more arena than they add stack. If
          that plan exceeds --max-ram: as speed. The plan for speed replaces it if it is smaller and faster
          (plan_graph.py)
ram       least RAM, or up to 1 % more that saves at least the same share of instructions. Tiles must save more arena
          than they add stack. Kernels of the least scratch are candidates, too; speed and balanced also use those if
          --max-ram is exceeded otherwise

Estimates order the candidates, plans decide: an arena has what the search leaves out (alignment, fragmentation, several
overlaps at once).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, Protocol, TypeVar

from tinyfuse import limits
from tinyfuse.cost.predict import plan_instructions
from tinyfuse.kernels.core.context import Context
from tinyfuse.limits import Reached
from tinyfuse.plan import Plan
from tinyfuse.schedule.groups.search import Candidate

#: largest share of the fastest plan's instructions that `balanced` spends on RAM. With faster kernels, the fixed work
#: of a row weighs more: with 0.05 and 0.07, default arenas grew when the kernels' assembly became faster.
MAX_SLOWDOWN = 0.08

#: the same share with Helium, where the fixed work of a row weighs most: with 0.14 kws takes 444 bytes more
MAX_SLOWDOWN_WITH_HELIUM = 0.15

#: share of instructions that `balanced` may add to save any RAM; and share of RAM that a slower plan must save, as a
#: part of the share of instructions that it adds
SLOWDOWN_FOR_ANY_RAM, RAM_FOR_SLOWDOWN = 0.06, 1 / 3

#: bytes of arena that groups of several operators must save for `balanced`, because a loop over rows takes more stack:
#: 32 to 196 bytes in six networks on Cortex-M4
ROW_LOOP_STACK_BYTES = 192

#: bytes of arena that tiles must save for `ram`, because they take more stack: 312 in a network on Cortex-M4
TILE_STACK_BYTES = 312

#: largest share of the least RAM that `ram` spends on saving at least the same share of instructions
MAX_RAM_FOR_SPEED = 0.01

#: largest factor by which estimates of RAM are assumed to exceed the plan's
MAX_OVERESTIMATE = 1.02

#: the same share under `--kernels cmsis-nn`, so that MLPerf Tiny's models take at most 5 % more than TensorFlow Lite
#: Micro, whose whole-tensor calls of the same functions are about the fewest
MAX_SLOWDOWN_WITH_CMSIS_NN = 0.04


class Sized(Protocol):
    """Sizes of a plan, or of an estimate that stands for a plan that is never made."""

    @property
    def arena_bytes(self) -> int: ...

    @property
    def ram_bytes(self) -> int: ...


_Plan = TypeVar("_Plan", bound=Sized)


def is_worth_more_instructions(smaller: Plan, larger: Plan) -> bool:
    """Tells whether `--optimize ram` prefers the smaller of two plans, or any objective does if the larger exceeds
    --max-ram: it saves more than 1 % of RAM, or its share of saved RAM is at least its share of added instructions."""
    options, saved = larger.options, larger.ram_bytes - smaller.ram_bytes
    if saved <= 0:
        return False
    if options.max_ram is not None and larger.ram_bytes > options.max_ram:
        return True
    products = (plan.ram_bytes * plan_instructions(plan) for plan in (smaller, larger))
    return saved > MAX_RAM_FOR_SPEED * smaller.ram_bytes or operator.le(*products)


class Plans(Generic[_Plan]):
    """Plans of candidates, each made once.

    `make(candidate, most)` makes a plan of at most `most` bytes of arena, else None; of any size if `most` is None.
    `made` are known already.
    """

    def __init__(
        self, make: Callable[[Candidate, int | None], _Plan | None], made: Mapping[Candidate, _Plan] | None = None
    ):
        self._make = make
        self._made: dict[Candidate, _Plan] = dict(made or {})
        self._beyond: dict[Candidate, int] = {}  # candidate -> bytes of arena that it is known to exceed

    def of(self, candidate: Candidate) -> _Plan:
        """Plan of a candidate, however large."""
        plan = self._look(candidate, None)
        assert plan is not None, "a plan within no limit"
        return plan

    def within(self, most: int, candidate: Candidate) -> _Plan | None:
        """Plan of a candidate whose arena takes at most `most` bytes, else None."""
        plan = self._look(candidate, most)
        return None if plan is None or plan.arena_bytes > most else plan

    def looked_at(self, candidate: Candidate) -> bool:
        """Tells whether its plan was made, or is known to exceed one that was."""
        return candidate in self._made or candidate in self._beyond

    def instructions_of(self, plan: _Plan) -> float:
        """Fewest instructions of the candidates with this plan."""
        return min(candidate.instructions for candidate, made in self._made.items() if made is plan)

    def _look(self, candidate: Candidate, most: int | None) -> _Plan | None:
        if candidate not in self._made:
            if most is not None and self._beyond.get(candidate, -1) >= most:
                return None
            plan = self._make(candidate, most)
            if plan is None:
                assert most is not None
                self._beyond[candidate] = most
                return None
            self._made[candidate] = plan
        return self._made[candidate]


def max_slowdown(context: Context) -> float:
    """Share of the fewest instructions that `balanced` may add."""
    if context.kernels == "cmsis-nn":
        return MAX_SLOWDOWN_WITH_CMSIS_NN
    return MAX_SLOWDOWN_WITH_HELIUM if context.target.mve else MAX_SLOWDOWN


#: called with a chosen plan, and the candidates whose plans were not made for the choice
Note = Callable[[_Plan, Sequence[Candidate]], None]


def note_missed(reached: Reached) -> Note[Plan]:
    """Notes limits.PLACED if a candidate whose plan was not made is estimated to be better."""

    def note(plan: Plan, left: Sequence[Candidate]) -> None:
        size = plan.arena_bytes
        if any(c.ram < size or (c.ram == size and c.instructions < plan_instructions(plan)) for c in left):
            reached.note(limits.PLACED)

    return note


def _has_loops(candidate: Candidate) -> bool:
    """Tells whether a group of the candidate has a loop over the rows of several operators."""
    return any(len(group) > 1 for group in candidate.groups)


def _has_tiles(candidate: Candidate) -> bool:
    """Tells whether a group computes several convolutions tile by tile."""
    return any(op.kind == "TILED" for group in candidate.groups for op in group)


class Choices(Generic[_Plan]):
    """Candidates, at least one, and their plans.

    `note` is called with each choice. `placed` is the number of candidates with the best estimates that are placed
    (limits.PLACED).
    """

    def __init__(
        self, candidates: Sequence[Candidate], plans: Plans[_Plan], note: Note[_Plan] | None = None,
        placed: int | None = None,
    ):  # fmt: skip
        self._by_speed = sorted(candidates, key=lambda c: (c.instructions, c.ram))
        self._plans = plans
        self._note = note
        self._placed = limits.PLACED.most if placed is None else placed

    def choose(self, optimize: str, max_ram: int | None) -> _Plan:
        """Picks the plan that the options ask for; if none keeps `max_ram`, state included, the smallest."""
        if optimize == "ram":
            # estimates may be wrong, and the plan for `balanced` must not be smaller
            balanced = self._balanced()
            least = min(self._least_with_stack(), balanced, key=lambda plan: plan.arena_bytes)
            return self._noted(self._worthwhile(least, balanced, max_ram), self._by_speed)
        if optimize == "balanced":
            plan = self._balanced()
            if max_ram is None or plan.ram_bytes <= max_ram:
                return self._noted(plan, self._within(self._slower))
        if max_ram is None:
            return self._plans.of(self._by_speed[0])
        return self._fastest_within(max_ram) or self._noted(self._smallest(self._by_speed), self._by_speed)

    def _fastest_within(self, most: int) -> _Plan | None:
        """Fastest plan of at most `most` bytes; None without one. Estimates may be too high, so a few of the candidates
        just above the limit are placed too."""
        fitting = (c for c in self._by_speed if c.ram <= most and self._plans.of(c).ram_bytes <= most)
        found = next(fitting, None)
        faster = self._by_speed if found is None else self._by_speed[: self._by_speed.index(found)]
        for candidate in sorted(self._nearest(faster, most), key=self._by_speed.index):
            plan = self._plans.within(most, candidate)
            if plan is not None and plan.ram_bytes <= most:
                return plan
        return None if found is None else self._plans.of(found)

    def _least_with_stack(self) -> _Plan:
        """Plan of the smallest arena; one without tiles if these do not save more arena than they add stack."""
        least, plain = self._smallest(self._by_speed), [c for c in self._by_speed if not _has_tiles(c)]
        if len(plain) in (0, len(self._by_speed)):
            return least
        without = self._smallest(plain)
        return without if without.arena_bytes - least.arena_bytes <= TILE_STACK_BYTES else least

    def _worthwhile(self, least: _Plan, balanced: _Plan, max_ram: int | None) -> _Plan:
        """Plan for `ram`, no larger than that for `balanced`: the least, or a faster one that is worth its RAM."""
        most = min(int(least.ram_bytes * (1 + MAX_RAM_FOR_SPEED)), balanced.ram_bytes)
        faster = self._fastest_within(most if max_ram is None else min(most, max_ram))
        if faster is None:
            return least
        product, least_product = (plan.ram_bytes * self._plans.instructions_of(plan) for plan in (faster, least))
        return faster if product <= least_product else least

    def _nearest(self, candidates: Sequence[Candidate], most: int) -> list[Candidate]:
        """A few of the candidates that are estimated to take more than `most` bytes, the smallest first."""
        return sorted((c for c in candidates if c.ram > most), key=lambda c: c.ram)[: self._placed]

    def _balanced(self) -> _Plan:
        plan, alone = self._worth_slowdown(lambda _: True), self._worth_slowdown(lambda c: not _has_loops(c))
        assert plan is not None, "the fastest candidate is within its own instructions"
        if alone is None or self._plans.instructions_of(alone) > self._plans.instructions_of(plan):
            return plan
        return alone if alone.arena_bytes - plan.arena_bytes <= ROW_LOOP_STACK_BYTES else plan

    def _worth_slowdown(self, accepts: Callable[[Candidate], bool]) -> _Plan | None:
        """Plan of the least RAM that is worth its instructions, of some candidates; None if these are all too slow."""
        most = self._slower
        some = [[c for c in self._within(share) if accepts(c)] for share in (most, min(most, SLOWDOWN_FOR_ANY_RAM))]
        if not some[0]:
            return None
        plan, *faster = (self._smallest(candidates) for candidates in some if candidates)
        fewest = self._by_speed[0].instructions
        added = self._plans.instructions_of(plan) - fewest
        for other in faster:  # at most one; not divided by `fewest`, which is 0 without predictions
            if (other.arena_bytes - plan.arena_bytes) * fewest <= RAM_FOR_SLOWDOWN * added * other.arena_bytes:
                return other
        return plan

    @property
    def _slower(self) -> float:
        return max_slowdown(self._by_speed[0].context)

    def _noted(self, plan: _Plan, candidates: Sequence[Candidate]) -> _Plan:
        """Reports a choice to `note`, and returns it."""
        if self._note is not None:
            self._note(plan, [c for c in candidates if not self._plans.looked_at(c)])
        return plan

    def _within(self, max_slowdown: float) -> list[Candidate]:
        """Candidates with at most (1 + max_slowdown) times the fewest instructions."""
        most = self._by_speed[0].instructions * (1 + max_slowdown)
        return [c for c in self._by_speed if c.instructions <= most]

    def _smallest(self, candidates: Sequence[Candidate]) -> _Plan:
        """Plan of the smallest arena, of equal ones the faster.

        If another order than the file's seems best, the file's is placed too: estimates of two orders compare less well
        than those of two partitions. The same holds for estimates with and without kernels of the least scratch.
        """
        ranked = sorted(candidates, key=lambda c: (c.ram, c.instructions))
        least = [
            c
            for min_scratch in (False, True)
            for c in [c for c in ranked if c.context.min_scratch == min_scratch][: self._placed]
        ]
        if any(c.reordered for c in least):
            least += [c for c in ranked if not c.reordered][: self._placed]
        best, plan = self._least_arena(least)
        # if the arena exceeds the estimate, faster candidates may do with it too, and estimates may be high
        faster = [c for c in candidates if c.instructions < best.instructions]
        fitting = sorted((c for c in faster if c.ram <= plan.arena_bytes), key=lambda c: c.instructions)
        near = self._nearest([c for c in faster if c.ram <= plan.arena_bytes * MAX_OVERESTIMATE], plan.arena_bytes)
        for candidate in sorted(fitting[: self._placed] + near, key=lambda c: c.instructions):
            found = self._plans.within(plan.arena_bytes, candidate)
            if found is not None:
                return found
        return plan

    def _least_arena(self, candidates: Sequence[Candidate]) -> tuple[Candidate, _Plan]:
        """Candidate of the smallest arena, of equal ones the fastest, and its plan. Each later candidate is planned
        only within the smallest arena so far."""
        best, plan = candidates[0], self._plans.of(candidates[0])
        for candidate in candidates[1:]:
            found = self._plans.within(plan.arena_bytes, candidate)
            if found is not None:
                faster = candidate.instructions < best.instructions
                if found.arena_bytes < plan.arena_bytes or faster:
                    best, plan = candidate, found
        return best, plan

    def in_file_order(self) -> Choices[_Plan]:
        """Choices among candidates in the order of the file, at least one."""
        return Choices([c for c in self._by_speed if not c.reordered], self._plans, self._note, self._placed)
