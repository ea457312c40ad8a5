"""Exact graph rewrites: each one a file, each a pure function Graph -> Graph.

`BEFORE_CHECK` runs before the check, the others after it, in the order of the lists below. Exact means: for every
input, every output of the model keeps every bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

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

#: get (pass, graph before, graph after) of each pass that did something: tests put a check of the graph here
OBSERVERS: list[Callable[[Pass, Graph, Graph], None]] = []

#: what passes made of graphs
Rewritten = dict[tuple[Pass, Graph], Graph]

#: what rules are asked of: with all constants, and operators that have kernels
BEFORE_CHECK: tuple[Pass, ...] = (fold_constants, computed_weights, computed_operands)

#: what every fusion level gets: nothing here joins two operators that both run
ALWAYS: tuple[Pass, ...] = (drop_dead,)

#: what `--fusion basic` and `rows` add
FUSING: tuple[Pass, ...] = (
    keep_last_step, replace_patterns, fold_adjoint, cancel_transposes, dilate, fold_pad, fold_activation, tabulate,
    drop_identities, share_results, join_siblings,
)  # fmt: skip

#: of those, the ones after which images have their rows: what comes later sees layers over time as it sees images
PICTURING = FUSING.index(dilate) + 1

#: what `rows` does in front of these and behind all of FUSING, unless speed is all, for what splits channels doesn't
#: stream: where layers are cut, some take more instructions
CUTTING: tuple[Pass, ...] = (cut_layers,)

#: what `rows` does there, unless speed is all, for rows of many pixels take fewer instructions, or CMSIS-NN's kernels
#: are to be used, which have forms for images of a single row
STANDING: tuple[Pass, ...] = (rows_from_columns, rows_of_sequences)

#: and these for fewer instructions, which take scratch: unless RAM is all, or CMSIS-NN's kernels are to be used
FASTER: tuple[Pass, ...] = (one_channel_depthwise,)

#: what `rows` adds
REMOVING: tuple[Pass, ...] = (prune_channels, trim_kernels)

#: and this, unless CMSIS-NN's kernels are to be used wherever there are some
STREAMING: tuple[Pass, ...] = (ring_window, read_rings)

#: and these for less RAM: unless speed is all, and where RAM is all (`balanced` looks at what every objective
#: makes of a model, and takes the smallest that is fast enough). Where CMSIS-NN's kernels are to be used, the first one
#: alone: it takes a pooling away, which has little work and whose image would be whole
SMALLER: tuple[Pass, ...] = (split_global_pool,)
SMALLER_BY_OURS: tuple[Pass, ...] = (split_full_height,)
SMALLEST: tuple[Pass, ...] = (split_dense,)

#: and this behind all that takes convolutions apart, unless CMSIS-NN's kernels are to be used, or rows are fed: dense
#: layers want their input whole
DENSE: tuple[Pass, ...] = (dense_windows,)

#: and this whatever it is that fuses, behind all that looks at what operators compute: of variables, no copies
KEEPING: tuple[Pass, ...] = (update_states, read_states)
#: and this behind all that looks at TRANSPOSEs, unless CMSIS-NN's kernels are to be used, which has one of its own
IN_PLANES: tuple[Pass, ...] = (rows_of_planes,)


def rewrite(
    graph: Graph, fusion: str, kernels: str, optimize: str = "balanced", with_views: bool = True,
    known: Rewritten | None = None,
) -> Graph:  # fmt: skip
    """The graph after every pass that the fusion level, the kernel library and the objective allow, those that make
    views if `with_views`; it says what each pass that found something saved. `known` keeps what passes made
    between calls: those of several objectives go the same way as far as they can, and may end with the same graph."""
    known = {} if known is None else known
    steps = list(rewrite_steps(graph, fusion, kernels, optimize, with_views, known))
    return steps[-1][1] if steps else graph


def rewrite_steps(
    graph: Graph, fusion: str, kernels: str, optimize: str, with_views: bool, known: Rewritten, fed: bool = False,
    tables: Pass = tabulate,
) -> Iterator[tuple[str, Graph]]:  # fmt: skip
    """The graphs on the way of `rewrite`: after each pass that changed something, with the pass's name. `fed`: the
    image comes by rows, and those are the file's. `tables`: what tabulates (`tabulating`)."""
    for listed in _passes(fusion, kernels, optimize, with_views, fed):
        one_pass = tables if listed is tabulate else listed
        before = graph
        if (one_pass, before) not in known:
            known[one_pass, before] = _with_saving(one_pass, before)
        graph = known[one_pass, before]
        if graph is not before:
            yield one_pass.__name__, graph
    # what a pass went around (a RESHAPE before a layer) is read by nobody now
    if (drop_dead, graph) not in known:
        known[drop_dead, graph] = drop_dead(graph)
    alive = known[drop_dead, graph]
    if alive is not graph:
        yield drop_dead.__name__, alive


def _with_saving(one_pass: Pass, before: Graph) -> Graph:
    """The graph after a pass, which says what that saved."""
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
    """Bytes that new views leave where they are, and that are not copied out of variables and into them any more."""
    return _left_by_views(before, after) + _variable_copies(before) - _variable_copies(after)


def _variable_copies(graph: Graph) -> int:
    return sum(op.input.bytes for op in graph.ops if FAMILIES[op.kind].resource)


def _left_by_views(before: Graph, after: Graph) -> int:
    had = set(before.ops)
    new = [op for op in after.ops if op not in had]
    copies = [op for op in new if not op.view] if any(op.view for op in new) else []
    return sum(t.bytes for op in new if op.view for t in op.outputs) - sum(op.output.bytes for op in copies)


def _weight_bytes(graph: Graph) -> int:
    """Bytes of the constants as the file has them, each once."""
    constants = {tensor for op in graph.ops for tensor in op.inputs if tensor is not None and tensor.is_constant}
    return sum(tensor.bytes for tensor in constants)


def _passes(fusion: str, kernels: str, optimize: str, with_views: bool, fed: bool) -> tuple[Pass, ...]:
    passes = ALWAYS
    if fusion != "none":
        passes += FUSING[:PICTURING]
        cuts = CUTTING if fusion == "rows" and optimize != "speed" else ()
        passes += cuts
        stands = fusion == "rows" and kernels != "cmsis-nn" and optimize != "speed" and not fed
        passes += STANDING if stands else ()
        passes += FUSING[PICTURING:] + cuts
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
    passes += KEEPING if fusion != "none" else ()
    if fusion != "none" and with_views:
        # last: the others look at what operators compute, not at where tensors lie
        passes += (every_view,) if optimize == "speed" else (views,)
    return passes
