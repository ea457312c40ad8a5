"""The static arena: buffers with lifetimes get byte offsets, with a proof of optimality or the gap."""

from tinyfuse.arena.picture import arena_map
from tinyfuse.arena.planner import plan_arena
from tinyfuse.arena.problem import Buffer, Overlap, Placement

__all__ = ["Buffer", "Overlap", "Placement", "arena_map", "plan_arena"]
