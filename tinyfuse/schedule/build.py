"""From groups of operators to a plan: lowered to kernels and buffers, placed in the arena. Not verified: most plans are
only compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tinyfuse.arena import plan_arena
from tinyfuse.errors import CompileError, Problem
from tinyfuse.ir import Graph, Op
from tinyfuse.options import Options
from tinyfuse.plan import Plan
from tinyfuse.schedule.lower import StageMemo, lower, place_states
from tinyfuse.schedule.variants import Variant

#: more than any microcontroller has; the plan's checker takes eight times as much
MAX_ARENA_BYTES = 1 << 26


@dataclass(frozen=True)
class Builder:
    """Builds the plans of one model: `source` is its graph as it was read; `memo` as in lower.make_stages."""

    source: Graph
    options: Options
    memo: StageMemo = field(default_factory=dict)

    def plan(self, variant: Variant, groups: Sequence[Sequence[Op]], fixed: frozenset[int] = frozenset()) -> Plan:
        """The plan that runs the variant's graph in these fusion groups; in those whose numbers are `fixed`, no
        ring slides. CompileError where it takes more memory than there is."""
        graph, context = variant
        lowered = lower(graph, groups, context, fixed, self.memo)
        plan = Plan(
            source=self.source,
            graph=graph,
            context=context,
            options=self.options,
            groups=lowered.groups,
            storage=lowered.storage,
            buffers=lowered.buffers,
            overlaps=lowered.overlaps,
            placement=plan_arena(lowered.buffers, lowered.overlaps),
            states=place_states(graph),
            warnings=graph.warnings,
        )
        if plan.arena_bytes > MAX_ARENA_BYTES:
            message = f"its activations take an arena of {plan.arena_bytes:,} bytes, more than {MAX_ARENA_BYTES:,}"
            raise CompileError(graph.path, Problem(message, hint="no microcontroller has that memory: make it smaller"))
        return plan
