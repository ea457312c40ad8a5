"""Data of the arena over time: each buffer's rectangle, and the live sets of its first step in which it is used."""

from __future__ import annotations

from tinyfuse.arena import Buffer
from tinyfuse.arena.svg import ROLES, SHARED
from tinyfuse.plan import Plan
from tinyfuse.report.answer import JsonObject
from tinyfuse.report.buffer_roles import BufferRole, buffer_roles


def arena_data(plan: Plan) -> JsonObject:
    """Data of the arena.

    live_sets  for each step (a group's number), the number of live sets that it is divided into
    buffers    `live` has (first, last) of runs of live sets in the buffer's first step, null for all; `role` is a key
    of
               `roles`
    """
    roles = buffer_roles(plan)
    shown = [buffer for buffer in plan.buffers if buffer.bytes]
    live_sets = [1] * (1 + max((buffer.last_step for buffer in shown), default=0))
    for buffer in shown:
        if buffer.live_sets:
            live_sets[buffer.first_step] = max(live_sets[buffer.first_step], 1 + max(buffer.live_sets))
    return {
        "bytes": plan.arena_bytes,
        "lower_bound": plan.arena_lower_bound,
        "live_sets": live_sets,
        "roles": {role: text for role, (text, _) in ROLES.items() if role},
        "shared": " ".join(SHARED),
        "buffers": [_buffer(plan, buffer, roles[buffer.name]) for buffer in shown],
    }


def _buffer(plan: Plan, buffer: Buffer, role: BufferRole) -> JsonObject:
    return {
        "name": buffer.name,
        "role": role.role,
        "layer": role.layer,
        "what": role.text,
        "owner": buffer.owner,
        "offset": plan.placement.offsets[buffer.name],
        "bytes": buffer.bytes,
        "first": buffer.first_step,
        "last": buffer.last_step,
        "live": number_runs(buffer.live_sets) if buffer.live_sets else None,
    }


def number_runs(numbers: frozenset[int]) -> list[tuple[int, int]]:
    """(first, last) of each run of consecutive numbers, in order."""
    starts = sorted(n for n in numbers if n - 1 not in numbers)
    ends = sorted(n for n in numbers if n + 1 not in numbers)
    return list(zip(starts, ends, strict=True))
