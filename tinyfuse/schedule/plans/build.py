"""From groups of operators to a plan: lowered to kernels and buffers, placed in the arena. Not verified: most plans are
only compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tinyfuse import limits
from tinyfuse.arena import Placement, plan_arena, plan_arena_within
from tinyfuse.errors import CompileError, Problem
from tinyfuse.ir import Graph, Op
from tinyfuse.kernels.core.kernel import Context
from tinyfuse.limits import Reached
from tinyfuse.options import Options
from tinyfuse.plan import Plan
from tinyfuse.plan.rows import USUAL_RINGS, RingModes
from tinyfuse.rewrite.fold_constants import model_macs
from tinyfuse.schedule.groups.lower import Lowered, lower, place_states
from tinyfuse.schedule.groups.search import Candidate
from tinyfuse.schedule.kernel_choice.stages import StageMemo
from tinyfuse.schedule.variants.variants import Variant

#: more than any microcontroller has; the plan's checker takes eight times as much
MAX_ARENA_BYTES = 1 << 26


@dataclass(frozen=True)
class Builder:
    """Builds the plans of one model: `source` is its graph as it was read; `memo` as in make_stages,
    `work_limit` as in plan_arena. The limits that searches for it came to are noted in `reached`."""

    source: Graph
    options: Options
    memo: StageMemo = field(default_factory=dict)
    work_limit: int = field(default_factory=lambda: limits.PLACEMENT.most)
    reached: Reached = field(default_factory=Reached)

    def macs_within(self, recompute: float) -> int:
        """So many times the model's multiply-accumulates."""
        return int(recompute * model_macs(self.source))

    def plan(self, variant: Variant, groups: Sequence[Sequence[Op]], rings: RingModes = USUAL_RINGS) -> Plan:
        """The plan that runs the variant's graph in these fusion groups, whose rings lie as `rings` has it.
        CompileError where it takes more memory than there is."""
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
        """`plan` where its arena takes at most so many bytes, those of another plan; None where it takes more. `like`
        as in plan_arena_within."""
        lowered = lower(variant.graph, groups, variant.context, rings, self.memo)
        placement = plan_arena_within(most, lowered.buffers, lowered.overlaps, self.work_limit, like)
        return None if placement is None else self._plan(variant, lowered, placement)

    def instead(self, plan: Plan, context: Context, rings: RingModes) -> Plan | None:
        """The plan with the kernels that another context has, and its groups' rings so; None where that takes more
        RAM."""
        variant, groups = Variant(plan.graph, context), [group.ops for group in plan.groups]
        return self.plan_within(plan.arena_bytes, variant, groups, rings, plan.placement)

    def candidate(self, candidate: Candidate, most: int | None) -> Plan | None:
        """A candidate's plan: `plan_within` so many bytes, or `plan` for None (choose.Plans)."""
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
