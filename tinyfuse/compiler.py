"""The pipeline, from a model file to a plan. It reads like a table of contents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tinyfuse.arena import plan_arena
from tinyfuse.check import check
from tinyfuse.cost.predict import group_slides, plan_instructions
from tinyfuse.errors import CompileError, Problem, UsageError
from tinyfuse.ir import Graph, Op
from tinyfuse.ops.base import Context
from tinyfuse.options import CMSIS_NN_VERSIONS, OPTIMIZE, Options
from tinyfuse.plan import Plan, states_bytes
from tinyfuse.rewrite import rewrite
from tinyfuse.rewrite.feed_rows import feed_rows
from tinyfuse.rewrite.fold_constants import fold_constants
from tinyfuse.rewrite.recompute import recomputable, recompute
from tinyfuse.schedule.choose import Choices
from tinyfuse.schedule.lower import lower, place_states
from tinyfuse.schedule.partition import partition
from tinyfuse.schedule.search import Candidate, Streams, pareto_front
from tinyfuse.targets import Target
from tinyfuse.tflite_reader import read_tflite
from tinyfuse.verify_plan import verify_plan

Say = Callable[[str], None]

#: plans that are made to see whether a group's rings must slide; each takes up to a second
MOST_SLIDE_TRIALS = 8
#: more than any microcontroller has; verify_plan takes eight times as much
MAX_ARENA_BYTES = 1 << 26

#: operators that `--optimize ram` tries to run again for later readers; each takes a search
MOST_RECOMPUTED = 3


def compile_model(path: str, target: Target, options: Options) -> Plan:
    """The plan of the model file at `path`. CompileError names every reason why there is none."""
    return compile_graph(read_tflite(path), target, options)


def compile_graph(source: Graph, target: Target, options: Options, say: Say = lambda text: None) -> Plan:
    """The plan of a graph as it was read; a pure function of its arguments. `say` gets progress."""
    graph, context = prepare(source, target, options)
    if options.fusion != "rows":
        return plan_groups(source, graph, partition(graph, context, options.fusion), context, options)
    # what the state leaves for the arena
    limit = None if options.max_ram is None else options.max_ram - states_bytes(place_states(graph))
    policies = ("ram",) if options.optimize == "ram" else OPTIMIZE

    def chosen(graph: Graph) -> Plan:
        return choices(source, graph, context, options, policies, say).choose(options.optimize, limit)

    plan = chosen(graph)
    if options.optimize == "ram":
        plan = _recomputing(plan, chosen)
    return _without_idle_slides(plan)


def _recomputing(plan: Plan, chosen: Callable[[Graph], Plan]) -> Plan:
    """The plan in which cheap operators run again for later readers, where that takes less RAM."""
    for op in recomputable(plan.graph)[:MOST_RECOMPUTED]:
        if op in plan.graph.ops:  # none of its inputs was recomputed meanwhile
            found = chosen(recompute(plan.graph, op))
            plan = found if found.arena_bytes < plan.arena_bytes else plan
    return plan


def prepare(source: Graph, target: Target, options: Options) -> tuple[Graph, Context]:
    """What the rewrites make of a graph, once it is checked, and what decides about its kernels."""
    folded = fold_constants(source)
    check(folded)
    version, lacks = CMSIS_NN_VERSIONS[options.cmsis_nn_version], frozenset(options.cmsis_nn_lacks)
    context = Context(target, version, options.kernels, lacks, options.optimize, options.weights)
    graph = rewrite(folded, options.fusion, options.kernels, options.optimize)
    if options.feed_rows:
        if options.fusion != "rows":
            raise UsageError(f"--feed-rows needs --fusion rows, not {options.fusion}")
        graph = feed_rows(graph)
    return graph, context


def choices(
    source: Graph, graph: Graph, context: Context, options: Options, policies: Sequence[str] = OPTIMIZE,
    say: Say = lambda text: None,
) -> Choices:  # fmt: skip
    """The partitions that `--fusion rows` chooses from: the search's, and two that follow rules; each
    with the kernels that one of the `policies` (of OPTIMIZE) prefers."""
    plans: dict[Candidate, Plan] = {}
    streams: Streams = {}

    def planned(candidate: Candidate) -> Plan:
        if candidate not in plans:
            groups = [list(group) for group in candidate.groups]
            plans[candidate] = plan_groups(source, graph, groups, candidate.context, options, candidate.fixed)
        return plans[candidate]

    found: list[Candidate] = []
    for policy in policies:
        preferring = replace(context, optimize=policy)
        for fusion in ("basic", "rows"):
            groups = partition(graph, preferring, fusion)
            plan = plan_groups(source, graph, groups, preferring, options)
            partitioned = tuple(map(tuple, groups))
            found.append(Candidate(preferring, partitioned, frozenset(), plan.arena_bytes, plan_instructions(plan)))
            plans[found[-1]] = plan
        if context.library != "cmsis-nn":
            # Not under `--kernels cmsis-nn`: longer groups pass on rings of rows, which CMSIS-NN's kernels
            # don't take, so the search would trade them for ours.
            found += pareto_front(graph, preferring, max(c.ram for c in found), streams, say)
    return Choices(found, planned)


def _without_idle_slides(plan: Plan) -> Plan:
    """Rings stay where they are in groups where moving their rows saves nothing."""
    groups = [list(group.ops) for group in plan.groups]
    fixed = frozenset(group.index for group in plan.groups if not group_slides(plan, group))
    for group in plan.groups[:MOST_SLIDE_TRIALS]:
        if group.index not in fixed:
            tried = fixed | {group.index}
            found = plan_groups(plan.source, plan.graph, groups, plan.context, plan.options, tried)
            if found.arena_bytes <= plan.arena_bytes:
                plan, fixed = found, tried
    return plan


def plan_groups(
    source: Graph, graph: Graph, groups: list[list[Op]], context: Context, options: Options,
    fixed: frozenset[int] = frozenset(),
) -> Plan:  # fmt: skip
    """The plan that runs `graph` (what the rewrites made of `source`) in these fusion groups; in those
    whose numbers are `fixed`, no ring slides."""
    lowered, storage, buffers, overlaps = lower(graph, groups, context, fixed)
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
    verify_plan(plan)
    return plan
