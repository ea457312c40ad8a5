"""Which partition `--optimize` and `--max-ram` ask for, of those the search found.

speed     the fewest predicted instructions that --max-ram allows
balanced  the least RAM within 7 % of the fewest instructions; where that exceeds --max-ram, as speed
ram       the least RAM

Estimates order the candidates, plans decide: an arena has what the search leaves out (alignment,
fragmentation, several overlaps at once).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tinyfuse.plan import Plan
from tinyfuse.schedule.search import Candidate

#: `balanced` spends at most this share of the fastest plan's instructions on RAM. Where kernels take fewer, the
#: fixed work of a row weighs more: with 0.05, default arenas grew when the kernels' assembly became faster.
SLOWER = 0.07

#: how many candidates are planned to find the smallest arena: the one with the least estimate may
#: not be the one with the least arena
_PLANNED = 3

#: points of the front that are planned at most: a plan of hundreds of operators takes seconds
_SHOWN = 16


class Choices:
    """Candidates, of which at least one, and the plans of those that were looked at: `plans` are made
    already, `make` makes others."""

    def __init__(
        self, candidates: Sequence[Candidate], make: Callable[[Candidate], Plan], plans: dict[Candidate, Plan]
    ):
        self._by_speed = sorted(candidates, key=lambda c: (c.instructions, c.ram))
        self._make, self._plans = make, plans

    def plan(self, candidate: Candidate) -> Plan:
        if candidate not in self._plans:
            self._plans[candidate] = self._make(candidate)
        return self._plans[candidate]

    def choose(self, optimize: str, max_ram: int | None) -> Plan:
        """The plan that the options ask for; where none fits into `max_ram`, its state included, the
        smallest."""
        if optimize == "ram":
            # the least estimates may lie: what is planned for `balanced` is not to be smaller
            plans = self._smallest(self._by_speed), self.choose("balanced", None)
            return min(plans, key=lambda plan: plan.arena_bytes)
        if optimize == "balanced":
            most = self._by_speed[0].instructions * (1 + SLOWER)
            plan = self._smallest([c for c in self._by_speed if c.instructions <= most])
            if max_ram is None or plan.ram_bytes <= max_ram:
                return plan
        for candidate in self._by_speed:
            if max_ram is None or (candidate.ram <= max_ram and self.plan(candidate).ram_bytes <= max_ram):
                return self.plan(candidate)
        return self._smallest(self._by_speed)

    def _smallest(self, candidates: Sequence[Candidate]) -> Plan:
        """The least arena; of equal ones the faster. Where another order than the file's seems best, the
        file's is looked at as well: estimates of two orders are less alike than those of two partitions."""
        ranked = sorted(candidates, key=lambda c: (c.ram, c.instructions))
        least = ranked[:_PLANNED]
        if any(c.reordered for c in least):
            least += [c for c in ranked if not c.reordered][:_PLANNED]
        best = min(sorted(least, key=lambda c: c.instructions), key=lambda c: self.plan(c).arena_bytes)
        plan = self.plan(best)
        # where the arena is more than the estimate was, faster candidates may do with it too
        faster = [c for c in candidates if c.ram <= plan.arena_bytes and c.instructions < best.instructions]
        for candidate in sorted(faster, key=lambda c: c.instructions)[:_PLANNED]:
            if self.plan(candidate).arena_bytes <= plan.arena_bytes:
                return self.plan(candidate)
        return plan

    def in_file_order(self) -> Choices:
        """Those whose operators run in the order of the file, of which there is at least one."""
        return Choices([c for c in self._by_speed if not c.reordered], self._make, self._plans)

    def front(self) -> list[tuple[Candidate, Plan]]:
        """Candidates that no other one beats in both arena and predicted instructions, by least arena; of
        those that the estimates allow, at most _SHOWN evenly spread ones are planned."""
        hopeful: list[Candidate] = []
        for candidate in sorted(self._by_speed, key=lambda c: (c.ram, c.instructions)):
            if not hopeful or candidate.instructions < hopeful[-1].instructions:
                hopeful.append(candidate)
        last = len(hopeful) - 1
        if last >= _SHOWN:
            hopeful = [hopeful[k * last // (_SHOWN - 1)] for k in range(_SHOWN)]
        every = [(c, self.plan(c)) for c in hopeful]
        every.sort(key=lambda found: (found[1].arena_bytes, found[0].instructions))
        kept: list[tuple[Candidate, Plan]] = []
        for candidate, plan in every:
            if not kept or candidate.instructions < kept[-1][0].instructions:
                kept.append((candidate, plan))
        return kept
