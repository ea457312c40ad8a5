"""The static arena: buffers with lifetimes get byte offsets, with a proof of optimality or the gap.

problem.py   buffers, overlaps, placements; what may lie where
bounds.py    what no placement can beat
greedy.py    orders of placing that are good at once
climb.py     better ones by trial
fits.py      whether there is a placement of at most so many bytes: exact; pairs.py: its search
planner.py   puts them together, and says why orders of placing are enough
picture.py   the arena in ASCII; svg.py: as a picture
"""

from tinyfuse.arena.picture import arena_map
from tinyfuse.arena.planner import plan_arena, plan_arena_within
from tinyfuse.arena.problem import Buffer, Overlap, Placement
from tinyfuse.arena.svg import arena_svg

__all__ = ["Buffer", "Overlap", "Placement", "arena_map", "arena_svg", "plan_arena", "plan_arena_within"]
