"""Strategy: rings lie in no stack, or stay where they are, in groups where that saves nothing."""

from __future__ import annotations

from tinyfuse.cost.predict import ring_modes
from tinyfuse.plan import Plan
from tinyfuse.plan.rows import RingModes
from tinyfuse.schedule.build import Builder
from tinyfuse.schedule.variants import Variant

#: plans that are made to see whether a group's rings must slide; each takes up to a second
MOST_SLIDE_TRIALS = 8


def without_idle_slides(plan: Plan, builder: Builder) -> Plan:
    """The plan, or one of no more RAM in which fewer groups have rings in a stack, or an output below them, or rings
    that slide."""
    variant, groups = Variant(plan.graph, plan.context), [group.ops for group in plan.groups]
    rings = ring_modes(plan)
    for group in plan.groups[:MOST_SLIDE_TRIALS]:
        number = {group.index}
        for tried in (
            RingModes(rings.fixed, rings.stacked, rings.growing - number),
            RingModes(rings.fixed, rings.stacked - number, rings.growing - number),
            RingModes(rings.fixed | number, rings.stacked - number, rings.growing - number),
        ):
            found = None if tried == rings else builder.plan_within(plan.arena_bytes, variant, groups, tried)
            if found is not None:
                plan, rings = found, tried
    return plan
