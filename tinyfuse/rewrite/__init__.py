"""Exact graph rewrites: each one a file, each a pure function Graph -> Graph.

`fold_constants` runs before the check, the others behind it, in the order of the lists below. Exact
means: for every input, every output of the model keeps every bit.
"""

from __future__ import annotations

from collections.abc import Callable

from tinyfuse.ir import Graph
from tinyfuse.rewrite.drop_dead import drop_dead
from tinyfuse.rewrite.fold_activation import fold_activation
from tinyfuse.rewrite.fold_pad import fold_pad
from tinyfuse.rewrite.prune_channels import prune_channels
from tinyfuse.rewrite.split_full_height import split_dense, split_full_height
from tinyfuse.rewrite.split_global_pool import split_global_pool

#: what every fusion level gets: nothing here joins two operators that both run
ALWAYS: tuple[Callable[[Graph], Graph], ...] = (drop_dead,)

#: what `--fusion basic` and `rows` add
FUSING: tuple[Callable[[Graph], Graph], ...] = (fold_pad, fold_activation)


#: what `rows` adds
REMOVING: tuple[Callable[[Graph], Graph], ...] = (prune_channels,)

#: and this, unless CMSIS-NN's kernels are to be used wherever there are some
STREAMING: tuple[Callable[[Graph], Graph], ...] = (split_global_pool,)

#: and these for less RAM: unless speed is all, and where RAM is all
SMALLER: tuple[Callable[[Graph], Graph], ...] = (split_full_height,)
SMALLEST: tuple[Callable[[Graph], Graph], ...] = (split_dense,)


def rewrite(graph: Graph, fusion: str, library: str, optimize: str = "balanced") -> Graph:
    """The graph after every pass that the fusion level, the kernel library and the aim allow."""
    passes = ALWAYS
    if fusion != "none":
        passes += FUSING
    if fusion == "rows":
        passes += REMOVING
    if fusion == "rows" and library != "cmsis-nn":
        passes += STREAMING
        passes += SMALLER if optimize != "speed" else ()
        passes += SMALLEST if optimize == "ram" else ()
    for one_pass in passes:
        graph = one_pass(graph)
    return graph
