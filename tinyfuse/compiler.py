"""The pipeline, from a model file to a plan. It reads like a table of contents."""

from __future__ import annotations

from tinyfuse.arena import plan_arena
from tinyfuse.check import check
from tinyfuse.errors import UsageError
from tinyfuse.ir import Graph, Op
from tinyfuse.ops.base import Context
from tinyfuse.options import CMSIS_NN_VERSIONS, Options
from tinyfuse.plan import Plan
from tinyfuse.rewrite import rewrite
from tinyfuse.rewrite.feed_rows import feed_rows
from tinyfuse.rewrite.fold_constants import fold_constants
from tinyfuse.schedule.lower import lower, place_states
from tinyfuse.schedule.partition import partition
from tinyfuse.schedule.search import least_ram_partition
from tinyfuse.targets import Target
from tinyfuse.tflite_reader import read_tflite
from tinyfuse.verify_plan import verify_plan


#: plans that are made to see whether a group's rings must slide; each takes up to a second
MOST_SLIDE_TRIALS = 8


def compile_model(path: str, target: Target, options: Options) -> Plan:
    """The plan of the model file at `path`. CompileError names every reason why there is none."""
    return compile_graph(read_tflite(path), target, options)


def compile_graph(source: Graph, target: Target, options: Options) -> Plan:
    """The plan of a graph as it was read; a pure function of its arguments."""
    folded = fold_constants(source)
    check(folded)
    version, lacks = CMSIS_NN_VERSIONS[options.cmsis_nn_version], frozenset(options.cmsis_nn_lacks)
    context = Context(target, version, options.kernels, lacks, options.optimize)
    graph = rewrite(folded, options.fusion, options.kernels)
    if options.feed_rows:
        if options.fusion != "rows":
            raise UsageError(f"--feed-rows needs --fusion rows, not {options.fusion}")
        graph = feed_rows(graph)

    def planned(groups: list[list[Op]]) -> Plan:
        return plan_groups(source, graph, groups, context, options)

    if options.fusion == "rows" and options.optimize == "speed":
        # operators that run whole, without a loop over the group's rows, take the fewest instructions
        plan = planned(partition(graph, context, "basic"))
        if options.max_ram is None or plan.ram_bytes <= options.max_ram:
            return plan
    plan = planned(partition(graph, context, options.fusion))
    if options.fusion == "rows" and context.library != "cmsis-nn":
        # Not under `--kernels cmsis-nn`: longer groups pass on rings of rows, which CMSIS-NN's kernels
        # don't take, so the search would trade them for ours.
        groups = least_ram_partition(graph, context, plan.arena_bytes)
        if groups is not None:
            plan = min(plan, planned(groups), key=lambda p: p.arena_bytes)
    return _without_idle_slides(plan)


def _without_idle_slides(plan: Plan) -> Plan:
    """Rings stay where they are in groups where moving their rows saves nothing."""
    groups = [list(group.ops) for group in plan.groups]
    fixed: frozenset[int] = frozenset()
    for group in plan.groups[:MOST_SLIDE_TRIALS]:
        if any(plan.storage[op.output].slides for op in group.ops):
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
    verify_plan(plan)
    return plan
