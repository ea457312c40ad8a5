"""Strategy: runs layers again for late readers if that takes less RAM (rewrite/rematerialize.py), within the
multiply-accumulates and instructions of --recompute, which tiles share."""

from __future__ import annotations

from tinyfuse import limits
from tinyfuse.cost.predict import plan_instructions
from tinyfuse.ops import graph_macs
from tinyfuse.plan import Plan
from tinyfuse.progress import Progress, silent
from tinyfuse.rewrite.rematerialize import Rematerialization, rematerializations, rematerialize
from tinyfuse.schedule.plans.build import Builder
from tinyfuse.schedule.plans.pick_plan import is_worth_more_instructions
from tinyfuse.schedule.plans.search_variants import least_ram
from tinyfuse.schedule.variants.variants import Variant


def rematerialize_layers(plan: Plan, builder: Builder, progress: Progress = silent) -> Plan:
    """Plan of less RAM in which layers run again; the same plan if there is none. Tensors are tried one after the
    other, until none saves RAM."""
    recompute, tried = builder.options.recompute_limit, 0
    # about what the plan would take without tiles
    once = plan_instructions(plan) * min(1.0, builder.macs_within(1) / max(1, graph_macs(plan.graph)))
    if recompute <= 1:
        return plan
    while True:
        most = builder.macs_within(recompute) - graph_macs(plan.graph)
        better = None
        for candidate in _kept_in_full_steps(plan, rematerializations(plan.graph, most, builder.reached)):
            if tried == limits.REMATERIALIZED.most:
                builder.reached.note(limits.REMATERIALIZED)
                return plan
            tried += 1
            progress("trying to run layers again instead of keeping their results")
            variant = Variant(rematerialize(plan.graph, candidate), plan.context)
            found = least_ram(variant, builder, progress, recompute)
            affordable = found is not None and plan_instructions(found) <= recompute * once
            if found is not None and affordable and is_worth_more_instructions(found, plan):
                better = found
                break
        if better is None:
            return plan
        plan = better


def _kept_in_full_steps(plan: Plan, candidates: list[Rematerialization]) -> list[Rematerialization]:
    """Candidates whose tensor is alive in a step that fills the arena. Others save nothing, and each trial costs a
    search."""
    full = [step for step in range(len(plan.groups)) if plan.live_bytes(step) >= plan.placement.lower_bound]
    buffers = {buffer.name: buffer for buffer in plan.buffers}

    def is_full_of(candidate: Rematerialization) -> bool:
        buffer = buffers.get(plan.storage[candidate.tensor].buffer)
        return buffer is not None and any(map(buffer.is_alive_in, full))

    return [candidate for candidate in candidates if is_full_of(candidate)]
