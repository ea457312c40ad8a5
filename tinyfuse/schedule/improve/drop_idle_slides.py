"""Strategy: takes rings off stacks, or stops them from sliding, in groups where that costs no RAM."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tinyfuse import limits
from tinyfuse.cost.predict import ring_modes
from tinyfuse.plan import Plan
from tinyfuse.plan.rows import RingModes
from tinyfuse.schedule.plans.build import Builder


def drop_idle_slides(plan: Plan, builder: Builder) -> Plan:
    """Plan of no more RAM with fewer groups whose rings lie in a stack, on an output, or slide; the same plan if there
    is none."""
    rings = ring_modes(plan)
    for group in plan.groups:
        for simpler in _simpler:
            tried = simpler(rings, frozenset({group.index}))
            if tried == rings:
                continue
            if group.index >= limits.RINGS.most:
                builder.reached.note(limits.RINGS)
                return plan
            found = builder.instead(plan, plan.context, tried)
            if found is not None:
                plan, rings = found, tried
    return plan


#: simpler layouts of one group's rings: off the output, off the stack, not sliding
_simpler: tuple[Callable[[RingModes, frozenset[int]], RingModes], ...] = (
    lambda rings, group: replace(rings, resident_output=rings.resident_output - group),
    lambda rings, group: replace(rings, stacked=rings.stacked - group, resident_output=rings.resident_output - group),
    lambda rings, group: RingModes(rings.fixed | group, rings.stacked - group, rings.resident_output - group),
)
