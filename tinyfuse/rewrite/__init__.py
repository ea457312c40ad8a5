"""Exact graph rewrites: each one a file, each a pure function Graph -> Graph.

They run in the order of `PASSES`. Exact means: for every input, every output of the model keeps
every bit.
"""

from __future__ import annotations

from collections.abc import Callable

from tinyfuse.ir import Graph
from tinyfuse.rewrite.drop_dead import drop_dead
from tinyfuse.rewrite.fold_activation import fold_activation
from tinyfuse.rewrite.fold_constants import fold_constants
from tinyfuse.rewrite.fold_pad import fold_pad

#: what every fusion level gets: nothing here joins two operators that both run
ALWAYS: tuple[Callable[[Graph], Graph], ...] = (fold_constants, drop_dead)

#: what `--fusion basic` and `rows` add
FUSING: tuple[Callable[[Graph], Graph], ...] = (fold_pad, fold_activation)


def rewrite(graph: Graph, fusion: str) -> Graph:
    """The graph after every pass that the fusion level allows."""
    for one_pass in ALWAYS if fusion == "none" else ALWAYS + FUSING:
        graph = one_pass(graph)
    return graph
