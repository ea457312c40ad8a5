"""The pipeline, from a model file to a plan. It reads like a table of contents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tinyfuse.arena import plan_arena
from tinyfuse.cost.predict import group_slides, plan_instructions, predicted_total
from tinyfuse.errors import CompileError, Problem, UsageError
from tinyfuse.frontend.check import check
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.ir import Graph, Op
from tinyfuse.kernels.base import Context
from tinyfuse.options import CMSIS_NN_VERSIONS, OPTIMIZE, Options
from tinyfuse.plan import Plan, Reordering
from tinyfuse.plan.checker import verify_plan
from tinyfuse.rewrite import Rewritten, rewrite
from tinyfuse.rewrite.feed_rows import feed_rows
from tinyfuse.rewrite.fold_constants import fold_constants
from tinyfuse.rewrite.recompute import recomputable, recompute
from tinyfuse.schedule.choose import Choices
from tinyfuse.schedule.estimate import better_orders
from tinyfuse.schedule.lower import StageMemo, lower, place_states
from tinyfuse.schedule.partition import partition
from tinyfuse.schedule.search import Candidate, Work, pareto_front
from tinyfuse.targets import Target

Progress = Callable[[str], None]

#: plans that are made to see whether a group's rings must slide; each takes up to a second
MOST_SLIDE_TRIALS = 8

#: more than any microcontroller has; verify_plan takes eight times as much
MAX_ARENA_BYTES = 1 << 26

#: operators that `--optimize ram` tries to run again for later readers; each takes a search
MOST_RECOMPUTED = 3


def compile_model(path: str, target: Target, options: Options) -> Plan:
    """The plan of the model file at `path`. CompileError names every reason why there is none."""
    return compile_graph(read_tflite(path), target, options)


def compile_graph(source: Graph, target: Target, options: Options, progress: Progress = lambda text: None) -> Plan:
    """The plan of a graph as it was read; a pure function of its arguments. `progress` gets progress."""
    # Under `--kernels cmsis-nn` the rule's row groups are made, of each depthwise and pointwise convolution:
    # a call for each row costs more than `balanced` may spend, so that it would never make such a group.
    if options.fusion != "rows" or (options.kernels == "cmsis-nn" and options.optimize != "speed"):
        plan = _by_rule(source, target, options)
        verify_plan(plan)
        return plan
    memo: StageMemo = {}
    found = choices(source, target, options, progress, memo)
    progress("placing the arena")
    plan, reordering = _ordered(found, options)
    if options.optimize == "ram":
        plan = _recomputing(plan, progress, memo)
    plan = replace(_without_idle_slides(plan, memo), reordering=reordering)
    verify_plan(plan)
    return plan


def _ordered(found: Choices, options: Options) -> tuple[Plan, Reordering | None]:
    """The plan that the options ask for, in the order of the file unless another one saves RAM or time."""
    plan, usual = (some.choose(options.optimize, options.max_ram) for some in (found, found.in_file_order()))
    slower = plan_instructions(usual) > plan_instructions(plan) + 0.5
    if plan is usual or (usual.arena_bytes <= plan.arena_bytes and not slower):
        return usual, None
    return plan, Reordering(usual.arena_bytes, predicted_total(usual))


def _by_rule(source: Graph, target: Target, options: Options) -> Plan:
    """The plan with the groups of the fusion level's rule (tinyfuse/schedule/partition.py), not verified; with
    views, unless it takes fewer bytes without."""
    plans = [
        _place(source, graph, partition(graph, context, options.fusion), context, options)
        for graph, context in _rewrite_both(_checked(source), target, options, {})
    ]
    return plans[0] if options.optimize == "speed" else min(plans, key=lambda plan: plan.arena_bytes)


def arena_bytes_by_rule(source: Graph, target: Target, options: Options) -> int:
    """What the arena would take with the groups of the fusion level's rule: a figure to compare with, of a plan
    that nobody runs."""
    return _by_rule(source, target, options).arena_bytes


def _rewrite_both(checked: Graph, target: Target, options: Options, known: Rewritten) -> list[tuple[Graph, Context]]:
    """`_rewrite` with views and, where it made any, without: whether they save RAM, only plans tell."""
    graph, context = _rewrite(checked, target, options, known)
    viewed = any(op.view for op in graph.ops)
    return [(graph, context), *([_rewrite(checked, target, options, known, with_views=False)] if viewed else [])]


def _recomputing(plan: Plan, progress: Progress, memo: StageMemo) -> Plan:
    """The plan in which cheap operators run again for later readers, where that takes less RAM."""
    for op in recomputable(plan.graph)[:MOST_RECOMPUTED]:
        if op in plan.graph.ops:  # none of its inputs was recomputed meanwhile
            graph = recompute(plan.graph, op)
            found = _choices(plan.source, plan.options, [(graph, plan.context)], progress, memo, reorder=False)
            plan = min(plan, found.choose("ram", None), key=lambda plan: plan.arena_bytes)
    return plan


def prepare(source: Graph, target: Target, options: Options, with_views: bool = True) -> tuple[Graph, Context]:
    """What the rewrites make of a graph, once it is checked, and what decides about its kernels."""
    return _rewrite(_checked(source), target, options, {}, with_views)


def _checked(source: Graph) -> Graph:
    """The graph without constant operators; CompileError names all that isn't supported."""
    folded = fold_constants(source)
    check(folded)
    return folded


def _rewrite(
    checked: Graph, target: Target, options: Options, known: Rewritten, with_views: bool = True
) -> tuple[Graph, Context]:
    """`prepare` after its check; without views if not `with_views`. `known` as in `rewrite`."""
    version, lacks = CMSIS_NN_VERSIONS[options.cmsis_nn_version], frozenset(options.cmsis_nn_lacks)
    context = Context(target, version, options.kernels, lacks, options.optimize, options.weights)
    # who feeds rows doesn't want them all kept, however fast that were
    objective = "balanced" if options.feed_rows and options.optimize == "speed" else options.optimize
    graph = rewrite(checked, options.fusion, options.kernels, objective, with_views, known)
    if options.feed_rows:
        if options.fusion != "rows":
            raise UsageError(f"--feed-rows needs --fusion rows, not {options.fusion}")
        if (feed_rows, graph) not in known:
            known[feed_rows, graph] = feed_rows(graph)
        graph = known[feed_rows, graph]
    return graph, context


def choices(
    source: Graph,
    target: Target,
    options: Options,
    progress: Progress = lambda text: None,
    memo: StageMemo | None = None,
) -> Choices:
    """What `--fusion rows` chooses from: the partitions of the graphs and for the kernels that each of OPTIMIZE
    prefers; `memo` as in lower.make_stages. No plan in it is verified. CompileError where none of them can be
    computed."""
    checked = _checked(source)
    known: Rewritten = {}
    *others, smallest = (replace(options, optimize=objective) for objective in OPTIMIZE)
    prepared = [_rewrite(checked, target, other, known) for other in others]
    prepared += _rewrite_both(checked, target, smallest, known)
    return _choices(source, options, prepared, progress, {} if memo is None else memo)


def _choices(
    source: Graph, options: Options, prepared: Sequence[tuple[Graph, Context]], progress: Progress, memo: StageMemo,
    reorder: bool = True,
) -> Choices:  # fmt: skip
    """The candidates of each graph: the search's, in its order and, with `reorder`, in better ones, and two
    that follow rules."""

    def make(candidate: Candidate) -> Plan:
        groups = [list(group) for group in candidate.groups]
        return _place(source, candidate.graph, groups, candidate.context, options, candidate.fixed, memo)

    plans: dict[Candidate, Plan] = {}
    found: list[Candidate] = []
    searched: list[tuple[Graph, Context, int]] = []
    refused: CompileError | None = None
    for graph, context in prepared:
        try:
            by_rule = [partition(graph, context, fusion) for fusion in ("basic", "rows")]
        except CompileError as error:  # --feed-rows; what another objective makes of the model may stream
            refused = error
            continue
        budget = 0
        for groups in by_rule:
            plan = _place(source, graph, groups, context, options, memo=memo)
            partitioned = tuple(map(tuple, groups))
            instructions = plan_instructions(plan)
            found.append(Candidate(graph, context, partitioned, frozenset(), plan.arena_bytes, instructions))
            plans[found[-1]] = plan
            budget = max(budget, plan.arena_bytes)
        if context.kernels != "cmsis-nn":
            # Not under `--kernels cmsis-nn`: longer groups pass on rings of rows, which CMSIS-NN's kernels
            # don't take, so the search would trade them for ours.
            found += pareto_front(graph, context, budget, progress, memo=memo)
            searched.append((graph, context, budget))
    work = Work()  # of all other orders; those of the graph that was asked for come first
    for graph, context, budget in sorted(searched, key=lambda made: made[1].optimize != options.optimize):
        for other in better_orders(graph, context, budget, progress, memo) if reorder and work.left > 0 else []:
            found += [replace(c, reordered=True) for c in pareto_front(other, context, budget, progress, work, memo)]
    if refused is not None and not found:
        raise refused
    return Choices(found, make, plans)


def _without_idle_slides(plan: Plan, memo: StageMemo) -> Plan:
    """Rings stay where they are in groups where moving their rows saves nothing."""
    groups = [list(group.ops) for group in plan.groups]
    fixed = frozenset(group.index for group in plan.groups if not group_slides(plan, group))
    for group in plan.groups[:MOST_SLIDE_TRIALS]:
        if group.index not in fixed:
            tried = fixed | {group.index}
            found = _place(plan.source, plan.graph, groups, plan.context, plan.options, tried, memo)
            if found.arena_bytes <= plan.arena_bytes:
                plan, fixed = found, tried
    return plan


def plan_groups(
    source: Graph, graph: Graph, groups: list[list[Op]], context: Context, options: Options,
    fixed: frozenset[int] = frozenset(),
) -> Plan:  # fmt: skip
    """The plan that runs `graph` (what the rewrites made of `source`) in these fusion groups; in those
    whose numbers are `fixed`, no ring slides."""
    plan = _place(source, graph, groups, context, options, fixed)
    verify_plan(plan)
    return plan


def _place(
    source: Graph, graph: Graph, groups: list[list[Op]], context: Context, options: Options,
    fixed: frozenset[int] = frozenset(), memo: StageMemo | None = None,
) -> Plan:  # fmt: skip
    """`plan_groups`, not verified yet: most plans are only compared. `memo` as in lower.make_stages."""
    lowered, storage, buffers, overlaps = lower(graph, groups, context, fixed, memo)
    plan = Plan(
        source=source,
        graph=graph,
        context=context,
        options=options,
        groups=lowered,
        storage=storage,
        buffers=buffers,
        overlaps=overlaps,
        placement=plan_arena(buffers, overlaps),
        states=place_states(graph),
        warnings=graph.warnings,
    )
    if plan.arena_bytes > MAX_ARENA_BYTES:
        message = f"its activations take an arena of {plan.arena_bytes:,} bytes, more than {MAX_ARENA_BYTES:,}"
        raise CompileError(graph.path, Problem(message, hint="no microcontroller has that memory: make it smaller"))
    return plan
