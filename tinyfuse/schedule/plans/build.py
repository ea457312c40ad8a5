"""Builds plans from groups of operators: lowers them to kernels and buffers, and places the arena. Plans are not
verified here, because most are only compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tinyfuse import limits
from tinyfuse.arena import Placement, plan_arena, plan_arena_within
from tinyfuse.errors import CompileError, Problem
from tinyfuse.ir import Graph, Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.limits import Reached
from tinyfuse.options import Options
from tinyfuse.plan import Plan
from tinyfuse.plan.rows import USUAL_RINGS, RingModes
from tinyfuse.rewrite.fold_constants import model_macs
from tinyfuse.schedule.groups.lower import Lowered, lower, place_states
from tinyfuse.schedule.groups.search import Candidate
from tinyfuse.schedule.kernel_choice.stages import StageMemo
from tinyfuse.schedule.variants.variants import Variant

#: more than any microcontroller has; the plan checker needs eight times as much memory
MAX_ARENA_BYTES = 1 << 26


@dataclass(frozen=True)
class Builder:
    """Builds the plans of one model, whose graph as read is `source`.

    `memo`: see make_stages; `work_limit`: see plan_arena. Limits that searches reached are recorded in `reached`.
    """

    source: Graph
    options: Options
    memo: StageMemo = field(default_factory=dict)
    work_limit: int = field(default_factory=lambda: limits.PLACEMENT.most)
    reached: Reached = field(default_factory=Reached)

    def macs_within(self, recompute: float) -> int:
        """Multiply-accumulates of the model, times `recompute`."""
        return int(recompute * model_macs(self.source))

    def plan(self, variant: Variant, groups: Sequence[Sequence[Op]], rings: RingModes = USUAL_RINGS) -> Plan:
        """Plan that runs the variant's graph in these fusion groups. CompileError if it takes more memory than any
        device has."""
        lowered = lower(variant.graph, groups, variant.context, rings, self.memo)
        plan = self._plan(variant, lowered, plan_arena(lowered.buffers, lowered.overlaps, self.work_limit))
        if plan.arena_bytes > MAX_ARENA_BYTES:
            message = f"its activations take an arena of {plan.arena_bytes:,} bytes, more than {MAX_ARENA_BYTES:,}"
            hint = "no microcontroller has that memory: make it smaller"
            raise CompileError(variant.graph.path, Problem(message, hint=hint))
        return plan

    def plan_within(
        self, most: int, variant: Variant, groups: Sequence[Sequence[Op]], rings: RingModes = USUAL_RINGS,
        like: Placement | None = None,
    ) -> Plan | None:  # fmt: skip
        """Plan whose arena takes at most `most` bytes; None if it takes more. `like`: see plan_arena_within."""
        lowered = lower(variant.graph, groups, variant.context, rings, self.memo)
        placement = plan_arena_within(most, lowered.buffers, lowered.overlaps, self.work_limit, like)
        return None if placement is None else self._plan(variant, lowered, placement)

    def instead(self, plan: Plan, context: Context, rings: RingModes) -> Plan | None:
        """Plan with the kernels of another context and another layout of rings, in the same groups; None if it takes
        more RAM."""
        variant, groups = Variant(plan.graph, context), [group.ops for group in plan.groups]
        return self.plan_within(plan.arena_bytes, variant, groups, rings, plan.placement)

    def candidate(self, candidate: Candidate, most: int | None) -> Plan | None:
        """Plan of a candidate; with `most`, None if its arena takes more bytes."""
        groups = (Variant(candidate.graph, candidate.context), candidate.groups, candidate.rings)
        return self.plan(*groups) if most is None else self.plan_within(most, *groups)

    def _plan(self, variant: Variant, lowered: Lowered, placement: Placement) -> Plan:
        return Plan(
            source=self.source,
            graph=variant.graph,
            context=variant.context,
            options=self.options,
            groups=lowered.groups,
            storage=lowered.storage,
            buffers=lowered.buffers,
            overlaps=lowered.overlaps,
            placement=placement,
            states=place_states(variant.graph),
            warnings=variant.graph.warnings,
        )
