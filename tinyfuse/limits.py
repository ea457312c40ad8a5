"""Limits of the searches for a plan, and a record of those that were reached.

A search that reached its limit may have missed something better, so `gen` and `report` say so (report/limits.py). Every
limit is defined here, and reported by `Reached.note`; tests/unit/test_search_limits.py forces each. Constants that
merely define a search space (sizes of tiles, the share of instructions that `balanced` may spend) are no limits.

Limits reached in rewrites are noted in the graph (`Graph.limits`), those of strategies beyond one graph in the plan
(`Plan.limits`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Limit:
    """A limit of a search.

    search  short name of the search, for a column
    most    largest number allowed
    of      description of what is counted
    """

    search: str
    most: int
    of: str


# --- groups (schedule/groups/search.py) ---

#: budget of simulated rows for all groups, which take a second; MLPerf Tiny's models use a tenth of it. Short groups
#: are weighed first; groups that remain when the budget is used up are not weighed
GROUP_ROWS = Limit("groups", 250_000, "rows in the simulations of all weighed groups")
#: height of the tallest tensor up to which that budget applies. For the least RAM, taller tensors get proportionally
#: more, so that as many groups are weighed: attention over hundreds of vectors needs groups of whole blocks
ROWS_OF_WORK = 64
GROUP_LENGTH = Limit("groups", 40, "operators of a group")
PARTITIONS = Limit("groups", 48, "partial partitions of the operators that are extended")

# --- plans of what the searches found (schedule/plans/pick_plan.py, strategies) ---

#: the candidate with the smallest estimate may not have the smallest arena
PLACED = Limit("plans", 3, "partitions with the best estimates that are placed")
#: each takes up to a second
UPGRADED = Limit("plans", 24, "operators tried with a kernel that takes more scratch")
#: each takes a search
RECOMPUTED = Limit("plans", 3, "operators tried that run again for a later reader")
RECOMPUTED_TOGETHER = Limit("plans", 12, "operators that run again together")
REMATERIALIZED = Limit("plans", 6, "layers tried that run again for a late reader")
REMATERIALIZED_TOGETHER = Limit("plans", 12, "layers that run again together")
#: a plan of hundreds of operators takes seconds
FRONT = Limit("plans", 16, "points of the front that were placed")
STEPS = Limit("plans", 8, "step graphs that were planned")
#: about five seconds on a PC, as for steps of kws: the time of a search for groups grows with the pairs of operators.
#: For an image of 96x96, whose steps have 80 operators, fewer graphs are planned
STEP_PAIRS = Limit("plans", 16_000, "pairs of operators of the step graphs that were planned")
STEP_CHOICES = Limit("steps", 64, "choices of the rows that a step keeps, to be extended")

# --- orders of the operators (schedule/groups/order.py, promising_orders.py): two seconds ---

ORDERS = Limit("orders", 2, "other orders of the operators that were searched")
ORDER_SETS = Limit("orders", 20_000, "sets of operators that may have run")
ORDER_WAYS = Limit("orders", 800_000, "transitions between sets of operators that may have run")

# --- tiles (schedule/groups/tiling.py, tiled_groups.py) ---

CHAIN = Limit("tiles", 4, "operators of a chain in tiles")
#: each takes milliseconds
TILED_GROUPS = Limit("tiles", 4_000, "groups weighed in tiles")

# --- placements (arena/planner.py) ---

#: about 20 ms for placements that cannot be proven minimal; most others need a hundredth of that
PLACEMENT = Limit("arena", 20_000, "elementary operations of the search for a placement")

# --- memory banks (schedule/banks/place_arena.py, split_arena.py, stage_weights.py) ---

BANK_SHARES = Limit("banks", 5, "sizes of a plan tried to divide its arena")
#: applies to each placement that is tried
BANK_FILLINGS = Limit("banks", 100, "placements tried to fill a bank")
#: each takes up to a fifth of a second
COPIES = Limit("banks", 12, "plans tried to find the weights that are copied ahead")

# --- weights within --max-flash (schedule/improve/fit_flash.py) ---

FLASH_PRICES = Limit("flash", 4, "prices of a byte of flash tried")
COMPRESSED_PRICES = Limit("flash", 6, "prices of a saved byte tried for compressed weights")

# --- graphs (schedule/variants/fuse_elementwise.py, rewrite/cancel_transposes.py) ---

#: longer loops would have more values than registers, and larger code
LOOP = Limit("graph", 10, "operators of a fused loop")
#: about a second
TRANSPOSES = Limit("graph", 1_000_000, "operators looked at to cancel TRANSPOSEs")


class Reached:
    """Limits that searches have reached, in the order of first occurrence."""

    def __init__(self) -> None:
        self._found: dict[Limit, None] = {}

    def note(self, *limits: Limit) -> None:
        """Records limits that a search reached: it may have missed a better result."""
        self._found.update(dict.fromkeys(limits))

    @property
    def found(self) -> tuple[Limit, ...]:
        return tuple(self._found)


def merge_limits(*found: Iterable[Limit]) -> tuple[Limit, ...]:
    """Merges limits, each once."""
    return tuple(dict.fromkeys(limit for limits in found for limit in limits))
