"""Plans the static arena: gives buffers with lifetimes byte offsets, and proves the size minimal or states the gap to a
lower bound.

problem.py   buffers, overlaps, placements; which buffers may share bytes
bounds.py    lower bounds on the size of any placement
greedy.py    greedy orders of placing
climb.py     better orders by hill climbing
fits.py      exact search for a placement of a given size; pairs.py: its core
planner.py   combines them, and proves that orders of placing suffice
picture.py   draws the arena as ASCII art; svg.py: as an SVG picture
"""

from tinyfuse.arena.picture import arena_map
from tinyfuse.arena.planner import plan_arena, plan_arena_within
from tinyfuse.arena.problem import Buffer, Overlap, Placement
from tinyfuse.arena.svg import arena_svg

__all__ = ["Buffer", "Overlap", "Placement", "arena_map", "arena_svg", "plan_arena", "plan_arena_within"]
