"""Exact graph rewrites: each one a file, each a pure function Graph -> Graph.

`BEFORE_CHECK` runs before the check, the others after it, in the order of the lists below. Exact means: for every
input, every output of the model keeps every bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from tinyfuse.ir import Graph, Saving
from tinyfuse.ops import FAMILIES, graph_macs
from tinyfuse.rewrite.cancel_transposes import cancel_transposes
from tinyfuse.rewrite.computed_operands import computed_operands
from tinyfuse.rewrite.computed_weights import computed_weights
from tinyfuse.rewrite.cut_layers import cut_layers
from tinyfuse.rewrite.dense_windows import dense_windows
from tinyfuse.rewrite.dilate import dilate
from tinyfuse.rewrite.drop_dead import drop_dead
from tinyfuse.rewrite.drop_identities import drop_identities
from tinyfuse.rewrite.fold_activation import fold_activation
from tinyfuse.rewrite.fold_adjoint import fold_adjoint
from tinyfuse.rewrite.fold_constants import fold_constants
from tinyfuse.rewrite.fold_pad import fold_pad
from tinyfuse.rewrite.join_siblings import join_siblings
from tinyfuse.rewrite.keep_last_step import keep_last_step
from tinyfuse.rewrite.one_channel_depthwise import one_channel_depthwise
from tinyfuse.rewrite.patterns import replace_patterns
from tinyfuse.rewrite.prune_channels import prune_channels
from tinyfuse.rewrite.read_rings import read_rings
from tinyfuse.rewrite.read_states import read_states
from tinyfuse.rewrite.ring_window import ring_window
from tinyfuse.rewrite.rows_from_columns import rows_from_columns
from tinyfuse.rewrite.rows_of_planes import rows_of_planes
from tinyfuse.rewrite.rows_of_sequences import rows_of_sequences
from tinyfuse.rewrite.share_results import share_results
from tinyfuse.rewrite.split_full_height import split_dense, split_full_height
from tinyfuse.rewrite.split_global_pool import split_global_pool
from tinyfuse.rewrite.tabulate import tabulate
from tinyfuse.rewrite.trim_kernels import trim_kernels
from tinyfuse.rewrite.update_states import update_states
from tinyfuse.rewrite.views import every_view, views

Pass = Callable[[Graph], Graph]

#: called with (pass, graph before, graph after) for each pass that changed the graph; tests check graphs here
OBSERVERS: list[Callable[[Pass, Graph, Graph], None]] = []

#: results of passes, by pass and input graph
Rewritten = dict[tuple[Pass, Graph], Graph]

#: run before the rules are checked: afterwards constants are computed and every operator has a kernel
BEFORE_CHECK: tuple[Pass, ...] = (fold_constants, computed_weights, computed_operands)

#: run at every fusion level, also with `--fusion none`: these do not join operators
ALWAYS: tuple[Pass, ...] = (drop_dead,)

#: added by `--fusion basic` and `rows`
FUSING: tuple[Pass, ...] = (
    keep_last_step, replace_patterns, fold_adjoint, cancel_transposes, dilate, fold_pad, fold_activation, tabulate,
    drop_identities, share_results, join_siblings,
)  # fmt: skip

#: number of FUSING passes that run before AS_IMAGES; the later ones see layers over time as layers on images
BEFORE_IMAGES = FUSING.index(dilate) + 1

#: run with `--fusion rows` except for speed, once before AS_IMAGES and again after the last pass of FUSING: a SPLIT of
#: channels cannot run by rows, but divided layers may take more instructions
CUTTING: tuple[Pass, ...] = (cut_layers,)

#: turn sequences into images of rows; added by `rows` before the later passes of FUSING, except for speed (long rows
#: take fewer instructions) and with CMSIS-NN's kernels (which have variants for images of a single row)
AS_IMAGES: tuple[Pass, ...] = (rows_from_columns, rows_of_sequences)

#: save instructions but need scratch: skipped for `--optimize ram` and with CMSIS-NN's kernels
FASTER: tuple[Pass, ...] = (one_channel_depthwise,)

#: added by `rows`
REMOVING: tuple[Pass, ...] = (prune_channels, trim_kernels)

#: added by `rows`, except with CMSIS-NN's kernels
STREAMING: tuple[Pass, ...] = (ring_window, read_rings)

#: save RAM: skipped for speed; SMALLEST for `--optimize ram` alone (`balanced` compares the results of all objectives
#: and takes the smallest that is fast enough). CMSIS-NN's kernels allow SMALLER alone: a pooling is little work, and
#: its image would otherwise exist whole
SMALLER: tuple[Pass, ...] = (split_global_pool,)
SMALLER_BY_OURS: tuple[Pass, ...] = (split_full_height,)
SMALLEST: tuple[Pass, ...] = (split_dense,)

#: run after all passes that split convolutions, except with CMSIS-NN's kernels or fed rows: dense layers need their
#: whole input
DENSE: tuple[Pass, ...] = (dense_windows,)

#: run at every level that fuses, after all passes that inspect what operators compute: removes copies of variables
STATES: tuple[Pass, ...] = (update_states, read_states)
#: run after all passes that inspect TRANSPOSEs, except with CMSIS-NN's kernels, which have their own
IN_PLANES: tuple[Pass, ...] = (rows_of_planes,)


def rewrite(
    graph: Graph, fusion: str, kernels: str, optimize: str = "balanced", with_views: bool = True,
    known: Rewritten | None = None,
) -> Graph:  # fmt: skip
    """Return the graph after every pass that the fusion level, kernel library and objective allow.

    View passes run only if `with_views`. The result's `savings` tell what each pass saved. `known` caches pass results
    between calls, so that objectives share the passes that they have in common.
    """
    known = {} if known is None else known
    steps = list(rewrite_steps(graph, fusion, kernels, optimize, with_views, known))
    return steps[-1][1] if steps else graph


def rewrite_steps(
    graph: Graph, fusion: str, kernels: str, optimize: str, with_views: bool, known: Rewritten, fed: bool = False,
    instead: Mapping[Pass, Pass] = MappingProxyType({}),
) -> Iterator[tuple[str, Graph]]:  # fmt: skip
    """Yield (pass name, graph) after each pass of `rewrite` that changed the graph.

    `fed`: the caller passes the image row by row, in the file's rows. `instead` replaces passes by variants that depend
    on predicted costs (see `tabulating`, `pruning`).
    """
    for listed in _passes(fusion, kernels, optimize, with_views, fed):
        one_pass = instead.get(listed, listed)
        before = graph
        if (one_pass, before) not in known:
            known[one_pass, before] = _with_saving(one_pass, before)
        graph = known[one_pass, before]
        if graph is not before:
            yield one_pass.__name__, graph
    # operators that a pass bypassed (a RESHAPE before a layer) have no reader now
    if (drop_dead, graph) not in known:
        known[drop_dead, graph] = drop_dead(graph)
    alive = known[drop_dead, graph]
    if alive is not graph:
        yield drop_dead.__name__, alive


def _with_saving(one_pass: Pass, before: Graph) -> Graph:
    """Run a pass and append its saving to the graph's `savings`; return `before` itself if nothing changed."""
    graph = one_pass(before)
    if graph is before:
        return before
    for observe in OBSERVERS:
        observe(one_pass, before, graph)
    kept = set(graph.ops)
    changed = tuple(op for op in before.ops if op not in kept)
    macs, weights = (of(before) - of(graph) for of in (graph_macs, _weight_bytes))
    saving = Saving(one_pass.__name__, changed, macs, weights, _spared_copies(before, graph))
    return replace(graph, savings=(*graph.savings, saving))


def _spared_copies(before: Graph, after: Graph) -> int:
    """Return the bytes of copies removed, by views and by variables used in place."""
    return _left_by_views(before, after) + _variable_copies(before) - _variable_copies(after)


def _variable_copies(graph: Graph) -> int:
    return sum(op.input.bytes for op in graph.ops if FAMILIES[op.kind].resource)


def _left_by_views(before: Graph, after: Graph) -> int:
    had = set(before.ops)
    new = [op for op in after.ops if op not in had]
    copies = [op for op in new if not op.view] if any(op.view for op in new) else []
    return sum(t.bytes for op in new if op.view for t in op.outputs) - sum(op.output.bytes for op in copies)


def _weight_bytes(graph: Graph) -> int:
    """Return the bytes of all constants as stored in the file, each counted once."""
    constants = {tensor for op in graph.ops for tensor in op.inputs if tensor is not None and tensor.is_constant}
    return sum(tensor.bytes for tensor in constants)


def _passes(fusion: str, kernels: str, optimize: str, with_views: bool, fed: bool) -> tuple[Pass, ...]:
    passes = ALWAYS
    if fusion != "none":
        passes += FUSING[:BEFORE_IMAGES]
        cuts = CUTTING if fusion == "rows" and optimize != "speed" else ()
        passes += cuts
        as_images = fusion == "rows" and kernels != "cmsis-nn" and optimize != "speed" and not fed
        passes += AS_IMAGES if as_images else ()
        passes += FUSING[BEFORE_IMAGES:] + cuts
        passes += FASTER if kernels != "cmsis-nn" and optimize != "ram" else ()
    if fusion == "rows":
        passes += REMOVING
        passes += STREAMING if kernels != "cmsis-nn" else ()
        passes += SMALLER if optimize != "speed" else ()
    if fusion == "rows" and kernels != "cmsis-nn":
        passes += SMALLER_BY_OURS if optimize != "speed" else ()
        passes += SMALLEST if optimize == "ram" else ()
        passes += IN_PLANES
    passes += DENSE if fusion != "none" and kernels != "cmsis-nn" and not fed else ()
    passes += STATES if fusion != "none" else ()
    if fusion != "none" and with_views:
        # last: other passes inspect what operators compute, not where tensors lie
        passes += (every_view,) if optimize == "speed" else (views,)
    return passes
